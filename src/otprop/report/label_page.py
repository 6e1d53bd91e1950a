"""The page of `otprop label`: input, labels, expected error, and the rows to review and correct."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from otprop.labelling.job import Job
from otprop.labelling.next_rows import explain_rows, rows_to_review
from otprop.labelling.outcome import Outcome
from otprop.report import charts, page_rows
from otprop.report.charts import ClassMarker
from otprop.report.page import display_text, format_count, format_percent, render_page
from otprop.report.page_rows import MAX_REVIEW_COLUMNS, CellsOf, NovelRows
from otprop.report.row_map import MAX_COLUMNS, color_scales, map_data, map_rows, rows_to_draw
from otprop.table.row_pictures import RowPictures

N_REVIEW = 20
MAX_CLASS_ROWS = 40  # the rest of the table opens on demand
MAX_CONFUSION_CLASSES = 20  # above it, a list of pairs instead of a matrix
MAX_CONFUSED_PAIRS = 15
NEW_CLASSES = 'result.add("corrections.csv", new_classes=True)'
_PACKAGES = ("otprop", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")


def make_page(
    job: Job, outcome: Outcome, *, command: str, how: str = "pca", note_text: Callable[[str], str] = str
) -> str:
    """The page as HTML, for a job that has run.

    `command` is what repeats the run, `how` ("pca" or "umap") places the rows on the map, `note_text` words a note.
    """
    table, pictures = job.table, page_rows.job_pictures(job)
    columns = _columns_to_show(job, pictures)
    file_name = name_of_path(table.origin)
    review = rows_to_review(outcome, job.vectors, N_REVIEW)
    issues = [issue.row for issue in outcome.wrong_looking[:N_REVIEW]]
    outcome = replace(outcome, explanations=explain_rows(job, outcome, review))
    novel = page_rows.novel_rows(job, outcome, review)
    strange = [] if novel is None else novel.rows
    nearest = [row for one in outcome.explanations.values() for row, _, _ in one["nearest"]]
    drawn = rows_to_draw(outcome.given, [*review, *issues, *strange], seed=job.request.seed)
    return render_label_page(
        outcome,
        points=map_rows(job.vectors, drawn, how, job.request.seed),
        drawn=drawn,
        cells=lambda rows: {name: table.cells(name)[np.asarray(rows, dtype=np.intp)].tolist() for name in columns},
        review=review,
        novel=novel,
        pictures=page_rows.page_pictures(pictures, [*review, *strange, *issues, *nearest]) if pictures else {},
        votes=page_rows.vote_sentences(job, [*review, *strange]),
        columns=job.columns,
        facts={
            "file": file_name,
            "format": table.kind,
            "rows": f"{table.n_rows}",
            "columns": f"{len(table.names)}",
            "target": outcome.target,
            "labels given": f"{int(outcome.given.sum())}, in {len(outcome.classes)} classes",
        },
        notes=[note_text(note).replace(table.origin, file_name) for note in job.notes],
        command=without_folders(command) if command.startswith("otprop ") else command,
        versions={"Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        how=how,
        file_digest=table.digest,
        earlier_corrections=[Path(file).name for file in job.request.corrections if isinstance(file, (str, Path))],
    )


def name_of_path(path: str) -> str:
    """The last part of an absolute or relative path."""
    return (PureWindowsPath(path) if PureWindowsPath(path).drive else PurePosixPath(path)).name or path


def without_folders(command: str) -> str:
    """A command in which absolute paths are names only.

    Examples
    --------
    >>> from otprop.report.label_page import without_folders
    >>> without_folders("otprop label /home/me/lots.csv --report=/tmp/page.html -o out/lots.csv")
    'otprop label lots.csv --report=page.html -o out/lots.csv'
    """

    def shorten(argument: str) -> str:
        option, equals, path = argument.rpartition("=")
        is_path = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
        return option + equals + name_of_path(path) if is_path else argument

    return shlex.join(map(shorten, shlex.split(command)))


def _columns_to_show(job: Job, pictures: RowPictures) -> list[str]:
    """Names of the columns by which a person knows a row: identifiers first, then those used as features.

    Vectors are not shown: nobody knows a row by them, and those that are pictures are shown as such.
    """
    uses = {use.name: use for use in job.features.columns if use.role != "embedding"}
    hidden = {job.request.target, None if pictures.are_files else pictures.column}
    names = [name for name in job.table.names if name not in hidden and name in uses]
    identifiers = [name for name in names if uses[name].is_identifier]
    used = [name for name in names if not uses[name].skipped]
    return list(dict.fromkeys([*identifiers, *used]))[:MAX_COLUMNS]


def render_label_page(
    outcome: Outcome,
    *,
    points: np.ndarray,
    drawn: np.ndarray,
    cells: CellsOf,
    review: Sequence[int],
    columns: Sequence[Any],
    facts: Mapping[str, str],
    notes: Sequence[str],
    command: str,
    versions: Mapping[str, str],
    novel: NovelRows | None = None,
    pictures: Mapping[int, str] | None = None,
    votes: Mapping[int, str] | None = None,
    how: str = "pca",
    file_digest: str = "",
    earlier_corrections: Sequence[str] = (),
) -> str:
    """The page from its parts.

    `drawn` and `review` are row numbers from 0; `cells` returns the cells of rows by column. `pictures` are addresses
    of pictures by row, `votes` what voters say.
    """
    sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
    markers = charts.class_markers(sizes)
    file_name = display_text(facts.get("file", ""))
    data = map_data(outcome, points, drawn, cells(drawn), markers)
    classes = _classes(outcome, markers, sizes)
    next_command = ["otprop", "label", file_name or "FILE", "--target", outcome.target, "--corrections"]
    next_step, threshold = 'result.add("corrections.csv")', "abstain_below="
    if not command.startswith("otprop.label("):
        threshold = "--abstain-below "
        next_step = shlex.join([*next_command, *earlier_corrections, "corrections.csv", "--force"])
    return render_page(
        "label_page.html",
        "label_page.css",
        ("row_map.js", "corrections.js"),
        data | {"labels": list(outcome.classes), "file_digest": file_digest},
        title=f"{display_text(outcome.target, 80)} labelled" + (f": {file_name}" if file_name else ""),
        outcome=outcome,
        figures=_figures(outcome),
        notes=notes,
        how=how,
        n_given=int(outcome.given.sum()),
        n_drawn=len(drawn),
        n_given_drawn=int(outcome.given[drawn].sum()),
        n_abstained=int(outcome.abstained.sum()),
        measure="certainty" if outcome.confidence is None else "confidence",
        scales=[(name, charts.color_scale(low, name)) for name, low in color_scales(outcome).items()],
        classes=classes[:MAX_CLASS_ROWS],
        more_classes=classes[MAX_CLASS_ROWS:],
        markers_run_out=charts.SHARED_MARKER in markers,
        charts=_charts(outcome, threshold),
        threshold=threshold,
        all_rows=max(outcome.coverage, key=lambda one: one.share, default=None),
        review=page_rows.rows_on_page(outcome, review, cells, markers),
        novel=novel,
        novel_rows=[] if novel is None else page_rows.rows_on_page(outcome, novel.rows, cells, markers),
        new_class_command=f"{next_step} --new-classes" if next_step.startswith("otprop") else NEW_CLASSES,
        pictures=pictures or {},
        votes=votes or {},
        review_columns=list(cells(review))[:MAX_REVIEW_COLUMNS],
        issues=page_rows.issues_on_page(outcome, cells, markers, N_REVIEW),
        confusion=_confusion(outcome),
        facts=facts,
        columns=columns,
        command=command,
        next_command=next_step,
        versions=versions,
    )


def _figures(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Name, value and small print of the figures at the head of the page."""
    n_rows, n_given, n_abstained = len(outcome.codes), int(outcome.given.sum()), int(outcome.abstained.sum())
    figures = [
        ("rows", format_count(n_rows), ""),
        ("labels given", format_count(n_given), format_percent(n_given / max(1, n_rows))),
        ("labels added", format_count(n_rows - n_given - n_abstained), ""),
        ("left without", format_count(n_abstained), ""),
        ("classes", format_count(len(outcome.classes)), ""),
        ("rounds", format_count(outcome.n_rounds), ""),
    ]
    expected, error_range = outcome.expected_error, outcome.error_range
    if expected is not None and outcome.given.any() and outcome.n_held_out == 0:
        figures.append(("expected error", "unknown", ""))
    elif expected is not None and error_range is not None:
        title = "expected error, rough" if outcome.shifted or outcome.seems_sorted else "expected error"
        figures.append((title, format_percent(expected), " to ".join(map(format_percent, error_range))))
    elif outcome.confidence is not None:
        figures.append(("expected error", "none added", ""))
    return [*figures, ("time", f"{outcome.seconds:.1f}\N{NO-BREAK SPACE}s", "")]


