"""Pictures of a result with matplotlib, and its small map for a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._errors import install_command
from otprop._validation import check_choice
from otprop.labelling.job import Job
from otprop.labelling.outcome import Outcome
from otprop.report.charts import class_markers
from otprop.report.row_map import map_rows, rows_to_draw
from otprop.table.errors import RequestError

KINDS = ("map", "coverage", "calibration")
MAX_DRAWN = 5_000
MAX_IN_NOTEBOOK = 600  # points of the small map
MAX_NAMED = 12  # classes in a legend
N_BINS = 5  # of held-out labels, by their probability
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "wedge": "v", "cross": "X"}


def plot_result(job: Job, outcome: Outcome, kind: str, ax: Any = None) -> Any:
    """Draw one picture of a job that has run; returns the axes of matplotlib."""
    check_choice("kind", kind, KINDS)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {install_command('plot')}") from error
    if ax is None:
        ax = _new_axes(Figure)
    if kind == "map":
        _draw_map(ax, job, outcome)
    elif outcome.confidence is None:
        raise RequestError("method", f"{job.request.method!r} does not estimate its error; plot kind='map'.")
    elif kind == "coverage":
        _draw_coverage(ax, outcome)
    else:
        _draw_calibration(ax, job)
    return ax


def _new_axes(figure_class: Any) -> Any:
    """Axes of a new figure: of pyplot where the user has it, so that a notebook shows it."""
    import sys

    pyplot = sys.modules.get("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(6, 4.5)) if pyplot else figure_class(figsize=(6, 4.5), layout="constrained")
    return figure.add_subplot()


def _points(job: Job, outcome: Outcome, most: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = rows_to_draw(outcome.given, n=most, n_given=most // 4)
    return drawn, map_rows(job.vectors, drawn)


def _draw_map(ax: Any, job: Job, outcome: Outcome) -> None:
    drawn, points = _points(job, outcome, MAX_DRAWN)
    codes, given = outcome.codes[drawn], outcome.given[drawn]
    sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
    pale = np.clip(outcome.sureness[drawn], 0.15, 1.0)
    for code, (color, shape) in enumerate(class_markers(sizes)):
        for rows, size, edge in ((codes == code) & ~given, 16, "none"), ((codes == code) & given, 60, "black"):
            name = outcome.classes[code] if size == 16 and len(sizes) <= MAX_NAMED else None
            style = {"marker": _MARKERS[shape], "c": color, "s": size, "edgecolors": edge, "label": name}
            ax.scatter(*points[rows].T, alpha=1.0 if edge == "black" else pale[rows], **style)
    ax.scatter(*points[codes < 0].T, facecolors="none", edgecolors="0.6", s=16)
    ax.set(xticks=[], yticks=[], title=f"{outcome.target}: given labels large, less certain rows paler")
    if len(sizes) <= MAX_NAMED:
        ax.legend(frameon=False, fontsize="small")


def _draw_coverage(ax: Any, outcome: Outcome) -> None:
    lines = sorted(outcome.coverage, key=lambda one: one.share)
    shares = [one.share for one in lines]
    ax.fill_between(shares, [one.low for one in lines], [one.high for one in lines], alpha=0.2, label="90 % interval")
    ax.plot(shares, [one.expected_error for one in lines], marker="o", label="expected error")
    ax.set(xlabel="share of the rows labelled, the most confident first", ylabel="expected error", xlim=(0, 1.02))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)


def _draw_calibration(ax: Any, job: Job) -> None:
    """Held-out labels: how probable the sources together found the class, and how often it was right."""
    rows = getattr(job.estimator, "held_out_rows_", np.empty(0, dtype=np.intp))
    if len(rows) == 0:
        raise RequestError("kind", "has nothing to draw: no label could be held out.", "calibration")
    proba = job.estimator.held_out_proba_
    found, right = proba.max(axis=1), proba.argmax(axis=1) == job.target.codes[rows]
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for part in np.array_split(np.argsort(found, kind="stable"), min(N_BINS, len(rows))):
        share = right[part].mean()
        spread = np.sqrt(max(share * (1 - share), 0.25 / len(part)) / len(part))
        ax.errorbar(found[part].mean(), share, yerr=spread, fmt="o", color="#0072b2", capsize=3)
    ax.set(
        xlabel="probability of the most probable class", ylabel="share that is right", xlim=(0, 1.02), ylim=(0, 1.05)
    )
    ax.set_title(f"{len(rows)} held-out labels")


def small_map(job: Job, outcome: Outcome, width: int = 260, height: int = 180) -> str:
    """The rows as SVG for a notebook: a colour per class, given labels larger, less certain rows paler."""
    if job.vectors is None or job.vectors.shape[0] < 2:
        return ""
    drawn, points = _points(job, outcome, MAX_IN_NOTEBOOK)
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    places = 6 + (points - low) / span * (np.array([width, height]) - 12)
    sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
    colors = [color for color, _ in class_markers(sizes)]
    dots = []
    for row, (x, y) in zip(drawn, places, strict=True):
        given, code = outcome.given[row], outcome.codes[row]
        color = colors[code] if code >= 0 else "#999999"
        opacity = 1.0 if given else max(0.15, float(outcome.sureness[row]))
        dots.append(
            f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{4 if given else 2}" fill="{color}" '
            f'fill-opacity="{opacity:.2f}"/>'
        )
    label = "map of the rows"
    return f'<svg width="{width}" height="{height}" role="img" aria-label="{label}">{"".join(dots)}</svg>'
