"""The job of `otprop label`: vectors and labels of a table, its outcome, and the saved model."""
