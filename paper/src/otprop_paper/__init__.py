"""The experiment of the paper: other methods, data sets, the protocol, and the command that runs it."""
