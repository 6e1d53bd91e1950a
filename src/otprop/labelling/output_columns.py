"""The columns that labelling adds to a table, in the type of its target, and those that an earlier run added.

They are the same for a file, the files of a folder, and rows that come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otprop._validation import check_bool
from otprop.files import Table
from otprop.labelling.outcome import RowLabels
from otprop.table.errors import ColumnError, Hint, RequestError
from otprop.table.frame import in_type_of, is_polars
from otprop.table.target import holds_no_label

if TYPE_CHECKING:
    from otprop.labelling.job import Job

PARTS = ("certainty", "confidence", "novelty", "round", "source")  # after the label, in this order
_OF_CONFIDENCE = ("confidence", "novelty")
MADE_BY_PREVIOUS_RUN = "made by an earlier run of otprop label"
LABEL_SOURCES = frozenset(("given", "corrected", "propagated", "abstained"))
_DTYPES = {bool: ("bool", "boolean"), int: ("int64", "Int64"), float: ("float64", "float64")}  # without, with missing
_LARGEST = 2.0**63


@dataclass(frozen=True)
class OutputColumns:
    """Which columns are added."""

    prefix: str | None = None  # of their names; None for the target and an underscore
    fill: bool = False  # the labels go into the target column itself
    probabilities: bool = False  # a column for every class

    def __post_init__(self) -> None:
        for name in ("fill", "probabilities"):
            check_bool(name, getattr(self, name))
            object.__setattr__(self, name, bool(getattr(self, name)))

    def names(self, target: str, classes: Sequence[str], parts: Sequence[str]) -> list[str]:
        """The names of the columns in order: the label, these parts, and the probabilities of the classes."""
        prefix = f"{target}_" if self.prefix is None else self.prefix
        if not isinstance(prefix, str):
            raise RequestError("prefix", f"must be text or None; got {type(prefix).__name__}.")
        shares = [f"p_{name}" for name in classes] if self.probabilities else []
        return [prefix + part for part in (*([] if self.fill else ["label"]), *parts, *shares)]

    def of(self, labels: RowLabels, target: str, classes: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """The columns of some rows, by name; `values` are the classes as the cells of the target have them."""
        found = {"certainty": labels.certainty, "confidence": labels.confidence, "novelty": labels.novelty}
        made: dict[str, Any] = {part: np.round(column, 6) for part, column in found.items() if column is not None}
        if labels.round is not None:
            made["round"] = np.where(labels.codes >= 0, labels.round, -1)
        if labels.given is not None:
            made["source"] = _label_sources(labels)
        columns = [] if self.fill else [label_column(labels, values)]
        columns += made.values()
        if self.probabilities and labels.distributions is not None:
            columns += [np.round(column, 6) for column in labels.distributions.T]
        return dict(zip(self.names(target, classes, list(made)), columns, strict=True))

    def written(
        self, labels: RowLabels, table: Table, target: str, classes: Sequence[str], values: Sequence[Any]
    ) -> tuple[dict[str, Any], tuple[str, np.ndarray] | None]:
        """The columns to add to a table, and the target with what to fill into it: the arguments of `Table.write`."""
        columns = self.of(labels, target, classes, values)
        if not self.fill:
            return columns, None
        filled = label_column(labels, values)
        if target not in table.names:
            return {target: filled, **columns}, None
        if labels.given is not None:  # cells that stay as they are
            filled[labels.given if labels.corrected is None else labels.given & ~labels.corrected] = None
        return columns, (target, filled)


def parts_of_file(*, confidence: bool) -> list[str]:
    """The columns added after the label, for a method with or without a `confidence`."""
    return [part for part in PARTS if confidence or part not in _OF_CONFIDENCE]


def label_column(labels: RowLabels, values: Sequence[Any]) -> np.ndarray:
    """Each row's label as the file has it, of dtype object; None where there is none."""
    names = np.empty(len(values) + 1, dtype=object)
    names[:-1] = list(values)
    return np.asarray(names[labels.codes])  # -1 is the last one, None


def _label_sources(labels: RowLabels) -> np.ndarray:
    """Where each label is from."""
    assert labels.given is not None
    made = np.where(labels.codes >= 0, "propagated", "abstained")
    found = np.where(labels.given, "given", made).astype(object)
    if labels.corrected is not None:
        found[labels.corrected] = "corrected"
    return np.asarray(found)


def refuse_taken(table: Table, names: Sequence[str], target: str) -> None:
    """Refuse columns that the table has already."""
    known = set(table.names)
    taken = [name for name in names if name in known]
    if taken:
        statement = f"{table.origin} already has {', '.join(map(repr, taken))}."
        hint = Hint("Choose another prefix, such as ", "prefix", free_prefix(table.names, target))
        raise ColumnError(taken[0], statement, hint)


def previous_columns(table: Table, target: str, classes: list[str]) -> list[str]:
    """The columns that an earlier run added, in the order of the table.

    A run is recognised by columns `source` and `certainty` with a common prefix; under the default prefix of the target
    by one of them, or by labels, since a user may have removed some.
    """
    there = set(table.names) - {target}
    default = f"{target}_"
    found: set[str] = set()
    for prefix in {default} | {name.removesuffix("source") for name in there if name.endswith("source")}:
        shown = {part for part in ("source", "certainty") if prefix + part in there and _fits(table, prefix, part)}
        if len(shown) == 2:
            found |= _columns_of_run(table, prefix, there, {*classes, *_texts(table, prefix + "label")})
        elif prefix == default:
            labels = _texts(table, prefix + "label")
            if shown or (labels and labels <= set(classes)):
                found |= _columns_of_run(table, prefix, there, set(classes))
    return [name for name in table.names if name in found]


