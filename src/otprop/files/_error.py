"""What is wrong with a user's file, and what to install to read it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any


class TableError(ValueError):
    """Something is wrong with a file that the user named; the message is one line for the user."""


def need(module: str) -> Any:
    """Import a module of the extra `files`."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"reading and writing tables needs {package}: pip install 'otprop[files]'") from None


def one_line(error: BaseException) -> str:
    """The message of another library's error, cut to one line without a full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = text.strip().splitlines()
    return (lines[0].strip().rstrip(".") if lines else type(error).__name__)[:200]


def listed(names: Iterable[object], most: int = 8, quoted: bool = True) -> str:
    """Names for a message: "'a', 'b' and 3 more".

    Parameters
    ----------
    names : iterable
    most : int, how many are named
    quoted : bool, put quotes around each

    Returns
    -------
    str
    """
    shown = [repr(name) if quoted else str(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more
