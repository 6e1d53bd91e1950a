"""The figures of the benchmark: scores against labels, mean ranks, time against score, confidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from otprop.benchmark.methods import METHODS
from otprop.benchmark.ranks import Ranks
from otprop.benchmark.reliability import SHARES, Reliability
from otprop.benchmark.tables import ScoreEntry, ScoreTable
from otprop.report.svg import drawing, line, marker, polyline, text, ticks

Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    color: str
    shape: str = "circle"
    dash: str = "none"
    width: float = 1.4


_LOOKS = {
    "otp": Look("#c2182b", "circle", width=2.8),
    "otp-paper": Look("#ef7f1a", "square", width=2.2),
    "released": Look("#8c564b", "diamond", width=2.2),
    "lp": Look("#1f77b4", "circle"),
    "ls": Look("#0f9fb0", "square"),
    "ls-knn": Look("#0f9fb0", "diamond", "5 3"),
    "lnp": Look("#7b52ab", "triangle"),
    "cnmf": Look("#8a8a8a", "diamond"),
    "plcc": Look("#a3a51c", "triangle"),
    "1nn": Look("#2ca02c", "circle"),
    "vote": Look("#67b267", "square"),
    "logistic": Look("#d65fb0", "circle"),
    "trees": Look("#222222", "square"),
    "self-logistic": Look("#d65fb0", "triangle", "5 3"),
    "self-trees": Look("#222222", "diamond", "5 3"),
}
_GRID, _AXIS = "#e4e4e4", "#555555"


def look(method: str) -> Look:
    """How a method is drawn, the same in every figure.

    Parameters
    ----------
    method : str

    Returns
    -------
    Look
    """
    return _LOOKS.get(method, Look("#444444"))


def legend_mark(method: str) -> str:
    """A short stroke with the method's mark.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    how = look(method)
    stroke = line(0, 7, 26, 7, stroke=how.color, stroke_width=how.width, stroke_dasharray=how.dash)
    return drawing(26, 14, stroke + marker(how.shape, 13, 7, how.color), METHODS[method].title)


def curves(table: ScoreTable, dataset: str) -> str:
    """The score of every method against the share of labels on one data set.

    Parameters
    ----------
    table : ScoreTable
    dataset : str

    Returns
    -------
    str
    """
    width, height, left, right, top, bottom = 330.0, 250.0, 42.0, 12.0, 28.0, 40.0
    percents = sorted({percent for name, percent in table.cells if name == dataset})
    values = {key: entry for key, entry in table.entries.items() if key[0] == dataset}
    marks = ticks(min(e.ours for e in values.values()), max(e.ours for e in values.values()))
    low, high = marks[0], marks[-1]
    span = (percents[-1] - percents[0]) or 1.0

    def place(percent: float, value: float) -> tuple[float, float]:
        share = (percent - percents[0]) / span if len(percents) > 1 else 0.5
        across = left + 8 + share * (width - left - right - 16)
        return across, top + (high - value) / (high - low) * (height - top - bottom)

    parts = [text(left, 18, f"{dataset}: {table.score.upper()}", font_weight="bold", font_size=13)]
    for mark in marks:
        y = place(percents[0], mark)[1]
        parts.append(line(left, y, width - right, y, stroke=_GRID))
        parts.append(text(left - 6, y + 4, f"{mark:g}", "end", fill=_AXIS))
    for percent in percents:
        parts.append(text(place(percent, low)[0], height - bottom + 16, f"{percent:g} %", "middle", fill=_AXIS))
    parts.append(text((left + width - right) / 2, height - 6, "rows labelled", "middle", fill=_AXIS))
    for method in reversed(table.methods):  # the first are drawn on top
        there = [(p, values[dataset, p, method]) for p in percents if (dataset, p, method) in values]
        parts.append(_curve(method, there, place))
    return drawing(width, height, "".join(parts), f"{table.title} against the share of labels on {dataset}")


def _curve(method: str, points: list[tuple[float, ScoreEntry]], place: Place) -> str:
    how, title = look(method), METHODS[method].title
    where = [place(percent, entry.ours) for percent, entry in points]
    strokes = polyline(where, stroke=how.color, stroke_width=how.width, stroke_dasharray=how.dash)
    for (x, y), (percent, entry) in zip(where, points, strict=True):
        note = f"{title}, {percent:g} %: {entry.ours:.4f}{', thinned' if entry.thinned else ''}"
        strokes += marker(how.shape, x, y, how.color, note)
    return strokes


