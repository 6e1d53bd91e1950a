"""`python -m otprop_paper` is `otprop-paper`."""

import sys

from otprop_paper._command import main

if __name__ == "__main__":
    sys.exit(main())
