"""SVG charts as data; `templates/svg.html` writes them out, so that text is escaped there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

Point = tuple[float, float]

_OUTLINES: dict[str, list[Point]] = {
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
    "triangle": [(0, -1.3), (1.2, 1), (-1.2, 1)],
    "wedge": [(0, 1.3), (1.2, -1), (-1.2, -1)],
    "cross": [
        *((-1.2, -0.75), (-0.45, 0), (-1.2, 0.75), (-0.75, 1.2), (0, 0.45), (0.75, 1.2)),
        *((1.2, 0.75), (0.45, 0), (1.2, -0.75), (0.75, -1.2), (0, -0.45), (-0.75, -1.2)),
    ],
}


@dataclass(frozen=True)
class Element:
    """An SVG element with its attributes, text, tooltip and children."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    title: str = ""
    children: Sequence[Element] = ()


@dataclass(frozen=True)
class Chart:
    """A drawing of `elements` that shrinks with the window; `label` describes it to screen readers."""

    width: float
    height: float
    elements: Sequence[Element]
    label: str
    css_class: str = ""


def element(tag: str, text: str = "", title: str = "", children: Sequence[Element] = (), **attributes: Any) -> Element:
    """An element; of an attribute's name a trailing underscore is dropped, others become hyphens."""
    named = {name.rstrip("_").replace("_", "-"): _number(value) for name, value in attributes.items()}
    return Element(tag, named, text, title, children)


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(x: float, y: float, content: str, anchor: str = "start", **attributes: Any) -> Element:
    """Text at a point."""
    return element("text", content, x=float(x), y=float(y), text_anchor=anchor, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> Element:
    """A straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **attributes)


def polyline(points: Sequence[Point], **attributes: Any) -> Element:
    """A line through points."""
    return element("polyline", points=_points(points), fill="none", **attributes)


def polygon(points: Sequence[Point], title: str = "", **attributes: Any) -> Element:
    """A filled outline."""
    return element("polygon", title=title, points=_points(points), **attributes)


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def marker(shape: str, x: float, y: float, color: str, title: str = "", size: float = 3.2) -> Element:
    """A point as "circle", "square", "diamond", "triangle", "wedge" or "cross", with a tooltip."""
    if shape == "circle":
        return element("circle", title=title, cx=float(x), cy=float(y), r=float(size), fill=color)
    return polygon([(x + size * dx, y + size * dy) for dx, dy in _OUTLINES[shape]], title, fill=color)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About this many round numbers that cover a range.

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
