"""SVG charts as data; `templates/svg.html` writes them out, so that text is escaped there.

First the shapes, then the marker of a class, then the charts of the page of `otprop label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np

from otprop.propagation.calibration import Coverage
from otprop.report.page import format_count, format_percent, format_threshold

Point = tuple[float, float]
ClassMarker = tuple[str, str]  # color, shape

# Okabe and Ito's colours with enough contrast on white and on black, distinct under any colour vision.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
SHAPES = ("circle", "square", "triangle", "diamond", "wedge", "cross")
SHARED_MARKER = ("#8a6d5a", "circle")  # of all classes beyond the 36 largest
N_BINS = 10
RAMP = ("#b8211b", "#dc6f1c", "#d1a32a", "#7ea6b8", "#2b66a5")  # uncertain to certain

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
    >>> from otprop.report.charts import ticks
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


def class_markers(sizes: np.ndarray) -> list[ClassMarker]:
    """A colour and a shape for every class; two classes share at most one of them, until both run out."""
    n_shapes = len(SHAPES)
    unique = [
        (color, SHAPES[(number + shift) % n_shapes]) for shift in range(n_shapes) for number, color in enumerate(COLORS)
    ]
    if len(sizes) <= len(unique):
        return unique[: len(sizes)]
    markers = [SHARED_MARKER] * len(sizes)
    for one, number in zip(unique, np.sort(np.argsort(-sizes, kind="stable")[: len(unique)]), strict=True):
        markers[number] = one
    return markers


def marker_icon(one: ClassMarker) -> Chart:
    """The marker of a class next to its name."""
    color, shape = one
    return Chart(16, 16, [marker(shape, 8, 8, color, size=5.0)], shape, "swatch")


def histogram(values: np.ndarray, name: str) -> Chart:
    """How many rows have which certainty or confidence, from 0 to 1."""
    width, height, margin, top, bottom = 430.0, 230.0, 8.0, 22.0, 40.0
    counts, edges = np.histogram(np.clip(values, 0.0, 1.0), bins=N_BINS, range=(0.0, 1.0))
    step, most, base = (width - 2 * margin) / N_BINS, max(1, int(counts.max(initial=0))), height - bottom
    shapes = []
    for number, (n_rows, low) in enumerate(zip(counts.tolist(), edges[:-1], strict=True)):
        x, tall = margin + number * step, n_rows / most * (base - top)
        if n_rows:
            title = f"{name} {low:.1f} to {low + 1 / N_BINS:.1f}: {format_count(n_rows)} rows"
            tall = max(tall, 1.0)
            bar = {"x": x + 1, "y": base - tall, "width": step - 2, "height": tall, "class_": "bar"}
            shapes.append(element("rect", title=title, **bar))
        shapes.append(text(x + step / 2, base - tall - 5, _short_count(n_rows), "middle", class_="axis small"))
    shapes.append(line(margin, base, width - margin, base, class_="rule"))
    for mark in range(0, N_BINS + 1, 2):
        anchor = "start" if mark == 0 else "end" if mark == N_BINS else "middle"
        x = margin + mark * step
        shapes.append(line(x, base, x, base + 4, class_="rule"))
        shapes.append(text(x, base + 17, f"{mark / N_BINS:g}", anchor, class_="axis"))
    shapes.append(text(width / 2, height - 5, name, "middle", class_="axis"))
    return Chart(width, height, shapes, f"histogram of {name}")


def _short_count(number: int) -> str:
    return str(number) if number < 10_000 else f"{number / 1000:.0f}k" if number < 10**6 else f"{number / 1e6:.1f}M"


def coverage_chart(coverage: list[Coverage], threshold: str = "--abstain-below ") -> Chart:
    """The expected error, with its 90 % range, against the share of rows labelled; `threshold` names the option."""
    width, height, left, right, top, bottom = 430.0, 260.0, 54.0, 14.0, 12.0, 44.0
    points = sorted(coverage, key=lambda one: one.share)
    marks = ticks(0.0, max(0.001, points[-1].high, *(one.expected_error for one in points)), 4)

    def place(share: float, error: float) -> Point:
        error = min(error, marks[-1])  # ranges at small shares are wider than the chart
        return left + share * (width - left - right), top + (1 - error / marks[-1]) * (height - top - bottom)

    lows, highs = [place(one.share, one.low) for one in points], [place(one.share, one.high) for one in points]
    shapes = [polygon([*lows, *reversed(highs)], class_="range")]
    for mark in marks:
        y = place(0.0, mark)[1]
        shapes.append(line(left, y, width - right, y, class_="rule" if mark == 0 else "grid"))
        shapes.append(text(left - 7, y + 4, f"{100 * mark:g} %", "end", class_="axis"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, anchor = place(share, 0.0)[0], "end" if share == 1 else "middle"
        shapes.append(text(x, height - bottom + 17, f"{100 * share:g} %", anchor, class_="axis"))
    x_label = "of the unlabelled rows, the most confident first"
    shapes.append(text((left + width - right) / 2, height - 6, x_label, "middle", class_="axis"))
    if any(one.high > marks[-1] for one in points):
        shapes.append(text(left + 6, top + 14, "the range continues above", class_="axis small"))
    shapes.append(polyline([place(one.share, one.expected_error) for one in points], class_="curve"))
    for one in points:
        note = (
            f"{format_percent(one.share)} labelled: expected error {format_percent(one.expected_error)} "
            f"({format_percent(one.low)} to {format_percent(one.high)}), "
            f"{threshold}{format_threshold(one.confidence)}"
        )
        shapes.append(marker("circle", *place(one.share, one.expected_error), "currentColor", note))
    return Chart(width, height, shapes, "expected error against the share of rows labelled")


def share_bars(before: float, after: float, color: str, largest: float) -> Chart:
    """The share of a class among the given labels (outline) and among all labels (filled)."""
    scale = 178.0 / max(largest, 1e-9)
    upper = element("rect", x=0.5, y=1.5, width=max(0.0, before * scale), height=5.0, class_="outline")
    lower = element("rect", x=0.5, y=8.5, width=max(0.0, after * scale), height=7.0, fill=color)
    label = f"{format_percent(before)} of the given labels, {format_percent(after)} of all labels"
    return Chart(180.0, 17, [upper, lower], label, "bars")


def color_scale(low: float, name: str) -> Chart:
    """The colours of certainty or confidence from `low` to 1."""
    width = 220.0
    stops = [
        element("stop", offset=f"{100 * number / (len(RAMP) - 1):g}%", stop_color=color)
        for number, color in enumerate(RAMP)
    ]
    shapes = [element("defs", children=[element("linearGradient", children=stops, id=f"ramp-{name}")])]
    shapes.append(element("rect", x=0.0, y=0.0, width=width, height=11.0, fill=f"url(#ramp-{name})"))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        shapes.append(text(share * width, 26, f"{low + share * (1 - low):.3g}", anchor, class_="axis"))
    return Chart(width, 30, shapes, f"colours of {name} from {low:g} to 1")
