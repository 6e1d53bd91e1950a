"""A few strokes of SVG. Text is escaped here, once, so that a data set's name can hold anything."""

from __future__ import annotations

from html import escape
from math import ceil, floor, isfinite, log10


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; `content` is markup, attribute values are text.

    Parameters
    ----------
    name : str
    content : str
    **attributes : a trailing underscore is dropped, others become hyphens

    Returns
    -------
    str
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: object) -> str:
    """Words at a place.

    Parameters
    ----------
    x, y : float
    words : str, as text
    anchor : {"start", "middle", "end"}
    **attributes : of the element

    Returns
    -------
    str
    """
    return tag("text", escape(words) or " ", x=float(x), y=float(y), text_anchor=anchor, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    """A straight line.

    Parameters
    ----------
    x1, y1, x2, y2 : float
    **attributes : of the element

    Returns
    -------
    str
    """
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **attributes)


def polyline(points: list[tuple[float, float]], **attributes: object) -> str:
    """A line through points.

    Parameters
    ----------
    points : list of (float, float)
    **attributes : of the element

    Returns
    -------
    str
    """
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), fill="none", **attributes)


def marker(shape: str, x: float, y: float, color: str, title: str = "", size: float = 3.2) -> str:
    """A point: "circle", "square", "diamond" or "triangle", with a note that shows when pointed at.

    Parameters
    ----------
    shape : str
    x, y : float
    color : str
    title : str
    size : float

    Returns
    -------
    str
    """
    note = f"<title>{escape(title)}</title>" if title else ""
    if shape == "circle":
        return tag("circle", note, cx=float(x), cy=float(y), r=float(size), fill=color)
    outlines: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
        "triangle": [(0, -1.3), (1.2, 1), (-1.2, 1)],
    }
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in outlines[shape])
    return tag("polygon", note, points=points, fill=color)


def drawing(width: float, height: float, content: str, label: str) -> str:
    """A whole drawing that shrinks with the window and says what it shows to who cannot see it.

    Parameters
    ----------
    width, height : float
    content : str
    label : str

    Returns
    -------
    str
    """
    return tag(
        "svg",
        f"<title>{escape(label)}</title>{content}",
        viewBox=f"0 0 {width:g} {height:g}",
        width=float(width),
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover a range.

    Parameters
    ----------
    low, high : float
    about : int, how many

    Returns
    -------
    list of float

    Examples
    --------
    >>> from otprop.report.svg import ticks
    >>> ticks(0.31, 0.87)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not (isfinite(low) and isfinite(high)) or high <= low:
        return [low - 0.5, low + 0.5] if isfinite(low) else [0.0, 1.0]
    raw = (high - low) / max(1, about - 1)
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * 0.99)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
