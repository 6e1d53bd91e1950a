"""One self-contained page: tables, figures and where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from otprop.benchmark.methods import METHODS
from otprop.benchmark.output import Origin
from otprop.benchmark.ranks import Ranks, mean_ranks
from otprop.benchmark.reliability import Reliability, reliabilities
from otprop.benchmark.tables import NOT_RUN, ResultRow, ScoreEntry, ScoreTable, make_table, mean_seconds
from otprop.report.figures import (
    curves,
    legend_mark,
    percent_mark,
    rank_diagram,
    reliability_diagram,
    risk_diagram,
    time_against_score,
)

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1320px; padding: 1.2rem clamp(0.8rem, 3vw, 2.5rem) 4rem; color: #1b1b1b;
  background: #fff; font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.4rem 0; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 0.4rem; border-bottom: 1px solid #ddd; padding-bottom: 0.2rem; }
p { max-width: 76ch; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.1rem 0.9rem; margin: 0.8rem 0; }
dt { color: #666; }
dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.86em; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.82rem; }
th, td { padding: 0.16rem 0.5rem; text-align: right; white-space: nowrap; vertical-align: top; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
th.name { text-align: left; position: sticky; left: 0; background: #fff; }
tbody.cell { border-bottom: 1px solid #eee; }
tr.paper td, tr.paper th { color: #666; }
td.best { font-weight: 700; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; padding: 0; margin: 0.6rem 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 0.4rem; }
.legend svg { width: 26px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)); gap: 0.8rem 2rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 0.4rem 0.8rem; }
.scroll > svg { min-width: 620px; }
svg { max-width: 100%; height: auto; font: 11.5px system-ui, "DejaVu Sans", sans-serif; display: block; }
figure { margin: 0.8rem 0; }
figcaption, .note { color: #555; font-size: 0.86rem; max-width: 90ch; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; color: #124f8c; }
@media print { details > * { display: block; } }
"""


