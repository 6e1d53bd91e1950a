"""Rows on the page: to review, like no labelled class, with a label that looks wrong; their votes and pictures."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from otprop.labelling.job import Job
from otprop.labelling.outcome import Outcome
from otprop.report.charts import ClassMarker, marker_icon
from otprop.report.row_map import top_two_classes
from otprop.table.row_pictures import NoPictureError, RowPictures, pictures_of_table

MAX_REVIEW_COLUMNS = 8
MAX_EXPLAINED_CLASSES = 5
VOTES = "votes"  # the source of evidence, which without the votes of a row says nothing of it
MIN_NOVELTY = 0.95  # fewer than one in twenty rows of a labelled class are so unlike it
N_NOVEL = 20
SIDE = 112  # pixels of a picture
MAX_PICTURES = 250
MAX_BYTES = 3_000_000  # of all pictures of a page

CellsOf = Callable[[Sequence[int] | np.ndarray], Mapping[str, Sequence[object]]]  # rows to their cells, by column


def rows_on_page(
    outcome: Outcome, rows: Sequence[int], cells: CellsOf, markers: list[ClassMarker]
) -> list[dict[str, Any]]:
    """The rows of a table of rows to review."""
    lines = _cells_by_row(cells, rows)
    first, second = top_two_classes(outcome.distributions[np.asarray(rows, dtype=np.intp)])
    found = []
    for place, row in enumerate(rows):
        code, likeliest, other = int(outcome.codes[row]), int(first[place]), int(second[place])
        if code not in (-1, likeliest):  # later rounds made another class the likeliest
            other = likeliest
        found.append(
            {
                "number": row + 1,
                "code": code,
                "label": outcome.classes[code if code >= 0 else likeliest],
                "icon": marker_icon(markers[code]) if code >= 0 else None,
                "sureness": outcome.sureness[row],
                "runner_up": outcome.classes[other],
                "runner_up_share": outcome.distributions[row, other],
                "cells": lines[place],
                "why": _why(outcome, row, outcome.explanations.get(row)),
            }
        )
    return found


def issues_on_page(outcome: Outcome, cells: CellsOf, markers: list[ClassMarker], most: int) -> list[dict[str, Any]]:
    """The rows of the table of labels that look wrong."""
    issues = outcome.wrong_looking[:most]
    lines = _cells_by_row(cells, [issue.row for issue in issues])
    return [
        {
            "number": issue.row + 1,
            "code": int(outcome.codes[issue.row]),
            "given": outcome.classes[outcome.codes[issue.row]],
            "icon": marker_icon(markers[outcome.codes[issue.row]]),
            "suggested": str(issue.suggested),
            "probability": issue.probability,
            "cells": lines[place],
        }
        for place, issue in enumerate(issues)
    ]


def _why(outcome: Outcome, row: int, explanation: Any) -> dict[str, Any]:
    """Class probabilities of a row, by source where there is an explanation, and the nearest labelled rows."""
    shares = dict(zip(outcome.classes, outcome.distributions[row].tolist(), strict=True))
    sources = {name: one for name, one in explanation["sources"].items() if name != VOTES} if explanation else {}
    leading = sorted(shares, key=lambda name: -shares[name])[:MAX_EXPLAINED_CLASSES]
    leading += [max(found, key=lambda name: found[name]) for found in sources.values() if found]
    classes = list(dict.fromkeys(leading))
    table = [(source, [found.get(name, 0.0) for name in classes]) for source, found in sources.items()]
    return {
        "classes": classes,
        "sources": [*table, ("result", [shares[name] for name in classes])],
        "nearest": explanation["nearest"] if explanation else [],
    }


def _cells_by_row(cells: CellsOf, rows: Sequence[int]) -> list[tuple[object, ...]]:
    return list(zip(*list(cells(rows).values())[:MAX_REVIEW_COLUMNS], strict=True)) or [()] * len(rows)


@dataclass(frozen=True)
class NovelRows:
    """Rows that look like no labelled class.

    Attributes
    ----------
    share, low, high : float, estimated share of such rows among those without a given label, and its 90 % interval
    rows : list of int, the strangest first
    """

    share: float
    low: float
    high: float
    rows: list[int] = field(default_factory=list)


def novel_rows(job: Job, outcome: Outcome, shown: Collection[int]) -> NovelRows | None:
    """The rows to look at, without those that are shown already; None where no new class is expected."""
    share = float(getattr(job.estimator, "novel_share_", 0.0))
    if outcome.novelty is None or share <= 0:
        return None
    low, high = job.estimator.novel_range_
    rows = np.flatnonzero(~outcome.given & (outcome.novelty >= MIN_NOVELTY))
    rows = rows[np.lexsort((rows, outcome.sureness[rows], -outcome.novelty[rows]))]
    known = set(shown)
    return NovelRows(share, float(low), float(high), [int(row) for row in rows if int(row) not in known][:N_NOVEL])


def vote_sentences(job: Job, rows: Iterable[int]) -> dict[int, str]:
    """The votes on some rows, by row: "3 of 4 say Elstar, 1 says Gala"; empty without votes."""
    if job.votes is None:
        return {}
    return {row: _sentence(job.votes.iloc[row].dropna().astype(int).tolist(), job.target.classes) for row in rows}


def _sentence(codes: list[int], classes: list[str]) -> str:
    if not codes:
        return "no voter says anything"
    counts = Counter(codes).most_common()
    words = [f"{n} {'says' if n == 1 else 'say'} {classes[code]}" for code, n in counts]
    return ", ".join([words[0].replace(" ", f" of {len(codes)} ", 1), *words[1:]])


def job_pictures(job: Job) -> RowPictures:
    """The pictures of the rows of a job whose features are fitted: of its image column, or of an array."""
    table = job.table
    folder = table.folder or (Path() if table.path is None else table.path.parent)
    column = next((use.name for use in job.features.columns if use.role == "image"), None)
    cells = None if column is None else table.cells(column)
    return pictures_of_table(table, folder, column, lambda row: None if cells is None else cells[row])


def page_pictures(pictures: RowPictures, rows: Iterable[int]) -> dict[int, str]:
    """Addresses that hold the pictures of some rows, by row, the first ones until the page would get too large.

    A picture that cannot be shown is missing; the notes of the run name those that cannot be read.
    """
    found: dict[int, str] = {}
    left = MAX_BYTES
    for row in dict.fromkeys(rows):
        if not pictures.has(row) or len(found) >= MAX_PICTURES or left <= 0:
            continue
        try:
            data, kind = pictures.of_row(row, SIDE)
        except NoPictureError:
            continue
        if len(data) <= left:  # without Pillow a picture comes as it is
            found[row] = f"data:{kind};base64,{b64encode(data).decode()}"
            left -= len(data)
    return found
