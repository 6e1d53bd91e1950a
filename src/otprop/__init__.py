"""Label the unlabelled: optimal transport propagation, with a certainty for every row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otprop._label import check, label, suggest
    from otprop._label_result import LabelResult
    from otprop._otp import OTP
    from otprop._progress import FitCancelledError
    from otprop.propagation.rounds import Round

__version__ = "0.2.0"
__all__ = ["OTP", "FitCancelledError", "LabelResult", "Round", "__version__", "check", "label", "suggest"]

_HOMES = {
    "FitCancelledError": "otprop._progress",
    "LabelResult": "otprop._label_result",
    "OTP": "otprop._otp",
    "Round": "otprop.propagation.rounds",
    "label": "otprop._label",
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