def page(lines: Sequence[ResultRow], origin: Origin, heading: str, about: str) -> str:
    """The page of a run.

    Parameters
    ----------
    lines : sequence of dict, of one way of tuning and of drawing labels
    origin : Origin
    heading : str
    about : str, how the parameters were chosen and the labels drawn

    Returns
    -------
    str
    """
    main = [make_table(lines, score) for score in ("nmi", "ari")]
    other = [make_table(lines, "accuracy")]
    other += [make_table(lines, score, "all") for score in ("nmi", "ari", "accuracy")]
    body = [
        f"<h1>{escape(heading)}</h1>",
        f"<p>{escape(about)}</p>",
        "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in origin.items()) + "</dl>",
        *(f"<h2>{escape(table.title)}</h2>{_table(table)}" for table in main),
        "<h2>Scores against the share of labels</h2>",
        _curves(main),
        "<h2>Mean ranks</h2>",
        *(_ranks(mean_ranks(table), table) for table in main),
        "<h2>Time against score</h2>",
        _times(lines, main[0]),
        _confidence(lines),
        "<h2>The other scores</h2>",
        *(f"<details><summary>{escape(table.title)}</summary>{_table(table)}</details>" for table in other),
        "<h2>Chosen values</h2>",
        _chosen(lines),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<link rel="icon" href="data:,"><title>{escape(heading)}</title><style>{_STYLE}</style></head><body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _table(table: ScoreTable) -> str:
    head = "".join(f"<th>{escape(METHODS[method].title)}</th>" for method in table.methods)
    rows = [f'<thead><tr><th class="name">data set</th><th>labelled</th>{head}</tr></thead>']
    for dataset, percent in table.cells:
        entries = [table.entries.get((dataset, percent, method)) for method in table.methods]
        body = _row(dataset, f"{percent:g} %", [_ours(entry) for entry in entries])
        if any(entry is not None and entry.paper is not None for entry in entries):
            papers = [_td("" if e is None or e.paper is None else f"{e.paper:.4f}") for e in entries]
            gaps = [_td("" if e is None or e.difference is None else f"{e.difference:+.4f}") for e in entries]
            body += _row("", "paper", papers, "paper") + _row("", "difference", gaps, "paper")
        rows.append(f'<tbody class="cell">{body}</tbody>')
    means = [_td(table.mean_text(method)) for method in table.methods]
    rows.append(f'<tbody class="cell">{_row("mean", "", means)}</tbody>')
    notes = "".join(f"<br>† {escape(note)}." for note in table.notes)
    words = "Means over the splits; the best in bold."
    if any(entry.paper is not None for entry in table.entries.values()):
        words += " Below ours the figure that the paper prints, and ours minus that."
    legend = f'<p class="note">{escape(words)}{notes}</p>'
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>{legend}'


def _row(name: str, what: str, cells: list[str], kind: str = "") -> str:
    start = f'<tr class="{kind}">' if kind else "<tr>"
    return f'{start}<th class="name">{escape(name)}</th><td>{escape(what)}</td>{"".join(cells)}</tr>'


def _td(words: str, kind: str = "", title: str = "") -> str:
    attributes = (f' class="{kind}"' if kind else "") + (f' title="{escape(title)}"' if title else "")
    return f"<td{attributes}>{escape(words)}</td>"


def _ours(entry: ScoreEntry | None) -> str:
    if entry is None:
        return _td(NOT_RUN)
    note = f"standard deviation {entry.spread:.4f} over {entry.n_splits} splits"
    words = f"{entry.ours:.4f}" + ("†" if entry.thinned else "")
    return _td(words, "best" if entry.best else "", note)


def _curves(tables: list[ScoreTable]) -> str:
    marks = "".join(f"<li>{legend_mark(m)}{escape(METHODS[m].title)}</li>" for m in tables[0].methods)
    names = dict.fromkeys(dataset for dataset, _ in tables[0].cells)
    drawings = "".join(f'<figure class="pair">{"".join(curves(t, name) for t in tables)}</figure>' for name in names)
    return f'<ul class="legend">{marks}</ul><div class="grid">{drawings}</div>'


def _friedman(ranks: Ranks) -> str:
    if ranks.p_value != ranks.p_value:
        return ""
    return f" Friedman's test that all methods are alike: p = {ranks.p_value:.2g}."


def _ranks(ranks: Ranks, table: ScoreTable) -> str:
    words = f"{table.title}: mean ranks over {ranks.n_cells} cells (data set and percentage), 1 is best."
    if ranks.n_cells < len(table.cells):
        words += f" The other {len(table.cells) - ranks.n_cells} cells lack a method."
    if ranks.critical == ranks.critical:
        words += (
            f"{_friedman(ranks)} Bars join methods that Nemenyi's "
            "test at 5 % does not tell apart. The percentages of one data set are not independent: read the bars as "
            "a sketch, not as proof."
        )
    return _figure(rank_diagram(ranks, table.title), words)


def _times(lines: Sequence[ResultRow], table: ScoreTable) -> str:
    words = (
        "Mean over all cells in which a method was run. The time of a labelling is what it took in this run, on one "
        "core and without tuning; work that splits share (a graph, a factor) is divided among them."
    )
    return _figure(time_against_score(mean_seconds(lines), table), words)


def _confidence(lines: Sequence[ResultRow]) -> str:
    """A section on the methods that say how confident they are; nothing where none does."""
    kept = reliabilities(lines)
    if not kept:
        return ""
    percents = sorted({one.percent for group in kept.values() for one in group})
    marks = "".join(f"<li>{percent_mark(p, percents)}{p:g} % labelled</li>" for p in percents)
    parts = []
    for method in dict.fromkeys(method for _, method in kept):
        groups = {dataset: group for (dataset, name), group in kept.items() if name == method}
        drawings = "".join(
            '<figure class="pair">'
            f"{reliability_diagram(group, dataset, percents)}{risk_diagram(group, dataset, percents)}</figure>"
            for dataset, group in groups.items()
        )
        n_splits = sorted({one.n_splits for group in groups.values() for one in group})
        splits = f"{n_splits[0]}" if len(n_splits) == 1 else f"{n_splits[0]} to {n_splits[-1]}"
        words = (
            f"{METHODS[method].title}, unlabelled rows only, {splits} splits a percentage. On the left each point is a "
            "fifteenth of the rows of every split, the same fifteenth of all splits taken together, so that errors "
            "that differ from split to split may cancel in it; below the dashed line the method is too sure of itself. "
            "On the right the share of wrong labels when only the most confident rows are labelled, and dashed what "
            "the confidence says it is."
        )
        parts.append(
            f'<ul class="legend">{marks}</ul><div class="grid">{drawings}</div>'
            f'<p class="note">{escape(words)}</p>{_calibration_errors(groups, percents)}'
        )
    return "<h2>Confidence</h2>" + "".join(parts)


def _calibration_errors(groups: dict[str, list[Reliability]], percents: list[float]) -> str:
    head = "".join(f"<th>{percent:g} %</th>" for percent in percents)
    rows = ""
    for dataset, group in groups.items():
        found = {one.percent: one for one in group}
        cells = [_error_cell(found.get(percent)) for percent in percents]
        rows += f'<tr><th class="name">{escape(dataset)}</th>{"".join(cells)}</tr>'
    words = (
        "Expected calibration error in 15 bins of equal mass, computed split by split, then the mean over the splits. "
        "With few rows a bin chance alone makes it larger than zero."
    )
    return (
        f'<div class="scroll"><table><thead><tr><th class="name">data set</th>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="note">{escape(words)}</p>'
    )


def _error_cell(one: Reliability | None) -> str:
    if one is None:
        return _td("")
    return _td(f"{one.ece:.4f}", title=f"{sum(one.n_rows) // one.n_splits} rows in {len(one.n_rows)} bins, a split")


def _figure(drawn: str, words: str) -> str:
    return f'<figure><div class="scroll">{drawn}</div><figcaption>{escape(words)}</figcaption></figure>'


def _chosen(lines: Sequence[ResultRow]) -> str:
    groups: dict[tuple[str, str, float], Counter[str]] = {}
    for line in lines:
        if line["n_candidates"] > 1:
            words = ", ".join(f"{name} {value:g}" for name, value in line["params"].items())
            note = f"{words} ({line['chosen_by']})"
            groups.setdefault((line["dataset"], line["method"], line["percent"]), Counter())[note] += 1
    if not groups:
        return "<p>No method of this run had anything to choose.</p>"
    rows = "".join(
        f'<tr><th class="name">{escape(dataset)}</th><td>{escape(METHODS[method].title)}</td><td>{percent:g} %</td>'
        f'<td style="text-align:left;white-space:normal">'
        f"{escape('; '.join(f'{count} x {words}' for words, count in counter.most_common()))}</td></tr>"
        for (dataset, method, percent), counter in groups.items()
    )
    head = (
        "<thead><tr><th class='name'>data set</th><th>method</th><th>labelled</th><th>splits x values</th></tr></thead>"
    )
    units = "sigma in median nearest-neighbour distances, epsilon in their squares."
    return (
        f"<details><summary>Parameters used, split by split ({escape(units)})</summary>"
        f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div></details>'
    )
