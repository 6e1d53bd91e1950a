"""The columns that labelling adds to a table, and those that an earlier run added.

They are the same for a file, the files of a folder, and rows that come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.files import Table
from otprop.labelling.outcome import RowLabels
from otprop.table.errors import ColumnError, Hint, RequestError

PARTS = ("certainty", "confidence", "novelty", "round", "source")  # after the label, in this order
_OF_CONFIDENCE = ("confidence", "novelty")
MADE_BY_PREVIOUS_RUN = "made by an earlier run of otprop label"
LABEL_SOURCES = frozenset(("given", "corrected", "propagated", "abstained"))


@dataclass(frozen=True)
class OutputColumns:
    """Which columns are added.

    Attributes
    ----------
    prefix : str or None, of their names; None for the target and an underscore
    fill : bool, the labels go into the target column itself
    probabilities : bool, a column for every class
    """

    prefix: str | None = None
    fill: bool = False
    probabilities: bool = False

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
        statement = f"{table.origin} already has {', '.join(map(repr, taken))}: give the added columns another start of"
        hint = Hint("their names, as in ", "prefix", free_prefix(table.names, target))
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
