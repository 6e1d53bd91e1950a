"""Values as cells of Excel workbooks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, BinaryIO

from otprop.files._arrow import plain_text
from otprop.files._errors import TableError
from otprop.files._optional import import_optional, openpyxl

MAX_ROWS, MAX_COLUMNS, MAX_CHARACTERS = 1_048_576, 16_384, 32_767
_EXACT = 2**53  # Excel keeps numbers as floats


def write_workbook(whole: Any) -> Callable[[BinaryIO], None]:
    """A function that writes an Arrow table as a workbook of one sheet."""
    import_optional("openpyxl", "excel")
    check_sheet_size(whole.num_rows, whole.num_columns)
    columns = [
        [to_cell(value, name) for value in [name, *column.to_pylist()]]
        for name, column in zip(whole.column_names, whole.columns, strict=True)
    ]

    def write(stream: BinaryIO) -> None:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Sheet1")
        for row in zip(*columns, strict=True):
            sheet.append([_typed_cell(sheet, value) for value in row])
        book.save(stream)

    return write


def check_sheet_size(n_rows: int, n_columns: int) -> None:
    """Refuse a table that is too large for a sheet."""
    if n_rows + 1 > MAX_ROWS or n_columns > MAX_COLUMNS:
        raise TableError(
            f"{n_rows} rows and {n_columns} columns do not fit into an Excel sheet, which holds {MAX_ROWS - 1} rows "
            f"and {MAX_COLUMNS} columns",
            "write to .csv or .parquet",
        )


def to_cell(value: Any, column: str) -> Any:
    """A value that Excel can hold: text for what it has no type for."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return None if value != value else value if abs(value) <= _EXACT else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is None and value.year >= 1900:
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    if isinstance(value, dt.time) or (type(value) is dt.date and value.year >= 1900):
        return value
    if not isinstance(value, str):
        value = value.isoformat(" ") if isinstance(value, dt.datetime) else plain_text(value)
    illegal = import_optional("openpyxl.cell.cell", "excel").ILLEGAL_CHARACTERS_RE
    if len(value) > MAX_CHARACTERS or illegal.search(value):
        raise TableError(
            f"column {column!r}: {value[:40]!r} cannot be in an Excel cell, which holds {MAX_CHARACTERS} characters "
            "and no control characters",
            "write to .csv or .parquet",
            column=column,
        )
    return value


def set_cell(cell: Any, value: Any) -> None:
    """Write a value; text that begins with = stays text."""
    cell.value = value
    if isinstance(value, str):
        cell.data_type = "s"


def _typed_cell(sheet: Any, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("="):
        return value
    cell = import_optional("openpyxl.cell", "excel").WriteOnlyCell(sheet)
    set_cell(cell, value)
    return cell
