"""The job of `otprop label`: columns become vectors, cells become labels, and a fitted model can be kept."""
