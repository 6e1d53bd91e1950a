"""Charts of the benchmark page: scores against labels, mean ranks, time against score, confidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isnan, log10

from otprop.report.charts import Chart, Element, Point, line, marker, polyline, text, ticks
from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.ranks import Ranks
from otprop_paper.benchmark.reliability import SHARES, Reliability
from otprop_paper.benchmark.tables import ScoreEntry, ScoreTable

Place = Callable[[float, float], Point]


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn."""

    color: str
    shape: str = "circle"
    dash: str = "none"
    width: float = 1.4


_STYLES = {
    "otp": MethodStyle("#c2182b", "circle", width=2.8),
    "otp-paper": MethodStyle("#ef7f1a", "square", width=2.2),
    "released": MethodStyle("#8c564b", "diamond", width=2.2),
    "lp": MethodStyle("#1f77b4", "circle"),
    "ls": MethodStyle("#0f9fb0", "square"),
    "ls-knn": MethodStyle("#0f9fb0", "diamond", "5 3"),
    "lnp": MethodStyle("#7b52ab", "triangle"),
    "cnmf": MethodStyle("#8a8a8a", "diamond"),
    "plcc": MethodStyle("#a3a51c", "triangle"),
    "1nn": MethodStyle("#2ca02c", "circle"),
    "vote": MethodStyle("#67b267", "square"),
    "logistic": MethodStyle("#d65fb0", "circle"),
    "trees": MethodStyle("#222222", "square"),
    "self-logistic": MethodStyle("#d65fb0", "triangle", "5 3"),
    "self-trees": MethodStyle("#222222", "diamond", "5 3"),
}
_GRID, _AXIS = "#e4e4e4", "#555555"
_WIDTH, _HEIGHT = 330.0, 250.0  # of a small chart


def method_style(method: str) -> MethodStyle:
    """The style of a method, the same in every chart."""
    return _STYLES.get(method, MethodStyle("#444444"))


def method_key(method: str) -> Chart:
    """The line and marker of a method, for a legend."""
    style = method_style(method)
    stroke = line(0, 7, 26, 7, stroke=style.color, stroke_width=style.width, stroke_dasharray=style.dash)
    return Chart(26, 14, [stroke, marker(style.shape, 13, 7, style.color)], METHODS[method].title)


def score_chart(table: ScoreTable, dataset: str) -> Chart:
    """The score of every method against the share of labels on one data set."""
    percents = sorted({percent for name, percent in table.cells if name == dataset})
    entries = {key: entry for key, entry in table.entries.items() if key[0] == dataset}
    marks = ticks(min(entry.ours for entry in entries.values()), max(entry.ours for entry in entries.values()))
    left, right, top, bottom = 42.0, 12.0, 28.0, 40.0
    span = (percents[-1] - percents[0]) or 1.0

    def place(percent: float, value: float) -> Point:
        share = (percent - percents[0]) / span if len(percents) > 1 else 0.5
        x = left + 8 + share * (_WIDTH - left - right - 16)
        return x, top + (marks[-1] - value) / (marks[-1] - marks[0]) * (_HEIGHT - top - bottom)

    shapes = [text(left, 18, f"{dataset}: {table.score.upper()}", font_weight="bold", font_size=13)]
    shapes += _y_axis(marks, left, _WIDTH - right, place, percents[0])
    for percent in percents:
        shapes.append(text(place(percent, marks[0])[0], _HEIGHT - bottom + 16, f"{percent:g} %", "middle", fill=_AXIS))
    shapes.append(text((left + _WIDTH - right) / 2, _HEIGHT - 6, "rows labelled", "middle", fill=_AXIS))
    for method in reversed(table.methods):  # the first are drawn on top
        shapes += _curve(
            method, [(p, entries[dataset, p, method]) for p in percents if (dataset, p, method) in entries], place
        )
    return Chart(_WIDTH, _HEIGHT, shapes, f"{table.title} against the share of labels on {dataset}")


def _y_axis(marks: Sequence[float], left: float, right: float, place: Place, x: float) -> list[Element]:
    shapes = []
    for mark in marks:
        y = place(x, mark)[1]
        shapes += [line(left, y, right, y, stroke=_GRID), text(left - 6, y + 4, f"{mark:g}", "end", fill=_AXIS)]
    return shapes


