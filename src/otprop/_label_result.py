"""The result of labelling a table: look at it, write it, and go on with more labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop.files import write_atomic
from otprop.labelling.corrections import has_index, read_corrections
from otprop.labelling.job import Job
from otprop.labelling.model import save_model
from otprop.labelling.next_rows import needed_for, rows_to_fill_in, suggest_next
from otprop.labelling.outcome import Outcome
from otprop.labelling.output_columns import (
    OutputColumns,
    fill_column,
    label_column,
    output_column_names,
    output_columns,
    refuse_taken,
)
from otprop.labelling.review import rows_to_review
from otprop.loop.label_issues import LabelIssue
from otprop.loop.labels_needed import LabelsNeeded
from otprop.propagation.calibration import Coverage
from otprop.table.errors import RequestError
from otprop.table.frame import in_type_of, is_polars, take_rows, with_columns

MOST_CLASSES = 20  # rows of the summary in a notebook


@dataclass(frozen=True, eq=False)
class LabelResult:
    """A labelled table.

    Attributes
    ----------
    job : Job, the request, the table, its columns and notes
    outcome : Outcome, labels, distributions, certainty and confidence in the order of the rows
    output : OutputColumns, which columns are added
    call : str, what repeats this
    frame : DataFrame that was labelled, or None

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> weights, kinds = [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], ["light", None, None, "heavy", None, None]
    >>> result = otprop.label(pd.DataFrame({"weight": weights, "kind": kinds}), "kind")
    >>> result.table["kind_label"].tolist()
    ['light', 'light', 'light', 'heavy', 'heavy', 'heavy']
    >>> result = result.add({1: "light"})  # the next turn
    >>> result.table["kind_source"].tolist()[:3]
    ['given', 'corrected', 'propagated']
    """

    job: Job
    outcome: Outcome
    output: OutputColumns
    call: str
    frame: Any = None

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.job.estimator

    @property
    def notes(self) -> list[str]:
        """What to know of the table, the target and the fit."""
        return self.job.notes

    @cached_property
    def table(self) -> Any:
        """The table with the output columns added: a DataFrame of the kind that came in, of pandas for a file."""
        columns, fill = self._columns()
        frame = self.job.table.frame() if self.frame is None else self.frame
        if fill is not None:
            name, labels = fill
            kept = np.array([one is None for one in labels]) & self.job.in_table
            columns = {name: np.where(kept, self.job.table.cells(name), labels), **columns}
        if not is_polars(frame) and self.job.target.name in self.job.table.names:
            name = output_column_names(self.job.target, self.output, confidence=False)[0] if fill is None else name
            columns[name] = self._like_target(columns[name], frame)
        return with_columns(frame, columns)

    def _like_target(self, labels: np.ndarray, frame: Any) -> Any:
        """Labels as the target column of the frame of pandas has them, and in its type."""
        table, target = self.job.table, self.job.target
        column, cells = frame.iloc[:, table.names.index(target.name)], table.cells(target.name)
        rows = np.flatnonzero(self.job.in_table)[::-1]
        there = dict(zip(np.asarray(cells, dtype=object)[rows], column.iloc[rows], strict=True))
        return in_type_of(column, [there.get(one, one) for one in labels])

    def _columns(self) -> tuple[dict[str, Any], tuple[str, np.ndarray] | None]:
        """The columns to add, and the target with what to fill into it."""
        target, outcome = self.job.target, self.outcome
        columns = output_columns(target, outcome, self.output)
        if not self.output.fill:
            return columns, None
        if target.name not in self.job.table.names:
            return {target.name: label_column(target, outcome), **columns}, None
        return columns, (target.name, fill_column(target, outcome))

    def review(self, n: int = 20) -> Any:
        """The rows of `table` to look at first: the least certain ones that differ from each other.

        Parameters
        ----------
        n : int, how many

        Returns
        -------
        DataFrame
        """
        return take_rows(self.table, rows_to_review(self.outcome, self.job.vectors, n))

    @property
    def label_issues(self) -> list[LabelIssue]:
        """Given labels that the evidence contradicts, the most doubtful first.

        ``row`` is the entry of the index of the DataFrame, as in the mappings that `add` takes; for a file, and for
        polars, rows are counted from 0.
        """
        issues = self.outcome.label_issues
        if not has_index(self.frame):
            return issues
        return [replace(issue, row=self.frame.index[issue.row]) for issue in issues]

    def suggest(self, n: int = 20, *, random_share: float = 0.2) -> Any:
        """The rows to label next: uncertain and typical rows of different regions, and some drawn at random.

        Parameters
        ----------
        n : int, how many at most
        random_share : float in [0, 1], the share that is drawn at random, from which the error can be estimated

        Returns
        -------
        DataFrame
            With the columns of the table, an empty target to fill in, `row` (counted from 1), `reason` and
            `file_digest`; filled in, it is what `add` takes.
        """
        suggestions = suggest_next(self.job, n, random_share=random_share)
        return rows_to_fill_in(self.job, suggestions, self.frame)

    def labels_needed(self, error: float) -> LabelsNeeded:
        """How many more labels to an error of the new labels: an estimate with its 90 % interval.

        Parameters
        ----------
        error : float between 0 and 1

        Returns
        -------
        LabelsNeeded, with ``value``, ``low`` and ``high``
        """
        return needed_for(self.job, error)

    def add(self, labels: Any, *, drawn: bool = False, progress: ProgressCallback = no_progress) -> LabelResult:
        """Label the table again with more labels, or with other ones; features and neighbours are not made again.

        The labels count as chosen, and not as a sample of the rows, unless `drawn` or the `reason` "random" of a
        suggested row says so. A label that was there before and is replaced counts as it did before.

        Parameters
        ----------
        labels : mapping, Series, DataFrame or path, or a list of these
            A mapping or a Series from rows to labels, rows being named as in the index of the DataFrame that was
            labelled, or counted from 0 where there is none (a file, polars); or a DataFrame or file with a column
            `row`, counted from 1, and a column `label` or one with the name of the target: what `suggest` returns or
            the page downloads. Empty labels are not used.
        drawn : bool, the rows were drawn at random
        progress : callable, as in `otprop.label`

        Returns
        -------
        LabelResult, a new one; this one stays as it is
        """
        table, target = self.job.table, self.job.request.target
        if not isinstance(drawn, bool):
            raise RequestError("drawn", "must be True or False.", drawn)
        later = read_corrections(labels, table, target, "labels", self.frame, self.job.request.unlabeled)
        if not later.labels:
            raise RequestError("labels", "hold no label: give at least one, as in {17: 'Elstar'}.")
        if drawn:
            later = replace(later, drawn=frozenset(later.labels))
        job = self.job.with_labels(later, "labels")
        check_output_columns(job, self.output)
        call = self.call if self.call.endswith(".add(...)") else f"{self.call}.add(...)"
        return run_job(job, self.output, progress, call, self.frame)

    def coverage(self) -> list[Coverage]:
        """The error to expect when only the most confident rows are labelled; empty without confidence."""
        return self.outcome.coverage

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save the model, for `otprop predict`.

        Parameters
        ----------
        path : str or path
        force : bool, an existing file may be replaced
        """
        self.write_files(model=path, force=force)

    def report(self, path: str | Path, *, map: str = "pca", force: bool = False) -> None:
        """Write the page that shows what happened.

        Parameters
        ----------
        path : str or path
        map : {"pca", "umap"}, how the rows are placed on the map
        force : bool, an existing file may be replaced
        """
        self.write_files(report=path, map=map, force=force)

    def write(self, path: str | Path, *, force: bool = False, excel_safe: bool = False) -> None:
        """Write the table with the output columns added, in the format of its name, else in that of the input.

        Parameters
        ----------
        path : str or path
        force : bool, an existing file may be replaced
        excel_safe : bool, no text cell of a CSV starts a formula
        """
        self.write_files(table=path, force=force, excel_safe=excel_safe)

    def write_files(
        self,
        table: str | Path | BinaryIO | None = None,
        *,
        report: str | Path | None = None,
        model: str | Path | None = None,
        map: str = "pca",
        force: bool = False,
        excel_safe: bool = False,
        written: list[Path] | None = None,
    ) -> None:
        """Write several files, the table last: its presence means success; each path is appended to `written`."""
        job, outcome = self.job, self.outcome
        page = ""
        if report is not None:
            from otprop.report.label_page import make_page  # takes a while, and not everybody wants a page

            page = make_page(job, outcome, command=self.call, how=map)
        if model is not None:
            save_model(model, job, force=force, written=written)
        if report is not None:
            path = getattr(job.table, "path", None)
            write_atomic(report, page, force, [] if path is None else [path], mode_like=path, written=written)
        if table is not None:
            columns, fill = self._columns()
            job.table.write(table, columns, fill, force=force, excel_safe=excel_safe, written=written)

    def __repr__(self) -> str:
        return f"<LabelResult: {_headline(self.outcome)}>"

    def _repr_html_(self) -> str:
        """The labels by class, for a notebook."""
        outcome, rows = self.outcome, []
        sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
        given = np.bincount(outcome.codes[outcome.given], minlength=len(outcome.classes))
        for code in np.argsort(-sizes, kind="stable")[:MOST_CLASSES]:
            width = 100 * sizes[code] / max(1, sizes.max())
            bar = f'<div style="background:#4477aa;height:0.8em;width:{width:.0f}px"></div>'
            cells = f"<td>{given[code]}</td><td>{sizes[code] - given[code]}</td><td>{sizes[code]}</td><td>{bar}</td>"
            rows.append(f"<tr><th>{escape(outcome.classes[code])}</th>{cells}</tr>")
        more = len(sizes) - MOST_CLASSES
        rest = f"<p>and {more} more classes</p>" if more > 0 else ""
        head = f"<tr><th>{escape(outcome.target)}</th><th>given</th><th>labelled</th><th>in all</th><th></th></tr>"
        return f"<p>{escape(_headline(outcome))}</p><table>{head}{''.join(rows)}</table>{rest}"


def _headline(outcome: Outcome) -> str:
    n_new = int((~outcome.given & (outcome.codes >= 0)).sum())
    text = f"{int(outcome.given.sum())} labels given, {n_new} rows labelled"
    n_left = int((outcome.codes < 0).sum())
    text += f", {n_left} left unlabelled" if n_left else ""
    if outcome.expected_error is None:
        return text
    low, high = outcome.error_range or (0.0, 1.0)
    return f"{text}; expected error {outcome.expected_error:.1%} (likely {low:.1%} to {high:.1%})"


def check_output_columns(job: Job, output: OutputColumns) -> None:
    """Refuse columns that the table has already."""
    names = output_column_names(job.target, output, confidence=job.request.method == "otp")
    refuse_taken(job.table, names, job.request.target)


def run_job(job: Job, output: OutputColumns, progress: ProgressCallback, call: str, frame: Any = None) -> LabelResult:
    """Fit and label; `call` is what repeats this, `frame` the DataFrame that the table was made from."""
    return LabelResult(job, job.run(progress), output, call, frame)
