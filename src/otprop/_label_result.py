"""The result of labelling a table: look at it, write it, and continue with more labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from otprop._predict import Model
from otprop._progress import ProgressCallback, shown_progress
from otprop._validation import check_bool, check_path
from otprop.files import LabelStudioTable, TableError, check_ending, check_output, format_of_name, write_atomic
from otprop.files._formats import check_page_ending
from otprop.labelling.corrections import has_index, index_name, issues_to_correct, named_rows, read_corrections
from otprop.labelling.job import Job, files_among
from otprop.labelling.model import SavedModel, save_model
from otprop.labelling.next_rows import explain_rows, needed_for, rows_to_fill_in, rows_to_review, suggest_next
from otprop.labelling.outcome import Outcome, counted, error_text
from otprop.labelling.output_columns import LabelType, OutputColumns, label_column
from otprop.loop.labels_needed import LabelsNeeded
from otprop.propagation.calibration import Coverage
from otprop.propagation.class_errors import ClassErrors
from otprop.report.page import display_text
from otprop.table.cells import with_annotations
from otprop.table.errors import RequestError
from otprop.table.frame import is_polars, take_rows, with_columns
from otprop.table.opening import holds_row

MAX_CLASSES = 20  # rows of the summary in a notebook
MAX_IN_REPR = 4  # classes
MAX_NAME = 40  # characters of a class in `repr`


@dataclass(frozen=True, eq=False)
class LabelResult:
    """A labelled table.

    Attributes
    ----------
    job : Job, the request, the table, its columns and notes
    outcome : Outcome, labels, distributions, certainty and confidence in the order of the rows

    Notes
    -----
    Rows are identified by the index of the DataFrame, which is also that of `table`. Rows of a file or a polars frame
    are counted from 0. Files written by the command or the report count them from 1, in a column `row`.

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

    @property
    def output(self) -> OutputColumns:
        """Which columns are added."""
        return self.job.output

    @property
    def call(self) -> str:
        """The call that reproduces this result."""
        return self.job.call

    @property
    def frame(self) -> Any:
        """The DataFrame that was labelled, or None."""
        return self.job.frame

    @cached_property
    def model(self) -> Model:
        """The fitted model: ``predict`` labels new rows, ``classes`` are the labels."""
        return Model(SavedModel.of_job(self.job, self.classes))

    @property
    def estimator(self) -> Any:
        """The fitted estimator. Its classes are class numbers, its rows the features."""
        return self.job.estimator

    @property
    def classes(self) -> list[Any]:
        """The classes, as written in the table."""
        return list(self._label_type.classes)

    @property
    def expected_error(self) -> float | None:
        """Expected share of wrong labels among the new ones; None if the method does not estimate it."""
        return self.outcome.expected_error

    @property
    def error_range(self) -> tuple[float, float] | None:
        """The 90 % interval of that share."""
        return self.outcome.error_range

    @property
    def notes(self) -> list[str]:
        """Notes on the table, the target and the fit."""
        return self.job.notes

    @cached_property
    def table(self) -> Any:
        """The table with the output columns: a DataFrame of the same kind as the input, or of pandas for a file."""
        columns, fill = self.job.added(self.outcome)
        target, types = self.job.target, self._label_type
        frame = self.job.table.frame() if self.frame is None else self.frame
        if self.frame is None and types.column is not None:
            frame[target.name] = types.column.array  # as the file has it: Yes and not True
        labels, name = types.labels(self.outcome.codes), target.name
        if fill is not None:
            kept = np.array([one is None for one in fill[1]]) & self.job.in_table
            there = types.column.to_list() if is_polars(types.column) else types.column
            labels = np.where(kept, np.asarray(there, dtype=object), labels)
        elif not self.output.fill:
            name = self.output.names(name, (), ())[0]
        return with_columns(frame, {**columns, name: types.typed(list(labels))})

    @property
    def adata(self) -> Any:
        """The AnnData object that was labelled with the columns of `table` in its `obs`; it shares all else with it."""
        cells = getattr(self.job.table, "adata", None)
        if cells is None:
            raise AttributeError("no AnnData object was labelled; the result is in `table`.")
        return with_annotations(cells, self.table)

    @cached_property
    def _label_type(self) -> LabelType:
        return LabelType(self.job)

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
    def label_issues(self) -> Any:
        """Given labels that the evidence contradicts, the most doubtful first: a DataFrame by the index of `table`.

        Fill in its column `label` and pass it to `add`.
        """
        values = dict(zip(map(str, self.job.target.values), self.classes, strict=True))
        issues = [
            replace(issue, given=values[str(issue.given)], suggested=values[str(issue.suggested)])
            for issue in self.outcome.label_issues
        ]
        return issues_to_correct(issues, self.job.table, self._index([issue.row for issue in issues]))

    def _index(self, rows: list[int]) -> Any:
        """The names of rows: the index of the DataFrame, or counted from 0."""
        import pandas as pd

        index = self.frame.index[rows] if has_index(self.frame) else pd.Index(rows, dtype="int64")
        return index.rename(index_name(self.frame, self.job.table))

    def _row(self, row: Any) -> int:
        """The number of a row from 0, of its name."""
        try:
            return named_rows([row], self.frame, self.job.table, "row")[0]
        except RequestError:
            last = self.job.table.n_rows - 1
            why = "no such entry in the index of the DataFrame." if has_index(self.frame) else f"give 0 to {last}."
            raise RequestError("row", why, row) from None
        except TypeError:  # a list, say: not hashable
            raise RequestError("row", "must be one entry of the index of the DataFrame.", row) from None

    def suggest(self, n: int = 20, *, random_share: float = 0.2) -> Any:
        """The rows to label next: uncertain and typical rows of different regions, and some drawn at random.

        Parameters
        ----------
        n : int, how many at most
        random_share : float in [0, 1], the share that is drawn at random, from which the error can be estimated

        Returns
        -------
        DataFrame
            Rows of `table` by its index (a column `index` in polars), with an empty target to fill in, `reason` and
            `file_digest`. Once filled in, pass it, or a file written with its index, to `add`.
        """
        suggestions = suggest_next(self.job, n, random_share=random_share)
        return rows_to_fill_in(self.job, suggestions, numbered=False)

    def explain(self, row: Any) -> Any:
        """Why a row got its label: the class probabilities of each source of evidence, and of all together.

        Parameters
        ----------
        row : entry of the index of `table`; counted from 0 for polars

        Returns
        -------
        DataFrame
            One line per source with its `weight` and one column per class; the last line, `together`, is the result.
        """
        import pandas as pd

        number, outcome = self._row(row), self.outcome
        by_source = explain_rows(self.job, outcome, [number])[number]["sources"]
        weights = {name: weight for name, weight, _ in outcome.sources}
        lines = {name: [weights.get(name, np.nan), *shares.values()] for name, shares in by_source.items()}
        lines["together"] = [np.nan, *outcome.distributions[number].tolist()]
        columns = pd.Index(["weight", *self.classes], dtype=object)
        return pd.DataFrame(list(lines.values()), index=pd.Index(list(lines), name="source"), columns=columns)

    def nearest(self, row: Any) -> Any:
        """The labelled rows that are nearest to a row, with their `label` and `distance`.

        Parameters
        ----------
        row : entry of the index of `table`; counted from 0 for polars

        Returns
        -------
        DataFrame
            By the index of `table`, the nearest first.
        """
        import pandas as pd

        number = self._row(row)
        found = explain_rows(self.job, self.outcome, [number])[number]["nearest"]
        labels = self._label_type.labels(self.outcome.codes[[near for near, _, _ in found]])
        columns = {"label": labels, "distance": [distance for _, _, distance in found]}
        return pd.DataFrame(columns, index=self._index([near for near, _, _ in found]))

    def plot(self, kind: str = "map", ax: Any = None) -> Any:
        """Draw the result with matplotlib.

        Parameters
        ----------
        kind : {"map", "coverage", "calibration"}
            The rows in two dimensions, the expected error if only the most confident rows are labelled, or how often
            the most probable class of held-out labels was right.
        ax : axes of matplotlib to draw on, or None for new ones

        Returns
        -------
        matplotlib Axes
        """
        from otprop.report.result_plots import plot_result  # imports scikit-learn's PCA

        return plot_result(self.job, self.outcome, kind, ax)

    def labels_needed(self, error: float) -> LabelsNeeded:
        """Estimate how many more labels an expected error needs, with an 80 % interval.

        Parameters
        ----------
        error : float between 0 and 1

        Returns
        -------
        LabelsNeeded, with ``value``, ``low`` and ``high``
        """
        return needed_for(self.job, error)

    def add(
        self,
        labels: Any,
        *,
        drawn: bool = False,
        new_classes: bool = False,
        progress: ProgressCallback | None = None,
    ) -> LabelResult:
        """Label the table again with more or changed labels; features and neighbours are reused.

        The labels count as chosen, not as a random sample, unless `drawn` is true or the `reason` of a suggested row
        is "random". A replaced label keeps its status.

        Parameters
        ----------
        labels : mapping, Series, DataFrame or path, or a list of these
            A mapping or a Series from rows to labels; what `suggest` or `label_issues` returned with its labels filled
            in, or a file of that; or what the page downloads. Empty labels are not used. A label is the class that it
            is equal to, also as a number or a boolean.
        drawn : bool, the rows were drawn at random
        new_classes : bool, accept a label that looks like a typing error of a class as a new class
        progress : callable, as in `otprop.label`

        Returns
        -------
        LabelResult, a new one; this one is not changed
        """
        table, target = self.job.table, self.job.request.target
        check_bool("drawn", drawn)
        check_bool("new_classes", new_classes)
        later = read_corrections(labels, table, target, "labels", self.frame, self.job.request.unlabeled)
        if not later.labels:
            raise RequestError("labels", "hold no label: give at least one, as in {17: 'Elstar'}.")
        if drawn:
            later = replace(later, drawn=frozenset(later.labels))
        job = self.job.with_labels(later, new_classes=new_classes)
        job.inputs += files_among(labels)
        with shown_progress(progress) as report:
            return LabelResult(job, job.run(report))

    @property
    def class_errors(self) -> Any:
        """Expected precision and recall of each class, with 90 % intervals; empty for a method without confidence.

        An attribute that is a DataFrame; ``OTP.class_errors()`` is a method and returns a list.
        """
        return _frame_of(ClassErrors, self.outcome.class_errors)

    def coverage(self) -> Any:
        """Expected error if only the most confident rows are labelled.

        Returns
        -------
        DataFrame
            For each `share` of the rows: `n_rows`, `confidence` (the value of ``abstain_below``), `expected_error`, and
            its 90 % interval `low` and `high`; empty for a method without confidence.
        """
        return _frame_of(Coverage, self.outcome.coverage)

    def label_sets(self, coverage: float = 0.9) -> Any:
        """A set of classes per row that contains the true class with probability `coverage`.

        As in `OTP.label_sets`, which says what it assumes: labels drawn at random, or the others marked with `chosen`.

        Parameters
        ----------
        coverage : float between 0 and 1

        Returns
        -------
        DataFrame
            By the index of `table`, a boolean column per class: whether it is in the set of the row. A given label is a
            set of one class.
        """
        import pandas as pd

        members = self.job.calibrated.label_sets(coverage).members
        columns = pd.Index(self.classes, dtype=object)
        return pd.DataFrame(members, index=self._index(list(range(len(members)))), columns=columns)

    def confidence_for_risk(self, risk: float, level: float = 0.9) -> float:
        """The lowest confidence above which the error is at most `risk`, with probability `level`.

        As in `OTP.confidence_for_risk`, which says what it assumes, and raises an error where there are too few labels:
        an error of 2 % takes at least 114.

        Parameters
        ----------
        risk, level : float between 0 and 1

        Returns
        -------
        float, the value for ``abstain_below``
        """
        return float(self.job.calibrated.confidence_for_risk(risk, level))

    def predict(self, data: Any, *, probabilities: bool = False, prefix: str | None = None) -> Any:
        """Label new rows, as `Model.predict` does.

        Parameters
        ----------
        data : str, path, DataFrame, list of dicts or Table, with the columns of the table
        probabilities : bool, add one column per class with its probability
        prefix : str or None, prefix of the added columns; None for the target and an underscore

        Returns
        -------
        DataFrame
        """
        return self.model.predict(data, probabilities=probabilities, prefix=prefix)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save the model for `otprop predict` and `otprop.load`.

        Parameters
        ----------
        path : str or path
        force : bool, replace an existing file
        """
        self.write_files(model=check_path("path", path), force=force)

    def report(self, path: str | Path, *, map: str = "pca", force: bool = False) -> None:
        """Write the report: a page with a map of the rows and the rows to review.

        Parameters
        ----------
        path : str or path
        map : {"pca", "umap"}, how the rows are placed on the map
        force : bool, replace an existing file
        """
        self.write_files(report=check_path("path", path), map=map, force=force)

    def write(self, path: str | Path, *, force: bool = False, excel_safe: bool = False) -> None:
        """Write the table with the output columns, in the format of the file extension.

        A name without an extension gets the format of the input (CSV for a DataFrame); an unknown one is refused.

        The index of a DataFrame is not written; ``table.to_csv`` and the like keep it.

        Parameters
        ----------
        path : str or path
        force : bool, replace an existing file
        excel_safe : bool, escape text cells that a spreadsheet would run as a formula
        """
        out: Any = path if hasattr(path, "write") else check_path("path", path)
        self.write_files(table=out, force=force, excel_safe=excel_safe)

    def write_files(
        self,
        table: str | Path | BinaryIO | None = None,
        *,
        report: str | Path | None = None,
        model: str | Path | None = None,
        map: str = "pca",
        force: bool = False,
        excel_safe: bool = False,
        note_text: Callable[[str], str] = str,
    ) -> None:
        """Write several files, the table last: its presence means success; `note_text` words the notes of the page."""
        job, outcome = self.job, self.outcome
        check_bool("excel_safe", excel_safe)
        self._check_outputs(model, report, table, force=force)
        if report is not None:
            check_page_ending(report)
        if isinstance(table, (str, PathLike)):
            check_ending(table, job.table.path)  # before the other files are written
        page = ""
        if report is not None:
            from otprop.report.label_page import make_page  # takes a while, and not everybody wants a page

            page = make_page(job, outcome, command=self.call, how=map, note_text=note_text)
        if model is not None:
            save_model(model, SavedModel.of_job(job), force=force, made_from=job.table.path)
        if report is not None:
            write_atomic(report, page, force, job.inputs, mode_like=job.table.path)
        if table is not None:
            kind = None if hasattr(table, "write") else format_of_name(Path(str(table)))
            if isinstance(job.table, LabelStudioTable) and kind in (None, job.table.kind):
                self._write_predictions(job.table, table, "otprop", force)
                return
            columns, fill = job.added(outcome)
            job.table.write(table, columns, fill, force=force, excel_safe=excel_safe)

    def to_label_studio(self, path: str | Path, *, model_version: str = "otprop", force: bool = False) -> None:
        """Write the tasks of Label Studio's JSON with a prediction added to each, and everything else unchanged.

        Rows that stayed unlabelled get no prediction; the score is the confidence.

        Parameters
        ----------
        path : str or path
        model_version : str, the name of the predictions in Label Studio
        force : bool, replace an existing file
        """
        if not isinstance(self.job.table, LabelStudioTable):
            raise RequestError("path", f"is for tasks of Label Studio; {self.job.table.origin} has none. Use `write`.")
        path = check_path("path", path)
        self._check_outputs(path, force=force)
        self._write_predictions(self.job.table, path, model_version, force)

    def _check_outputs(self, *outputs: Any, force: bool) -> None:
        """Refuse what could not be written, before any work; what rows and labels were read from is never written."""
        check_bool("force", force)
        source = self.job.table.origin
        for path in outputs:
            if not isinstance(path, (str, PathLike)):
                continue
            if any(holds_row(source, path, labels) for labels in (None, ())):  # in a folder without labels, and with
                what = f"{path} is one of the files of the input {source}, which are never overwritten"
                raise TableError(what, "choose another output")
            check_output(Path(path), force, self.job.inputs)

    def _write_predictions(
        self, tasks: LabelStudioTable, out: str | Path | BinaryIO, model_version: str, force: bool
    ) -> None:
        outcome, target = self.outcome, self.job.target
        labels = [None if label is None else str(label) for label in label_column(outcome, target.values)]
        scores = None if outcome.confidence is None else [round(float(one), 6) for one in outcome.confidence]
        tasks.write_predictions(out, target.name, labels, scores, model_version=model_version, force=force)

    def __repr__(self) -> str:
        sizes = self._sizes()[:MAX_IN_REPR]
        classes = ", ".join(f"{display_text(name, MAX_NAME)} {size}" for name, _, size in sizes)
        more = f", {len(self.classes) - MAX_IN_REPR} more classes" if len(self.classes) > MAX_IN_REPR else ""
        return f"<LabelResult of {self.outcome.target!r}: {_headline(self.outcome)}; {classes}{more}>"

    def _sizes(self) -> list[tuple[str, int, int]]:
        """Every class with its given and with all of its labels, the largest first."""
        outcome = self.outcome
        sizes = np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes))
        given = np.bincount(outcome.codes[outcome.given], minlength=len(outcome.classes))
        order = np.argsort(-sizes, kind="stable")
        return [(outcome.classes[code], int(given[code]), int(sizes[code])) for code in order]

    def _repr_html_(self) -> str:
        """The error, the labels by class and a small map, for a notebook."""
        from otprop.report.result_plots import small_map

        rows, sizes = [], self._sizes()
        for name, given, size in sizes[:MAX_CLASSES]:
            width = 100 * size / max(1, sizes[0][2])
            bar = f'<div style="background:#4477aa;height:0.8em;width:{width:.0f}px"></div>'
            cells = f"<td>{given}</td><td>{size - given}</td><td>{size}</td><td>{bar}</td>"
            rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
        more = len(sizes) - MAX_CLASSES
        rest = f"<p>and {more} more classes</p>" if more > 0 else ""
        head = f"<tr><th>{escape(self.outcome.target)}</th><th>given</th><th>labelled</th><th>in all</th><th></th></tr>"
        table = f"<div><table>{head}{''.join(rows)}</table>{rest}</div>"
        drawing = small_map(self.job, self.outcome)
        both = f'<div style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">{table}{drawing}</div>'
        return f"<p>{escape(_headline(self.outcome))}</p>{both}"


def _frame_of(kind: Any, records: Sequence[Any]) -> Any:
    """Records as a DataFrame, one per line."""
    import pandas as pd

    return pd.DataFrame([asdict(one) for one in records], columns=[one.name for one in fields(kind)])


def _headline(outcome: Outcome) -> str:
    n_new = int((~outcome.given & (outcome.codes >= 0)).sum())
    text = f"{counted(int(outcome.given.sum()), 'label')} given, {counted(n_new, 'row')} labelled"
    n_left = int((outcome.codes < 0).sum())
    text += f", {n_left} left unlabelled" if n_left else ""
    if outcome.expected_error is None:
        return text
    if outcome.given.any() and outcome.n_held_out == 0:
        return f"{text}; expected error unknown"
    rough = ", a rough estimate: see notes" if outcome.shifted or outcome.seems_sorted else ""
    return f"{text}; expected error {error_text(outcome.expected_error, outcome.error_range, rough)}"
