"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package and scikit-learn's wrappers."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
