"""A value for every row, from a column or a sequence: which labels were chosen, and which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from otprop._validation import is_missing
from otprop.files import Table, listed
from otprop.labelling.outcome import counted
from otprop.table.columns import shown
from otprop.table.errors import RequestError, unknown_name

LISTED = 6
_YES = {"true", "1", "1.0", "yes", "y", "x", "chosen", "reviewed", "suggested", "corrected", "uncertain", "typical"}
_YES |= {"propagated"}  # labels that a fit gave, filled into the target: no sample of the truth
_NO = {"", "false", "0", "0.0", "no", "n", "drawn", "given", "random", "abstained"}


def chosen_rows(chosen: str | Sequence[Any], table: Table) -> np.ndarray:
    """Which labels were picked: from booleans, one per row, or from a column."""
    values, where = _row_values("chosen", chosen, table)
    texts = ["" if is_missing(cell) else str(cell).strip().lower() for cell in values]
    unknown = sorted(set(texts) - _YES - _NO)
    if unknown:
        raise RequestError(
            "chosen",
            "must mark chosen labels (true, 1, yes, chosen, reviewed) and random ones (false, 0, no, drawn, or empty); "
            f"{where} holds {listed(unknown, LISTED)}.",
        )
    return np.array([text in _YES for text in texts])


def group_values(groups: str | Sequence[Any], table: Table, target: str, given: np.ndarray) -> np.ndarray:
    """The group of each row as text."""
    if isinstance(groups, str) and groups == target:
        raise RequestError("groups", "is the target; name the column that says which rows belong together.", groups)
    values, where = _row_values("groups", groups, table)
    missing = [row for row in np.flatnonzero(given) if is_missing(values[row])]
    if missing:
        raise RequestError(
            "groups",
            f"names the group of every labelled row; {where} is empty in {len(missing)} of them, the first being row "
            f"{missing[0] + 1}. Fill them: a row that belongs to no group is its own group.",
        )
    names = [str(value) for value in values]
    if len(set(names)) == 1:
        raise RequestError("groups", f"must tell groups apart; {where} has one value, {shown(names[0])}, for all rows.")
    return np.array(names, dtype=object)


def _row_values(parameter: str, given: str | Sequence[Any], table: Table) -> tuple[list[Any], str]:
    """The value of each row, and what to call where they are."""
    if isinstance(given, str):
        if given not in table.names:
            raise RequestError(parameter, unknown_name("column", given, table.names), given)
        return list(table.cells(given)), f"the column {given!r}"
    in_order = hasattr(given, "__iter__") and not isinstance(given, (bytes, dict, set, frozenset))
    if not in_order or getattr(given, "ndim", 1) == 0:
        why = f"must name a column, or be a list with the value of each row; got {type(given).__name__}."
        raise RequestError(parameter, why)
    values = list(given)
    if len(values) != table.n_rows:
        raise RequestError(
            parameter, f"has {counted(len(values), 'value')}, {table.origin} has {counted(table.n_rows, 'row')}."
        )
    return values, "it"
