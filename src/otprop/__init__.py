"""Label the unlabelled: optimal transport propagation, with a certainty for every row."""

from otprop._otp import OTP
from otprop._propagation import Round

__version__ = "0.1.0"
__all__ = ["OTP", "Round", "__version__"]
