"""More rows than one machine holds: `DaskOTP` labels Dask collections, the command `otprop label` folders of files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otprop.dask._estimator import DaskOTP

__all__ = ["DaskOTP"]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is asked for, or say what to install."""
    if name not in __all__:
        raise AttributeError(f"module 'otprop.dask' has no attribute {name!r}")
    from otprop.dask._optional import require_dask

    require_dask()
    return getattr(import_module("otprop.dask._estimator"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
