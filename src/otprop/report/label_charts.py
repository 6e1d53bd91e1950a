"""Charts of the page of `otprop label` that need no script."""

from __future__ import annotations

import numpy as np

from otprop.propagation.calibration import Coverage
from otprop.report.formatting import format_count, format_percent, format_threshold
from otprop.report.svg import Chart, Point, element, line, marker, polygon, polyline, text, ticks

N_BINS = 10
RAMP = ("#b8211b", "#dc6f1c", "#d1a32a", "#7ea6b8", "#2b66a5")  # uncertain to certain


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


def coverage_chart(coverage: list[Coverage]) -> Chart:
    """The expected error, with its 90 % range, against the share of rows labelled."""
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
            f"--abstain-below {format_threshold(one.confidence)}"
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
