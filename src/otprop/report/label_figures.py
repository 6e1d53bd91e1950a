"""The figures of `otprop label` that need no script: how sure the labels are, and what fewer of them would cost."""

from __future__ import annotations

import numpy as np

from otprop.propagation.calibration import Coverage
from otprop.report._looks import RAMP, count, percent
from otprop.report.svg import drawing, line, marker, polyline, tag, text, ticks

BINS = 10


def histogram(values: np.ndarray, what: str) -> str:
    """How many rows have which certainty or confidence.

    Parameters
    ----------
    values : ndarray, from 0 to 1
    what : str, what they are

    Returns
    -------
    str
    """
    width, height, left, right, top, bottom = 430.0, 230.0, 8.0, 8.0, 22.0, 40.0
    counts, edges = np.histogram(np.clip(values, 0.0, 1.0), bins=BINS, range=(0.0, 1.0))
    step, most = (width - left - right) / BINS, max(1, int(counts.max(initial=0)))
    base = height - bottom
    parts = []
    for number, (rows, low) in enumerate(zip(counts.tolist(), edges[:-1], strict=True)):
        x, tall = left + number * step, rows / most * (base - top)
        if rows:
            note = f"<title>{what} {low:.1f} to {low + 1 / BINS:.1f}: {count(rows)} rows</title>"
            tall = max(tall, 1.0)
            bar = {"x": x + 1, "y": base - tall, "width": step - 2, "height": tall, "class_": "bar"}
            parts.append(tag("rect", note, **bar))
        parts.append(text(x + step / 2, base - tall - 5, _short(rows), "middle", class_="axis small"))
    parts.append(line(left, base, width - right, base, class_="rule"))
    for mark in range(0, BINS + 1, 2):
        anchor = "start" if mark == 0 else "end" if mark == BINS else "middle"
        x = left + mark * step
        parts.append(line(x, base, x, base + 4, class_="rule"))
        parts.append(text(x, base + 17, f"{mark / BINS:g}", anchor, class_="axis"))
    parts.append(text(width / 2, height - 5, what, "middle", class_="axis"))
    return drawing(width, height, "".join(parts), f"histogram of {what}")


def _short(number: int) -> str:
    return str(number) if number < 10_000 else f"{number / 1000:.0f}k" if number < 10**6 else f"{number / 1e6:.1f}M"


def coverage_curve(coverage: list[Coverage]) -> str:
    """The error to expect against the share of rows labelled.

    Parameters
    ----------
    coverage : list of Coverage

    Returns
    -------
    str
    """
    width, height, left, right, top, bottom = 430.0, 260.0, 54.0, 14.0, 12.0, 44.0
    points = sorted((one.share, one.expected_error, one.confidence) for one in coverage)
    marks = ticks(0.0, max(0.001, *(error for _, error, _ in points)), 4)

    def place(share: float, error: float) -> tuple[float, float]:
        return left + share * (width - left - right), top + (1 - error / marks[-1]) * (height - top - bottom)

    parts = []
    for mark in marks:
        y = place(0.0, mark)[1]
        parts.append(line(left, y, width - right, y, class_="rule" if mark == 0 else "grid"))
        parts.append(text(left - 7, y + 4, f"{100 * mark:g} %", "end", class_="axis"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, anchor = place(share, 0.0)[0], "end" if share == 1 else "middle"
        parts.append(text(x, height - bottom + 17, f"{100 * share:g} %", anchor, class_="axis"))
    words = "of the rows without a label get one, the surest first"
    parts.append(text((left + width - right) / 2, height - 6, words, "middle", class_="axis"))
    parts.append(polyline([place(share, error) for share, error, _ in points], class_="curve"))
    for share, error, confidence in points:
        note = f"{percent(share)} labelled: expected error {percent(error)}, --abstain-below {below(confidence)}"
        parts.append(marker("circle", *place(share, error), "currentColor", note))
    return drawing(width, height, "".join(parts), "expected error against the share of rows labelled")


def below(confidence: float) -> str:
    """A value of ``--abstain-below`` that keeps rows of this confidence.

    Parameters
    ----------
    confidence : float

    Returns
    -------
    str

    Examples
    --------
    >>> from otprop.report.label_figures import below
    >>> below(0.98765), below(0.99998765)
    ('0.9876', '0.999987')
    """
    digits = 4 if confidence < 0.999 else 6
    return f"{np.floor(confidence * 10**digits) / 10**digits:.{digits}f}"


def share_bars(before: float, after: float, color: str, most: float) -> str:
    """The share of a class among the given labels and among all labels, one bar above the other.

    Parameters
    ----------
    before, after : float
    color : str
    most : float, the share that fills the width

    Returns
    -------
    str
    """
    width, scale = 180.0, 178.0 / max(most, 1e-9)
    upper = tag("rect", x=0.5, y=1.5, width=max(0.0, before * scale), height=5.0, class_="outline")
    lower = tag("rect", x=0.5, y=8.5, width=max(0.0, after * scale), height=7.0, fill=color)
    words = f"{percent(before)} of the given labels, {percent(after)} of all labels"
    return drawing(width, 17, upper + lower, words).replace("<svg", '<svg class="bars"', 1)


def ramp(low: float, what: str) -> str:
    """The colours from unsure to sure.

    Parameters
    ----------
    low : float, where the scale starts; it ends at 1
    what : str, a word for what is shown

    Returns
    -------
    str
    """
    width = 220.0
    stops = "".join(
        tag("stop", offset=f"{100 * number / (len(RAMP) - 1):g}%", stop_color=color)
        for number, color in enumerate(RAMP)
    )
    parts = tag("defs", tag("linearGradient", stops, id=f"ramp-{what}"))
    parts += tag("rect", x=0.0, y=0.0, width=width, height=11.0, fill=f"url(#ramp-{what})")
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts += text(share * width, 26, f"{low + share * (1 - low):.3g}", anchor, class_="axis")
    return drawing(width, 30, parts, f"colours of {what} from {low:g} to 1")
