"""Label the unlabelled: optimal transport propagation, with a certainty for every row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otprop._errors import OtpropError
    from otprop._label import check, label, suggest
    from otprop._label_result import LabelResult
    from otprop._otp import OTP
    from otprop._paper_otp import PaperOTP
    from otprop._predict import Model, load, predict
    from otprop._progress import FitCancelledError
    from otprop.propagation.geometry import Geometry
    from otprop.propagation.rounds import Round

__version__ = "0.3.0"
__all__ = [
    "OTP",
    "FitCancelledError",
    "Geometry",
    "LabelResult",
    "Model",
    "OtpropError",
    "PaperOTP",
    "Round",
    "__version__",
    "check",
    "label",
    "load",
    "predict",
    "suggest",
]

_HOMES = {
    "FitCancelledError": "otprop._progress",
    "Geometry": "otprop.propagation.geometry",
    "LabelResult": "otprop._label_result",
    "Model": "otprop._predict",
    "OTP": "otprop._otp",
    "OtpropError": "otprop._errors",
    "PaperOTP": "otprop._paper_otp",
    "Round": "otprop.propagation.rounds",
    "label": "otprop._label",
    "load": "otprop._predict",
    "predict": "otprop._predict",
    "check": "otprop._label",
    "suggest": "otprop._label",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: scikit-learn takes a second, `otprop --help` need not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'otprop' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