def rank_diagram(ranks: Ranks, what: str) -> str:
    """Mean ranks on a line, the best on the left; bars join methods that are not told apart.

    Parameters
    ----------
    ranks : Ranks
    what : str, the score ranked

    Returns
    -------
    str
    """
    n = len(ranks.methods)
    width, left, right = 760.0, 170.0, 170.0
    bars = ranks.groups()
    axis = 64.0
    first_label = axis + 22 + 9 * len(bars)
    half = (n + 1) // 2
    height = first_label + 20 * half + 14

    def across(rank: float) -> float:
        return left + (rank - 1) / max(n - 1, 1) * (width - left - right)

    parts = [line(across(1), axis, across(max(n, 2)), axis, stroke=_AXIS)]
    for rank in range(1, n + 1):
        parts.append(line(across(rank), axis - 6, across(rank), axis, stroke=_AXIS))
        parts.append(text(across(rank), axis - 10, str(rank), "middle", fill=_AXIS))
    if ranks.critical == ranks.critical:
        end = min(across(1 + ranks.critical), width - 20)
        parts.append(line(across(1), 22, end, 22, stroke="#000", stroke_width=2.0))
        parts.append(text(across(1), 15, f"critical difference {ranks.critical:.2f}", fill=_AXIS))
    for number, (start, stop) in enumerate(bars):
        y = axis + 12 + 9 * number
        low, high = across(ranks.means[start]) - 4, across(ranks.means[stop]) + 4
        parts.append(line(low, y, high, y, stroke="#333", stroke_width=3.5, stroke_linecap="round"))
    for number, (method, mean) in enumerate(zip(ranks.methods, ranks.means, strict=True)):
        on_left = number < half
        y = first_label + 20 * (number if on_left else n - 1 - number) + 8
        edge = left - 8 if on_left else width - right + 8
        words = f"{METHODS[method].title} {mean:.2f}" if on_left else f"{mean:.2f} {METHODS[method].title}"
        color = look(method).color
        parts.append(polyline([(across(mean), axis), (across(mean), y), (edge, y)], stroke=color))
        parts.append(text(edge + (-4 if on_left else 4), y + 4, words, "end" if on_left else "start"))
    return drawing(width, height, "".join(parts), f"mean ranks by {what}")


def time_against_score(seconds: dict[str, float], table: ScoreTable) -> str:
    """Each method's mean score against the mean time of one labelling.

    Parameters
    ----------
    seconds : dict of method to float
    table : ScoreTable

    Returns
    -------
    str
    """
    width, height, left, right, top, bottom = 760.0, 420.0, 56.0, 150.0, 18.0, 46.0
    times = {method: max(seconds[method], 1e-6) for method in table.methods}
    first, last = floor(log10(min(times.values()))), ceil(log10(max(times.values())) + 1e-9)
    last = max(last, first + 1)
    scores = {method: table.averages[method][0] for method in table.methods}
    marks = ticks(min(scores.values()), max(scores.values()))

    def place(time: float, score: float) -> tuple[float, float]:
        across = left + (log10(time) - first) / (last - first) * (width - left - right)
        return across, top + (marks[-1] - score) / (marks[-1] - marks[0]) * (height - top - bottom)

    parts = []
    for power in range(first, last + 1):
        x = place(10.0**power, marks[0])[0]
        parts.append(line(x, top, x, height - bottom, stroke=_GRID))
        parts.append(text(x, height - bottom + 16, f"{10.0**power:g} s", "middle", fill=_AXIS))
    for mark in marks:
        y = place(10.0**first, mark)[1]
        parts.append(line(left, y, width - right, y, stroke=_GRID))
        parts.append(text(left - 6, y + 4, f"{mark:g}", "end", fill=_AXIS))
    parts.append(text((left + width - right) / 2, height - 8, "seconds per labelling", "middle", fill=_AXIS))
    taken: list[tuple[float, float]] = []
    for method in sorted(table.methods, key=lambda name: -scores[name]):
        x, y = place(times[method], scores[method])
        words = METHODS[method].title
        height_of = _free_height(taken, x, y)
        taken.append((x, height_of))
        note = f"{words}: mean {table.score.upper()} {scores[method]:.4f}, {times[method]:.3g} s"
        if abs(height_of - y) > 6:
            parts.append(line(x, y, x + 7, height_of, stroke="#aaa"))
        parts.append(marker(look(method).shape, x, y, look(method).color, note, 4.5))
        parts.append(text(x + 9, height_of + 4, words))
    return drawing(width, height, "".join(parts), f"mean {table.score.upper()} against time")


def _free_height(taken: list[tuple[float, float]], x: float, y: float) -> float:
    """A height for a label beside (x, y) that keeps off the labels there are."""
    while any(abs(y - other) < 14 and abs(x - there) < 130 for there, other in taken):
        y += 2
    return y


