"""`otprop studio`: label a table in the browser, with the propagation in the loop."""