def free_prefix(names: list[str], target: str) -> str:
    """A prefix for the names of added columns that no column has."""
    number = 2
    while any(name.startswith(f"{target}_{number}_") for name in names):
        number += 1
    return f"{target}_{number}_"


def _columns_of_run(table: Table, prefix: str, there: set[str], classes: set[str]) -> set[str]:
    """The columns with this prefix whose cells are such as a run writes."""
    labels = _texts(table, prefix + "label")
    found = {prefix + "label"} if labels and labels <= classes else set()
    parts = ("source", "certainty", "confidence", "novelty", "round", *(f"p_{name}" for name in classes))
    return found | {prefix + part for part in parts if prefix + part in there and _fits(table, prefix, part)}


def _fits(table: Table, prefix: str, part: str) -> bool:
    """Whether the cells of a column are such as a run writes."""
    if part == "source":
        texts = _texts(table, prefix + part)
        return bool(texts) and texts <= LABEL_SOURCES
    numbers = _numbers(table, prefix + part)
    if numbers is None or not np.isfinite(numbers).all():
        return False
    if part == "round":
        return bool((numbers == np.round(numbers)).all() and numbers.min() >= -1)
    return bool(numbers.min() >= 0 and numbers.max() <= 1)


def _texts(table: Table, name: str) -> set[str]:
    """The different cells of a column as text; none where there is no such column."""
    return {str(cell) for cell in table.cells(name) if cell is not None} if name in table.names else set()


def _numbers(table: Table, name: str) -> np.ndarray | None:
    """The column as numbers; None where it holds anything else."""
    column: Any = table.frame([name])[name]
    if column.dtype.kind not in "fiu":
        return None
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def as_column(cells: Sequence[Any]) -> Any:
    """Cells (None: missing) as a Series of pandas.

    Text is a number only where all of it would be written the same way again: "0" and "1", but not "007" or "1.50";
    "Yes" stays "Yes".
    """
    import pandas as pd  # optional, and slow to import

    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    known = [cell for cell in cells if cell is not None]
    kinds = {type(cell) for cell in known}
    if kinds == {str}:
        number = next((number for number in (int, float) if all(_is_written(cell, number) for cell in known)), None)
        if number is not None:
            cells, kinds = [None if cell is None else number(cell) for cell in cells], {number}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is int and any(abs(cell) >= _LARGEST for cell in known if not isinstance(cell, str)):
        kind = None
    if kind in _DTYPES:
        return pd.Series(cells, dtype=_DTYPES[kind][len(known) < len(cells)])
    return pd.Series(cells) if kind is str else pd.Series(cells, dtype=object)


def holds_text(column: Any) -> bool:
    """Whether a column of pandas is one of text."""
    from pandas.api import types

    return bool(types.is_string_dtype(column.dtype) or types.is_object_dtype(column.dtype))


def _is_written(text: str, number: type) -> bool:
    """Whether this text is how the number is printed."""
    try:
        return str(number(text)) == text and abs(float(text)) < _LARGEST  # finite, and no more than 64 bits
    except (ValueError, OverflowError):
        return False


class LabelType:
    """The labels of a job by class number (`classes`), and columns of them in the type of the target.

    `column` is the Series of the frame, or of the cells of the file, with the labels that are there; None where the
    table has no target yet.
    """

    def __init__(self, job: Job) -> None:
        table, frame, target, values = job.table, job.frame, job.target.name, job.target.values
        self.column: Any = None
        self.classes = list(values)
        if target not in table.names:
            self.classes = as_column(values).tolist()
        elif frame is None:
            self.column = as_column([None if holds_no_label(cell, ()) else cell for cell in table.cells(target)])
            if not holds_text(self.column):
                self.classes = as_column(values).tolist()
        elif is_polars(frame):
            self.column = frame.to_series(table.names.index(target))
        else:
            self.column = frame.iloc[:, table.names.index(target)]
            rows = np.flatnonzero(job.in_table)[::-1]
            there = dict(zip(table.cells(target)[rows], self.column.iloc[rows], strict=True))
            self.classes = [there.get(value, value) for value in values]

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """The label of every code, of dtype object; None for -1."""
        values = np.empty(len(self.classes) + 1, dtype=object)
        values[:-1] = self.classes
        return np.asarray(values[codes])

    def typed(self, labels: Sequence[Any]) -> Any:
        """Labels (None: missing) as a column in the type of the target, where that can hold them."""
        if self.column is None:
            return as_column(labels).array
        if is_polars(self.column):
            return self._in_polars(labels)
        return in_type_of(self.column, labels)

    def _in_polars(self, labels: Sequence[Any]) -> Any:
        kind = type(self.column)
        try:
            return kind(list(labels), dtype=self.column.dtype, strict=True)
        except Exception:  # whatever polars raises for a value that the type does not hold
            return kind(list(labels), strict=False)
