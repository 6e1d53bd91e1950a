"""The page of `otprop label`: what went in, what came out, how sure it is, and where to look first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Protocol

import numpy as np

from otprop.labelling.outcome import Outcome
from otprop.report._document import document
from otprop.report._looks import class_looks, clean, count, percent, swatch
from otprop.report._map import map_rows, rows_to_draw
from otprop.report._map_data import leaders, map_data
from otprop.report._map_panel import map_panel
from otprop.report.label_figures import below, coverage_curve, histogram, share_bars

__all__ = ["labelled_page", "map_rows", "rows_to_draw"]

CLASSES_SHOWN = 40  # the rest of the table opens on demand
REVIEW_CELLS, REVIEW_LENGTH = 8, 60


class Use(Protocol):
    """What was done to a column."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def width(self) -> int: ...


def labelled_page(
    outcome: Outcome,
    *,
    points: np.ndarray,
    drawn: np.ndarray,
    hover: Mapping[str, Sequence[object]],
    review: Sequence[int],
    review_cells: Mapping[str, Sequence[object]],
    uses: Sequence[Use],
    facts: Mapping[str, str],
    notes: Sequence[str],
    command: str,
    versions: Mapping[str, str],
    how: str = "pca",
) -> str:
    """One HTML file that opens without a network. Whatever comes from the table is text in it, never markup.

    Parameters
    ----------
    outcome : Outcome
    points : ndarray of shape (n_drawn, 2), where the drawn rows are on the map
    drawn : ndarray of int of shape (n_drawn,), the numbers of the drawn rows, from 0
    hover : mapping of a column's name to the cells of the drawn rows, in their order
    review : sequence of int, the numbers of the rows to review first
    review_cells : mapping of a column's name to the cells of these rows, in their order
    uses : sequence of ColumnUse, what was done to each column
    facts : mapping of str to str, what went in: the file, its kind, how it was read
    notes : sequence of str, what the user should know
    command : str, what repeats all this
    versions : mapping of str to str
    how : {"pca", "umap"}, how the map was made

    Returns
    -------
    str
    """
    drawn = np.asarray(drawn)
    sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
    looks = class_looks(sizes)
    source = clean(facts.get("file", ""))
    title = f"{clean(outcome.target, 80)} labelled" + (f": {source}" if source else "")
    body = [
        f'<header><h1>{escape(title)}</h1>{_figures(outcome)}</header><main id="page">',
        _notes(notes),
        _section("map", "The rows", map_panel(outcome, drawn, looks, sizes, how)),
        _section("classes", "Labels by class", _classes(outcome, looks, sizes)),
        _section("sure", "How sure the labels are", _sureness(outcome)),
        _section("review", "Rows to review first", _review(outcome, review, review_cells, looks)),
        _section("input", "What went in", _pairs(facts) + _columns(uses)),
        _section("sources", "Who had a say", _sources(outcome)) if outcome.sources else "",
        _section("repeat", "How to repeat it", _repeat(outcome, command, versions)),
        "</main>",
    ]
    data = map_data(outcome, points, drawn, hover, looks, review)
    return document(title, "\n".join(filter(None, body)), _file("labelled.css"), _file("labelled.js"), data)


def _file(name: str) -> str:
    return files("otprop.report").joinpath(name).read_text(encoding="utf-8")


def _section(name: str, heading: str, content: str) -> str:
    return f'<section id="{name}"><h2>{escape(heading)}</h2>{content}</section>'


def _figures(outcome: Outcome) -> str:
    """The numbers of the whole, in a line."""
    n_rows, n_given, n_none = len(outcome.codes), int(outcome.given.sum()), int(outcome.abstained.sum())
    shown = {
        "rows": count(n_rows),
        "labels given": f"{count(n_given)} <small>{percent(n_given / max(1, n_rows))}</small>",
        "labels added": count(n_rows - n_given - n_none),
        "left without": count(n_none),
        "classes": count(len(outcome.classes)),
        "rounds": count(outcome.n_rounds),
    }
    if outcome.confidence is not None:
        wrong = 1.0 - outcome.confidence[~outcome.given & ~outcome.abstained]
        shown["expected error"] = percent(float(wrong.mean())) if len(wrong) else "none added"
    shown["time"] = f"{outcome.seconds:.1f}\N{NO-BREAK SPACE}s"
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in shown.items())
    return f'<dl class="figures">{cells}</dl>'


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    lines = "".join(f"<li>{escape(clean(note, 2000))}</li>" for note in notes)
    return f'<section id="notes"><h2>To know</h2><ul>{lines}</ul></section>'


