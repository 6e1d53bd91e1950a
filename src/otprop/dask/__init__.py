"""More rows than one machine holds: `DaskOTP` labels Dask collections, the command `otprop label` folders of files."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from otprop._errors import install_command

if TYPE_CHECKING:
    from otprop.dask._estimator import DaskOTP

__all__ = ["DaskOTP"]


def require_dask(*more: str) -> None:
    """Raise an ImportError that says what to install, unless Dask, its scheduler and `more` are there."""
    missing = [name for name in ("dask", "distributed", *more) if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"labelling folders and Dask collections needs {' and '.join(missing)}: {install_command('dask')}"
        )


def __getattr__(name: str) -> Any:
    """Import the estimator when it is asked for, or say what to install."""
    if name not in __all__:
        raise AttributeError(f"module 'otprop.dask' has no attribute {name!r}")
    require_dask()
    return getattr(import_module("otprop.dask._estimator"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
