"""Dask as an extra: one clear line where it is missing."""

from __future__ import annotations

from importlib.util import find_spec


def require_dask() -> None:
    """Raise an ImportError that says what to install, unless Dask and its scheduler are there."""
    missing = [name for name in ("dask", "distributed") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"labelling folders and Dask collections needs {' and '.join(missing)}: pip install 'otprop[dask]'"
        )
