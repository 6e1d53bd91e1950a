"""Tables whose columns are held as Arrow columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from otprop.files._errors import NoRowsError, TableError, one_line
from otprop.files._numbers import find_decimal
from otprop.files._optional import pa, pandas, pc
from otprop.files._table import Table, check_names
from otprop.files._writers import is_text

SAMPLE_ROWS = 2000  # for the decimal sign
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ArrowTable(Table):
    """A table whose columns are in `self.table`, an Arrow table."""

    table: Any
    parses_text = False  # whether text may be numbers and dates, in formats that people type into

    def _set_table(self, table: Any) -> None:
        """Take the columns; refuse a table without names, without rows, or with a name twice."""
        self.table = table
        self.names = [str(name) for name in table.column_names]
        self.n_rows = table.num_rows
        check_names(self.names, self.origin)
        if not self.names:
            raise TableError(f"{self.origin} is empty: it has no columns", file=self.origin)
        if self.n_rows == 0:
            raise NoRowsError(f"{self.origin} has column names but no rows", file=self.origin)

    def parse_text(self) -> None:
        """Read columns of text as the cells of a CSV file are: as numbers, dates or booleans where all fit."""
        self.parses_text = True
        self.sign = find_decimal([self._as_text(j).slice(0, SAMPLE_ROWS) for j in self._columns_of_text()])
        self.decimal = self.sign or "."

    def _columns_of_text(self) -> list[int]:
        """Columns whose text may be parsed; a column of categories is what its type says."""
        types = self.table.schema.types
        return [j for j, kind in enumerate(types) if is_text(kind) and not pa.types.is_dictionary(kind)]

    def _typed(self, position: int) -> Any:
        column = self.table.column(position)
        if self.parses_text and position in self._columns_of_text():
            return self._parsed(position, self._as_text(position))
        try:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            return _to_pandas(column, column.type)
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            raise self._not_readable(position, error) from error

    def _as_text(self, position: int) -> Any:
        column = self.table.column(position)
        if not is_text(column.type):
            return None
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return pc.fill_null(column.cast(kind).combine_chunks().cast(pa.large_string()), "")

    def _cells(self, position: int) -> np.ndarray:
        try:
            values = self.table.column(position).to_pylist()
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            raise self._not_readable(position, error) from error
        cells = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):  # one by one, since NumPy would make a matrix of lists
            cells[i] = None if value != value else value
        return cells

    def _arrow(self) -> Any:
        return self.table

    def _not_readable(self, position: int, error: BaseException) -> TableError:
        """The error of dates out of range and unknown time zones."""
        name, kind = self.names[position], self.table.schema.field(position).type
        return TableError(
            f"{self.origin}: column {name!r} of type {kind} has values that cannot be read ({one_line(error)})",
            "write it as text, or remove the column from the file",
            file=self.origin,
            column=name,
        )


def _to_pandas(column: Any, kind: Any) -> Any:
    """An Arrow column as numbers, booleans, dates, text or arrays."""
    types = pa.types
    if types.is_decimal(kind) or types.is_float16(kind):
        return column.cast(pa.float64()).to_pandas()
    if types.is_date(kind):
        return column.cast(pa.timestamp("s" if types.is_date32(kind) else "ms")).to_pandas()
    if types.is_duration(kind):
        return pc.divide(column.cast(pa.int64()).cast(pa.float64()), _UNITS[kind.unit]).to_pandas()
    if types.is_boolean(kind) and column.null_count:
        return pandas.array(column.to_pylist(), dtype="boolean")
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_struct(kind) or types.is_map(kind) or types.is_union(kind):
        return [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return column.to_pandas()