def _table(head: Iterable[tuple[str, str]], rows: Iterable[str], kind: str = "") -> str:
    """A table that scrolls by itself; heads are text with their class, rows are markup."""
    heads = "".join(f'<th scope="col" class="{how}">{escape(name)}</th>' for name, how in head)
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _td(words: str, how: str = "number") -> str:
    return f'<td class="{how}">{escape(words)}</td>'


def _classes(outcome: Outcome, looks: list[tuple[str, str]], sizes: np.ndarray) -> str:
    before = np.bincount(outcome.codes[outcome.given], minlength=len(outcome.classes))
    shares = before / max(1, before.sum()), sizes / max(1, sizes.sum())
    most = float(max(shares[0].max(initial=0), shares[1].max(initial=0)))
    added = ~outcome.given & ~outcome.abstained
    weights = np.where(added, outcome.sureness, 0.0)
    sure = np.bincount(np.maximum(outcome.codes, 0), weights=weights, minlength=len(outcome.classes))
    word = "certainty" if outcome.confidence is None else "confidence"
    head = [
        ("class", "name"),
        ("given", ""),
        ("", "quiet"),
        ("after", ""),
        ("", "quiet"),
        ("shares", "name"),
        (f"mean {word}", ""),
    ]
    rows = []
    for number, name in enumerate(outcome.classes):
        n_before, n_after = int(before[number]), int(sizes[number])
        mean = f"{sure[number] / (n_after - n_before):.3f}" if n_after > n_before else ""
        rows.append(
            f'<tr><th scope="row" class="name">{swatch(looks[number])}<bdi>{escape(clean(name))}</bdi></th>'
            + _td(count(n_before))
            + _td(percent(shares[0][number]), "number quiet")
            + _td(count(n_after))
            + _td(percent(shares[1][number]), "number quiet")
            + f'<td class="name">{share_bars(shares[0][number], shares[1][number], looks[number][0], most)}</td>'
            + _td(mean)
            + "</tr>"
        )
    n_none = int(outcome.abstained.sum())
    if n_none:
        rows.insert(
            min(len(rows), CLASSES_SHOWN),
            f'<tr><th scope="row" class="name">left without a label</th>{_td("")}{_td("", "quiet")}{_td(count(n_none))}'
            f"{_td('', 'quiet')}{_td('')}{_td('')}</tr>",
        )
    words = (
        f"Shares are of the labels there are, before (outline) and after (filled). The mean {word} is that of the "
        "labels added. The given labels need not be drawn like the rows, so the shares may well differ."
    )
    shown = _table(head, rows[: CLASSES_SHOWN + bool(n_none)])
    rest = rows[CLASSES_SHOWN + bool(n_none) :]
    if rest:
        shown += f"<details><summary>{count(len(rest))} more classes</summary>{_table(head, rest)}</details>"
    return shown + f'<p class="note">{escape(words)}</p>'


def _sureness(outcome: Outcome) -> str:
    asked = ~outcome.given
    if not asked.any():
        return "<p>All labels were given.</p>"
    figures = [(outcome.certainty[asked], "certainty", "how far the class shares of a row are from even (Eq. 12)")]
    if outcome.confidence is not None:
        said = f"how probable it is that the label is right, {_learnt(outcome)}"
        figures.append((outcome.confidence[asked], "confidence", said))
    drawn = "".join(
        f"<figure>{histogram(values, what)}<figcaption>Rows by {what}: {escape(said)}.</figcaption></figure>"
        for values, what, said in figures
    )
    if not outcome.coverage:
        reason = "This method says no confidence, so there is no error to expect."
        return f'<div class="grid">{drawn}</div><p class="note">{reason}</p>'
    words = "Expected error among the rows that get a label, when the least sure go without."
    drawn += f"<figure>{coverage_curve(outcome.coverage)}<figcaption>{words}</figcaption></figure>"
    rows = (
        f"<tr>{_td(percent(one.share))}{_td(count(one.n_rows))}{_td(percent(one.expected_error))}"
        f"{_td(f'{percent(one.low)} to {percent(one.high)}')}"
        f"{_td(below(one.confidence), 'number code')}</tr>"
        for one in outcome.coverage
    )
    head = [("labelled", ""), ("rows", ""), ("expected error", ""), ("likely", ""), ("--abstain-below", "code")]
    return f'<div class="grid">{drawn}<div>{_headline(outcome)}{_table(head, rows)}{_caution(outcome)}</div></div>'


def _learnt(outcome: Outcome) -> str:
    if outcome.n_hidden == 0:
        return "a guess here: no class has two labels, so that none could be hidden to learn from"
    return f"learnt from {count(outcome.n_hidden)} labels hidden on purpose"


