"""`python -m otprop.cli` is `otprop`."""

import sys

from otprop.cli import main

if __name__ == "__main__":
    sys.exit(main())
