"""Columns that an earlier run of `otprop label` added to a table: results, not features."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.files import Table

MADE_BY_PREVIOUS_RUN = "made by an earlier run of otprop label"
SOURCES = frozenset(("given", "corrected", "propagated", "abstained"))


def previous_columns(table: Table, target: str, classes: list[str]) -> list[str]:
    """The columns that an earlier run added, in the order of the table.

    A run is recognised by a source and a certainty with a common prefix; under the default prefix of the target by one
    of them, or by labels, since a user may have removed some.
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
        return bool(texts) and texts <= SOURCES
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