def _curve(method: str, entries: list[tuple[float, ScoreEntry]], place: Place) -> list[Element]:
    style, title = method_style(method), METHODS[method].title
    points = [place(percent, entry.ours) for percent, entry in entries]
    shapes = [polyline(points, stroke=style.color, stroke_width=style.width, stroke_dasharray=style.dash)]
    for (x, y), (percent, entry) in zip(points, entries, strict=True):
        note = f"{title}, {percent:g} %: {entry.ours:.4f}{', thinned' if entry.thinned else ''}"
        shapes.append(marker(style.shape, x, y, style.color, note))
    return shapes


def rank_chart(ranks: Ranks, score: str) -> Chart:
    """Mean ranks on an axis, the best on the left; bars join methods that do not differ significantly."""
    n_methods, bars = len(ranks.methods), ranks.groups()
    width, left, right, axis = 760.0, 170.0, 170.0, 64.0
    first_label = axis + 22 + 9 * len(bars)
    half = (n_methods + 1) // 2

    def across(rank: float) -> float:
        return left + (rank - 1) / max(n_methods - 1, 1) * (width - left - right)

    shapes = [line(across(1), axis, across(max(n_methods, 2)), axis, stroke=_AXIS)]
    for rank in range(1, n_methods + 1):
        shapes.append(line(across(rank), axis - 6, across(rank), axis, stroke=_AXIS))
        shapes.append(text(across(rank), axis - 10, str(rank), "middle", fill=_AXIS))
    if not isnan(ranks.critical):
        end = min(across(1 + ranks.critical), width - 20)
        shapes.append(line(across(1), 22, end, 22, stroke="#000", stroke_width=2.0))
        shapes.append(text(across(1), 15, f"critical difference {ranks.critical:.2f}", fill=_AXIS))
    for number, (start, stop) in enumerate(bars):
        y = axis + 12 + 9 * number
        low, high = across(ranks.means[start]) - 4, across(ranks.means[stop]) + 4
        shapes.append(line(low, y, high, y, stroke="#333", stroke_width=3.5, stroke_linecap="round"))
    for number, (method, mean) in enumerate(zip(ranks.methods, ranks.means, strict=True)):
        on_left = number < half
        y = first_label + 20 * (number if on_left else n_methods - 1 - number) + 8
        edge = left - 8 if on_left else width - right + 8
        label = f"{METHODS[method].title} {mean:.2f}" if on_left else f"{mean:.2f} {METHODS[method].title}"
        corners = [(across(mean), axis), (across(mean), y), (edge, y)]
        shapes.append(polyline(corners, stroke=method_style(method).color))
        shapes.append(text(edge + (-4 if on_left else 4), y + 4, label, "end" if on_left else "start"))
    return Chart(width, first_label + 20 * half + 14, shapes, f"mean ranks by {score}")


def time_chart(seconds: dict[str, float], table: ScoreTable) -> Chart:
    """The mean score of each method against the mean time of one labelling."""
    width, height, left, right, top, bottom = 760.0, 420.0, 56.0, 150.0, 18.0, 46.0
    times = {method: max(seconds[method], 1e-6) for method in table.methods}
    first, last = floor(log10(min(times.values()))), ceil(log10(max(times.values())) + 1e-9)
    last = max(last, first + 1)
    scores = {method: table.averages[method][0] for method in table.methods}
    marks = ticks(min(scores.values()), max(scores.values()))

    def place(time: float, score: float) -> Point:
        x = left + (log10(time) - first) / (last - first) * (width - left - right)
        return x, top + (marks[-1] - score) / (marks[-1] - marks[0]) * (height - top - bottom)

    shapes = []
    for power in range(first, last + 1):
        x = place(10.0**power, marks[0])[0]
        shapes.append(line(x, top, x, height - bottom, stroke=_GRID))
        shapes.append(text(x, height - bottom + 16, f"{10.0**power:g} s", "middle", fill=_AXIS))
    shapes += _y_axis(marks, left, width - right, place, 10.0**first)
    shapes.append(text((left + width - right) / 2, height - 8, "seconds per labelling", "middle", fill=_AXIS))
    taken: list[Point] = []
    for method in sorted(table.methods, key=lambda name: -scores[name]):
        x, y = place(times[method], scores[method])
        style, title = method_style(method), METHODS[method].title
        label_y = _free_height(taken, x, y)
        taken.append((x, label_y))
        note = f"{title}: mean {table.score.upper()} {scores[method]:.4f}, {times[method]:.3g} s"
        if abs(label_y - y) > 6:
            shapes.append(line(x, y, x + 7, label_y, stroke="#aaa"))
        shapes += [marker(style.shape, x, y, style.color, note, 4.5), text(x + 9, label_y + 4, title)]
    return Chart(width, height, shapes, f"mean {table.score.upper()} against time")


