"""Labels as they stand in the user's table: text as it is written, numbers as numbers, in the type of the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from otprop.files import Table
from otprop.table.frame import in_type_of, is_polars
from otprop.table.target import holds_no_label

_DTYPES = {bool: ("bool", "boolean"), int: ("int64", "Int64"), float: ("float64", "float64")}  # without, with missing
_LARGEST = 2.0**63


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
    """The labels of a table by class number, and columns of them in the type of the target.

    Parameters
    ----------
    table : Table
    target : str, the column with the labels; need not be in the table
    values : sequence, the classes as the cells of the table have them, by number
    in_table : ndarray of bool of shape (n_rows,), the rows whose label is in the table
    frame : DataFrame that the table was made from, or None for a file

    Attributes
    ----------
    classes : list, the labels by class number
    column : Series of the frame, or of the cells of the file, with the labels that are there; None without a target
    """

    def __init__(self, table: Table, target: str, values: Sequence[Any], in_table: np.ndarray, frame: Any) -> None:
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
            rows = np.flatnonzero(in_table)[::-1]
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
