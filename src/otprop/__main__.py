"""`python -m otprop` is the command `otprop`."""

import sys

from otprop.cli import main

if __name__ == "__main__":
    sys.exit(main())