def _free_height(taken: list[Point], x: float, y: float) -> float:
    """A height at which a label beside (x, y) overlaps no other."""
    while any(abs(y - other_y) < 14 and abs(x - other_x) < 130 for other_x, other_y in taken):
        y += 2
    return y


def percent_color(percent: float, percents: Sequence[float]) -> str:
    """The shade of one of the percentages drawn: the more labels, the darker."""
    part = list(percents).index(percent) / max(len(percents) - 1, 1)
    pale, dark = (235, 150, 90), (105, 10, 50)
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(pale, dark, strict=True))


def percent_key(percent: float, percents: Sequence[float]) -> Chart:
    """A line in the shade of a percentage, for a legend."""
    stroke = line(0, 7, 26, 7, stroke=percent_color(percent, percents), stroke_width=2.2)
    return Chart(26, 14, [stroke], f"{percent:g} % labelled")


def reliability_chart(pooled: Sequence[Reliability], dataset: str, percents: Sequence[float]) -> Chart:
    """Accuracy against confidence; a calibrated confidence is on the diagonal."""
    lowest = min(min(one.confidence + one.accuracy) for one in pooled)
    marks = ticks(min(lowest, 0.9), 1.0)
    shapes, place = _frame(f"{dataset}: reliability", marks, marks, "confidence", lambda mark: f"{mark:g}")
    shapes.append(polyline([place(marks[0], marks[0]), place(1.0, 1.0)], stroke=_AXIS, stroke_dasharray="3 3"))
    for one in pooled:
        color = percent_color(one.percent, percents)
        points = [place(*pair) for pair in zip(one.confidence, one.accuracy, strict=True)]
        shapes.append(polyline(points, stroke=color))
        for point, confidence, right, n_rows in zip(points, one.confidence, one.accuracy, one.n_rows, strict=True):
            note = f"{one.percent:g} % labelled: confidence {confidence:.3f}, right {right:.3f}, {n_rows} rows"
            shapes.append(marker("circle", *point, color, f"{note} in {one.n_splits} splits", 2.6))
    return Chart(_WIDTH, _HEIGHT, shapes, f"share of right labels against confidence on {dataset}")


def risk_chart(pooled: Sequence[Reliability], dataset: str, percents: Sequence[float]) -> Chart:
    """Error rate against the share of rows labelled, the most confident first; the expected one dashed."""
    marks = ticks(0.0, max(0.01, max(max(one.risk + one.expected) for one in pooled)))
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    title = f"{dataset}: wrong labels"
    shapes, place = _frame(title, shares, marks, "rows labelled", lambda mark: f"{100 * mark:g} %")
    for one in pooled:
        color = percent_color(one.percent, percents)
        for values, dash, width in ((one.expected, "4 3", 1.0), (one.risk, "none", 1.8)):
            points = [place(*pair) for pair in zip(SHARES, values, strict=True)]
            shapes.append(polyline(points, stroke=color, stroke_dasharray=dash, stroke_width=width))
        for share, wrong, expected in zip(SHARES, one.risk, one.expected, strict=True):
            surest = f"{one.percent:g} % labelled, most confident {100 * share:g} %"
            note = f"{surest}: {wrong:.4f} wrong, {expected:.4f} expected"
            shapes.append(marker("circle", *place(share, wrong), color, note, 1.8))
    return Chart(_WIDTH, _HEIGHT, shapes, f"share of wrong labels against rows labelled on {dataset}")


def _frame(
    title: str, xs: Sequence[float], ys: Sequence[float], x_label: str, x_text: Callable[[float], str]
) -> tuple[list[Element], Place]:
    """Grid, axes and title of a small chart, and the function that places a point in it."""
    left, right, top, bottom = 42.0, 20.0, 28.0, 40.0

    def place(x: float, y: float) -> Point:
        return (
            left + (x - xs[0]) / (xs[-1] - xs[0]) * (_WIDTH - left - right),
            top + (ys[-1] - y) / (ys[-1] - ys[0]) * (_HEIGHT - top - bottom),
        )

    shapes = [text(left, 18, title, font_weight="bold", font_size=13)]
    shapes += _y_axis(ys, left, _WIDTH - right, place, xs[0])
    for mark in xs:
        shapes.append(text(place(mark, ys[0])[0], _HEIGHT - bottom + 16, x_text(mark), "middle", fill=_AXIS))
    shapes.append(text((left + _WIDTH - right) / 2, _HEIGHT - 6, x_label, "middle", fill=_AXIS))
    return shapes, place
