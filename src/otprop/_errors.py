"""The base of the package's exceptions, warnings that point at the user's line, how a missing extra is installed."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


class OtpropError(Exception):
    """Something that otprop refuses, or that went wrong in it; the message is one line for the user.

    Every exception that the package raises itself derives from it, and from the usual type as well: ``except
    ValueError`` goes on working. The TypeError for an unknown keyword argument is not among them.

    Attributes
    ----------
    parameter : str or None
        The parameter that the error is about.
    hint : str or None
        What to do about it, if that is a separate sentence.

    Examples
    --------
    >>> import otprop
    >>> try:
    ...     otprop.label("no_such_file.csv", "kind")
    ... except otprop.OtpropError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError))
    TableError True
    """

    parameter: str | None = None
    hint: str | None = None


def install_command(extra: str) -> str:
    """How the packages of an extra are installed: otprop is on no package index, so from a checkout."""
    return f"pip install '.[{extra}]' in a checkout of otprop"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package and scikit-learn's wrappers."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
