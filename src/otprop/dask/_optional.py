"""Dask as an extra: one clear line where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from otprop._errors import install_command


def require_dask(*more: str) -> None:
    """Raise an ImportError that says what to install, unless Dask, its scheduler and `more` are there."""
    missing = [name for name in ("dask", "distributed", *more) if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"labelling folders and Dask collections needs {' and '.join(missing)}: {install_command('dask')}"
        )
