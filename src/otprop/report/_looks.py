"""How classes and numbers look on the page of `otprop label`: colours, shapes, words."""

from __future__ import annotations

import re

import numpy as np

from otprop.report.svg import drawing, marker, tag

# Okabe and Ito's colours that stand out on white and on black: told apart with any colour vision. After six classes
# they come again in another shape.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
SHAPES = ("circle", "square", "triangle", "diamond", "wedge", "cross")
REST = ("#8a6d5a", "circle")  # all classes beyond
RAMP = ("#b8211b", "#dc6f1c", "#d1a32a", "#7ea6b8", "#2b66a5")  # unsure to sure
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def class_looks(sizes: np.ndarray) -> list[tuple[str, str]]:
    """A colour and a shape for every class; where there are too many, the largest have one of their own.

    Parameters
    ----------
    sizes : ndarray of int of shape (n_classes,)

    Returns
    -------
    list of (color, shape)
    """
    own = [(color, shape) for shape in SHAPES for color in COLORS]
    if len(sizes) <= len(own):
        return own[: len(sizes)]
    looks = [REST] * len(sizes)
    for look, number in zip(own, np.sort(np.argsort(-sizes, kind="stable")[: len(own)]), strict=True):
        looks[number] = look
    return looks


def swatch(look: tuple[str, str], label: str = "") -> str:
    """A class's mark.

    Parameters
    ----------
    look : (color, shape)
    label : str

    Returns
    -------
    str
    """
    color, shape = look
    size = 5.0
    if shape == "wedge":
        drawn = tag("polygon", points="2,3.5 14,3.5 8,14.5", fill=color)
    elif shape == "cross":
        drawn = tag("path", d="M3 3L13 13M13 3L3 13", stroke=color, stroke_width=3.2, fill="none")
    else:
        drawn = marker(shape, 8, 8, color, size=size)
    return drawing(16, 16, drawn, label or shape).replace("<svg", '<svg class="swatch"', 1)


def clean(value: object, most: int = 200) -> str:
    """A value from the file as text that can be shown: no control characters, not too long.

    Parameters
    ----------
    value : object
    most : int, characters

    Returns
    -------
    str
    """
    if value is None:
        return ""
    words = _ODD.sub("\N{REPLACEMENT CHARACTER}", str(value)[: most + 1])
    return words if len(words) <= most else words[: most - 1] + "…"


def count(number: int) -> str:
    """A whole number with thin spaces.

    Parameters
    ----------
    number : int

    Returns
    -------
    str

    Examples
    --------
    >>> from otprop.report._looks import count
    >>> count(1234567).split()
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(share: float) -> str:
    """A share as a percentage, finer where it is small.

    Parameters
    ----------
    share : float

    Returns
    -------
    str

    Examples
    --------
    >>> from otprop.report._looks import percent
    >>> [percent(share).split()[0] for share in (0.00012, 0.021, 0.98, 0.9999)]
    ['0.01', '2.1', '98', '99.99']
    """
    edge = min(abs(share), abs(1.0 - share))
    if 0 < edge < 0.00005:
        return "under 0.01\N{NO-BREAK SPACE}%" if share < 0.5 else "over 99.99\N{NO-BREAK SPACE}%"
    digits = 2 if 0 < edge < 0.001 else 1 if 0 < edge < 0.1 else 0
    words = f"{100 * share:.{digits}f}"
    return (words.rstrip("0").rstrip(".") if "." in words else words) + "\N{NO-BREAK SPACE}%"