def percent_color(percent: float, percents: Sequence[float]) -> str:
    """The shade of a share of labels: the more labels, the darker.

    Parameters
    ----------
    percent : float
    percents : sequence of float, all that are drawn, in order

    Returns
    -------
    str
    """
    part = list(percents).index(percent) / max(len(percents) - 1, 1)
    pale, dark = (235, 150, 90), (105, 10, 50)
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(pale, dark, strict=True))


def percent_mark(percent: float, percents: Sequence[float]) -> str:
    """A short stroke in the shade of a share of labels.

    Parameters
    ----------
    percent : float
    percents : sequence of float

    Returns
    -------
    str
    """
    stroke = line(0, 7, 26, 7, stroke=percent_color(percent, percents), stroke_width=2.2)
    return drawing(26, 14, stroke, f"{percent:g} % labelled")


def reliability_diagram(kept: Sequence[Reliability], name: str, percents: Sequence[float]) -> str:
    """How often labels are right against how often their confidence says they are; on the diagonal it is true.

    Parameters
    ----------
    kept : sequence of Reliability, of one data set and method
    name : str, the data set
    percents : sequence of float, of the whole page

    Returns
    -------
    str
    """
    lowest = min(min(one.confidence + one.accuracy) for one in kept)
    marks = ticks(min(lowest, 0.9), 1.0)
    frame, place = _frame(f"{name}: reliability", marks, marks, "confidence", lambda mark: f"{mark:g}")
    parts = [frame, polyline([place(marks[0], marks[0]), place(1.0, 1.0)], stroke=_AXIS, stroke_dasharray="3 3")]
    for one in kept:
        color = percent_color(one.percent, percents)
        where = [place(*pair) for pair in zip(one.confidence, one.accuracy, strict=True)]
        parts.append(polyline(where, stroke=color))
        for (x, y), said, was, n_rows in zip(where, one.confidence, one.accuracy, one.n_rows, strict=True):
            note = f"{one.percent:g} % labelled: confidence {said:.3f}, right {was:.3f}, {n_rows} rows"
            parts.append(marker("circle", x, y, color, f"{note} in {one.n_splits} splits", 2.6))
    return drawing(_WIDTH, _HEIGHT, "".join(parts), f"share of right labels against confidence on {name}")


def risk_diagram(kept: Sequence[Reliability], name: str, percents: Sequence[float]) -> str:
    """The share of wrong labels against the share of rows labelled, the most confident first; expected ones dashed.

    Parameters
    ----------
    kept : sequence of Reliability, of one data set and method
    name : str, the data set
    percents : sequence of float, of the whole page

    Returns
    -------
    str
    """
    marks = ticks(0.0, max(0.01, max(max(one.risk + one.expected) for one in kept)))
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    frame, place = _frame(f"{name}: wrong labels", shares, marks, "rows labelled", lambda mark: f"{100 * mark:g} %")
    parts = [frame]
    for one in kept:
        color = percent_color(one.percent, percents)
        for values, dash in ((one.expected, "4 3"), (one.risk, "none")):
            where = [place(*pair) for pair in zip(SHARES, values, strict=True)]
            parts.append(
                polyline(where, stroke=color, stroke_dasharray=dash, stroke_width=1.0 if dash != "none" else 1.8)
            )
        for share, wrong, expected in zip(SHARES, one.risk, one.expected, strict=True):
            note = f"{one.percent:g} % labelled, surest {100 * share:g} %: {wrong:.4f} wrong, {expected:.4f} expected"
            parts.append(marker("circle", *place(share, wrong), color, note, 1.8))
    return drawing(_WIDTH, _HEIGHT, "".join(parts), f"share of wrong labels against rows labelled on {name}")


_WIDTH, _HEIGHT = 330.0, 250.0


def _frame(
    title: str, across: Sequence[float], up: Sequence[float], below: str, say: Callable[[float], str]
) -> tuple[str, Place]:
    """Grid, axes and title of a small panel, and where a point of it lies."""
    left, right, top, bottom = 42.0, 20.0, 28.0, 40.0

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + (x - across[0]) / (across[-1] - across[0]) * (_WIDTH - left - right),
            top + (up[-1] - y) / (up[-1] - up[0]) * (_HEIGHT - top - bottom),
        )

    parts = [text(left, 18, title, font_weight="bold", font_size=13)]
    for mark in up:
        y = place(across[0], mark)[1]
        parts.append(line(left, y, _WIDTH - right, y, stroke=_GRID))
        parts.append(text(left - 6, y + 4, f"{mark:g}", "end", fill=_AXIS))
    for mark in across:
        parts.append(text(place(mark, up[0])[0], _HEIGHT - bottom + 16, say(mark), "middle", fill=_AXIS))
    parts.append(text((left + _WIDTH - right) / 2, _HEIGHT - 6, below, "middle", fill=_AXIS))
    return "".join(parts), place