def _classes(outcome: Outcome, markers: list[ClassMarker], sizes: np.ndarray) -> list[dict[str, Any]]:
    """The rows of the table of classes."""
    given = np.bincount(outcome.codes[outcome.given], minlength=len(outcome.classes))
    before, after = given / max(1, given.sum()), sizes / max(1, sizes.sum())
    largest = float(max(before.max(initial=0), after.max(initial=0)))
    weights = np.where(outcome.given | outcome.abstained, 0.0, outcome.sureness)
    total = np.bincount(np.maximum(outcome.codes, 0), weights=weights, minlength=len(outcome.classes))
    added = sizes - given
    errors = {one.label: one for one in outcome.class_errors}
    return [
        {
            "number": number,
            "name": name,
            "icon": charts.marker_icon(markers[number]),
            "given": int(given[number]),
            "before": before[number],
            "size": int(sizes[number]),
            "after": after[number],
            "estimated": None if outcome.shares is None else outcome.shares[name],
            "bars": charts.share_bars(before[number], after[number], markers[number][0], largest),
            "errors": errors.get(name),
            "mean": f"{total[number] / added[number]:.3f}" if added[number] else "",
        }
        for number, name in enumerate(outcome.classes)
    ]


def _charts(outcome: Outcome, threshold: str) -> dict[str, Any] | None:
    """Charts by what they show; None where all labels were given."""
    added, confidence = ~outcome.given, outcome.confidence
    if not added.any():
        return None
    return {
        "certainty": charts.histogram(outcome.certainty[added], "certainty"),
        "confidence": None if confidence is None else charts.histogram(confidence[added], "confidence"),
        "coverage": charts.coverage_chart(outcome.coverage, threshold) if outcome.coverage else None,
    }


def _confusion(outcome: Outcome) -> dict[str, Any] | None:
    """Held-out labels by given class and by the class found, or the most frequent confusions of many classes."""
    if outcome.confusion is None:
        return None
    matrix, classes = outcome.confusion
    if len(classes) <= MAX_CONFUSION_CLASSES:
        shades = np.ceil(9 * matrix / np.maximum(1, matrix.sum(axis=1, keepdims=True))).astype(int)
        rows = [list(zip(*pair, strict=True)) for pair in zip(matrix.tolist(), shades.tolist(), strict=True)]
        return {"classes": classes, "rows": rows, "pairs": []}
    wrong = matrix * ~np.eye(len(classes), dtype=bool)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSED_PAIRS]
    pairs = [(classes[i], classes[j], wrong[i, j]) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)]
    return {"classes": classes, "rows": [], "pairs": [pair for pair in pairs if pair[2] > 0]}
