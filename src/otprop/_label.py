"""`otprop.label`: the whole sequence of the command `otprop label`, for a file or a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, read_table, write_atomic
from otprop.labelling.job import Job, Request, prepare
from otprop.labelling.model import save_model
from otprop.labelling.outcome import Outcome
from otprop.labelling.output_columns import (
    OutputColumns,
    fill_column,
    output_column_names,
    output_columns,
    refuse_taken,
)
from otprop.labelling.review import rows_to_review
from otprop.propagation.calibration import Coverage
from otprop.table.frame import is_frame, table_of_frame, take_rows, with_columns

MOST_CLASSES = 20  # rows of the summary in a notebook


def label(
    data: Any,
    target: str,
    *,
    method: str = "otp",
    settings: Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    text_model: Any = None,
    unlabeled: Sequence[str] = (),
    merge_labels: bool = False,
    numeric_classes: bool = False,
    abstain_below: float | None = None,
    class_prior: str | Mapping[Any, float] | None = None,
    metric: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    prefix: str | None = None,
    fill: bool = False,
    probabilities: bool = False,
    progress: ProgressCallback = no_progress,
) -> LabelResult:
    """Label the rows of a table whose target is empty, as the command `otprop label` does.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        A file (CSV, TSV, Parquet, Feather, NPZ), a table of `otprop.files`, or a DataFrame of pandas or polars.
    target : str
        The column with the labels; empty cells get one.
    method : str
        "otp", "otp-paper", or another method of the benchmark: "ls", "trees", ...
    settings : mapping of str to object or None
        Parameters of the method, as in ``{"n_neighbors": 15}``.
    features : sequence of str or None
        The columns to use; None for all that are fit for it.
    ignore : sequence of str
        Columns to leave out.
    embedding : str or None
        The prefix of columns that are one vector.
    text_model : str, path, transformer, callable or None
        What makes vectors of text: the folder of a local sentence-transformers model, an ``.onnx`` file with its
        ``tokenizer.json`` beside it, a scikit-learn transformer (fitted, or fitted here on the texts), or a function
        from a list of texts to a 2-D array. None for words and pieces of words. Nothing is downloaded.
    unlabeled : sequence of str
        Cells with one of these texts are unlabelled, beside the empty ones.
    merge_labels : bool
        Labels that differ only in case, blanks, how a number is written or one typing error are one class.
    numeric_classes : bool
        Numbers in the target are classes even where hardly any occurs twice.
    abstain_below : float or None
        Rows with less confidence than this stay unlabelled.
    class_prior : "uniform", mapping of every class to its share of all rows, or None
    metric : str or None
        The distance between rows: "euclidean", "cosine", "manhattan", ...
    seed : int
    jobs : int or None
        The number of threads; None for all.
    prefix : str or None
        Of the names of the added columns; None for the target and an underscore.
    fill : bool
        Write the labels into the target column itself.
    probabilities : bool
        Add a column for the probability of every class.
    progress : callable
        Called with the work done, the work in all (0 where it is not known) and the current step.

    Returns
    -------
    LabelResult

    Raises
    ------
    ParameterError
        A parameter cannot be used with this table; its name is the attribute `parameter`.
    ValueError
        The table cannot be labelled; the message is one line.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> frame = pd.DataFrame(
    ...     {
    ...         "weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3],
    ...         "kind": ["light", None, None, "heavy", None, None],
    ...     }
    ... )
    >>> result = otprop.label(frame, "kind")
    >>> result.table["kind_label"].tolist()
    ['light', 'light', 'light', 'heavy', 'heavy', 'heavy']
    """
    request = Request(
        str(target),
        method=method,
        settings=settings or {},
        features=features,
        ignore=ignore,
        embedding=embedding,
        text_model=text_model,
        unlabeled=unlabeled,
        merge_labels=merge_labels,
        numeric_classes=numeric_classes,
        abstain_below=abstain_below,
        class_prior=class_prior,
        metric=metric,
        seed=seed,
        jobs=jobs,
    )
    output = OutputColumns(prefix, fill, probabilities)
    job = prepare_job(as_table(data), request, output)
    call = _python_call(data, request, output)
    return run_job(job, output, progress, call, data if is_frame(data) else None)


def as_table(data: Any) -> Table:
    """The table of a path, a DataFrame or a table."""
    if isinstance(data, Table):
        return data
    if is_frame(data):
        return table_of_frame(data)
    if isinstance(data, (str, PathLike)):
        return read_table(Path(data))
    raise TypeError(f"data must be a path, a DataFrame or a table of otprop.files; got {type(data).__name__}.")


def prepare_job(table: Table, request: Request, output: OutputColumns) -> Job:
    """Check everything that can be checked before the work begins."""
    job = prepare(table, request)
    names = output_column_names(job.target, output, confidence=request.method == "otp")
    refuse_taken(table, names, request.target)
    return job


def run_job(job: Job, output: OutputColumns, progress: ProgressCallback, call: str, frame: Any = None) -> LabelResult:
    """Fit and label; `call` is what repeats this, `frame` the DataFrame that the table was made from."""
    return LabelResult(job, job.run(progress), output, call, frame)


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
        columns = output_columns(self.job.target, self.outcome, self.output)
        if self.output.fill:
            name, given = self.job.request.target, self.outcome.given
            filled = np.where(given, self.job.table.cells(name), fill_column(self.job.target, self.outcome))
            columns = {name: filled, **columns}
        return with_columns(self.job.table.frame() if self.frame is None else self.frame, columns)

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
            columns = output_columns(job.target, outcome, self.output)
            fill = (job.request.target, fill_column(job.target, outcome)) if self.output.fill else None
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
            cells = f"<td>{given[code]}</td><td>{sizes[code]}</td><td>{bar}</td>"
            rows.append(f"<tr><th>{escape(outcome.classes[code])}</th>{cells}</tr>")
        more = len(sizes) - MOST_CLASSES
        rest = f"<p>and {more} more classes</p>" if more > 0 else ""
        head = f"<tr><th>{escape(outcome.target)}</th><th>given</th><th>in all</th><th></th></tr>"
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


def _python_call(data: Any, request: Request, output: OutputColumns) -> str:
    """The call that repeats this, without what is as usual."""
    first = repr(Path(data).name) if isinstance(data, (str, PathLike)) else "data"
    asked = {**vars(request), **vars(output)}
    usual = {**vars(Request(request.target)), **vars(OutputColumns())}
    more = [f"{name}={value!r}" for name, value in asked.items() if name != "target" and value != usual[name]]
    return f"otprop.label({', '.join([first, repr(request.target), *more])})"
