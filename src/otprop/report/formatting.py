"""Values as text for a page."""

from __future__ import annotations

import re
from math import floor

_NOT_SHOWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def display_text(value: object, length: int = 200) -> str:
    """A value of the file as text: control characters replaced, cut to `length` characters, empty for None."""
    if value is None:
        return ""
    text = _NOT_SHOWN.sub("\N{REPLACEMENT CHARACTER}", str(value)[: length + 1])
    return text if len(text) <= length else text[: length - 1] + "…"


def format_count(number: int) -> str:
    """An integer with narrow spaces between thousands.

    Examples
    --------
    >>> from otprop.report.formatting import format_count
    >>> format_count(1234567).split()
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def format_percent(share: float) -> str:
    """A share as a percentage, with more digits near 0 % and 100 %.

    Examples
    --------
    >>> from otprop.report.formatting import format_percent
    >>> [format_percent(share).split()[0] for share in (0.00012, 0.021, 0.98, 0.9999)]
    ['0.01', '2.1', '98', '99.99']
    """
    edge = min(abs(share), abs(1.0 - share))
    if 0 < edge < 0.00005:
        return "under 0.01\N{NO-BREAK SPACE}%" if share < 0.5 else "over 99.99\N{NO-BREAK SPACE}%"
    digits = 2 if 0 < edge < 0.001 else 1 if 0 < edge < 0.1 else 0
    text = f"{100 * share:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "\N{NO-BREAK SPACE}%"


def format_threshold(confidence: float) -> str:
    """A confidence rounded down, so that rows of this confidence are not below it.

    Examples
    --------
    >>> from otprop.report.formatting import format_threshold
    >>> format_threshold(0.98765), format_threshold(0.99998765)
    ('0.9876', '0.999987')
    """
    digits = 4 if confidence < 0.999 else 6
    return f"{floor(confidence * 10**digits) / 10**digits:.{digits}f}"