def _caution(outcome: Outcome) -> str:
    words = "No label could be hidden, so the errors are a guess."
    if outcome.n_hidden:
        words = (
            f"Likely: nine times in ten, as far as {count(outcome.n_hidden)} hidden labels can tell. "
            "Labels that were not drawn at random can make it worse."
        )
    return f'<p class="note">{words}</p>'


def _headline(outcome: Outcome) -> str:
    """In words: all rows, and the largest share at half the error."""
    whole = max(outcome.coverage, key=lambda one: one.share)
    words = f"Labelling {percent(whole.share)} of the rows has an expected error of {percent(whole.expected_error)}"
    words += f" (likely {percent(whole.low)} to {percent(whole.high)})."
    best = outcome.half_error_coverage
    if best is not None:
        words += (
            f' With <code class="option">--abstain-below {below(best.confidence)}</code> it labels '
            f"{percent(best.share)} of the rows at an expected {percent(best.expected_error)}."
        )
    return f"<p>{words}</p>"


def _review(
    outcome: Outcome, review: Sequence[int], cells: Mapping[str, Sequence[object]], looks: list[tuple[str, str]]
) -> str:
    if not len(review):
        return "<p>No row needs a look: all labels were given.</p>"
    names = list(cells)[:REVIEW_CELLS]
    first, second = leaders(outcome.distributions[np.asarray(review)])
    word = "certainty" if outcome.confidence is None else "confidence"
    head = [("row", ""), ("label", "name"), (word, ""), ("runner-up", "name"), ("share", "")]
    head += [(clean(name, 40), "name") for name in names]
    rows = []
    for place, row in enumerate(review):
        code, other = int(outcome.codes[row]), int(second[place])
        best = int(first[place])
        if code >= 0 and code != best:  # the label that was given out is not the likeliest any more
            other = best
        label = f"{swatch(looks[code])}<bdi>{escape(clean(outcome.classes[code], 80))}</bdi>"
        if code < 0:
            label = f'<span class="quiet">none; likeliest</span> <bdi>{escape(clean(outcome.classes[best], 80))}</bdi>'
        values = "".join(_td(clean(cells[name][place], REVIEW_LENGTH), "name cell") for name in names)
        rows.append(
            f'<tr><td class="number"><button type="button" class="find" data-row="{row + 1}">{row + 1}</button></td>'
            f'<td class="name label">{label}</td>{_td(f"{outcome.sureness[row]:.3f}")}'
            f'<td class="name label"><bdi>{escape(clean(outcome.classes[other], 80))}</bdi></td>'
            f"{_td(f'{outcome.distributions[row, other]:.3f}')}{values}</tr>"
        )
    words = (
        "The least sure rows that differ from each other. Rows are counted from 1, without the header; the share is "
        "what the runner-up class has of the row. A row's number finds it on the map."
    )
    return f'<p class="note">{words}</p>{_table(head, rows, "review")}'


def _pairs(facts: Mapping[str, str]) -> str:
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(clean(value, 1000))}</dd>" for name, value in facts.items())
    return f'<dl class="pairs">{lines}</dl>'


def _columns(uses: Sequence[Use]) -> str:
    if not uses:
        return ""
    head = [("column", "name"), ("used as", "name"), ("what was done", "name"), ("features", "")]
    rows = (
        f'<tr{" class=quiet" if use.role == "left out" else ""}><th scope="row" class="name"><bdi>'
        f"{escape(clean(use.name, 120))}</bdi></th>{_td(use.role, 'name')}{_td(clean(use.why, 400), 'name long')}"
        f"{_td(count(use.width))}</tr>"
        for use in uses
    )
    return _table(head, rows)


def _sources(outcome: Outcome) -> str:
    head = [("source", "name"), ("weight", ""), ("right on hidden labels", "")]
    rows = (
        f'<tr><th scope="row" class="name">{escape(clean(name))}</th>{_td(f"{weight:.3f}")}{_td(_right(accuracy))}</tr>'
        for name, weight, accuracy in outcome.sources
    )
    words = "Each source says how probable each class is for each row, and counts by what it said of hidden labels."
    return f'<p class="note">{words}</p>{_table(head, rows)}'


def _right(accuracy: float) -> str:
    return percent(accuracy) if np.isfinite(accuracy) else "not known"


def _repeat(outcome: Outcome, command: str, versions: Mapping[str, str]) -> str:
    return (
        f'<pre class="command">{escape(clean(command, 4000))}</pre>'
        f"<h3>Parameters of {escape(clean(outcome.method))}</h3>{_pairs(outcome.params)}"
        f"<h3>Versions</h3>{_pairs(versions)}"
    )
