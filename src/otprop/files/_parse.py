"""Text parsed as booleans, numbers, dates, times of day or text."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.files._dates import dates_like, looks_like_dates, read_dates, read_times, shown_form, times_like
from otprop.files._distinct import MISSING, SPREADSHEET_ERRORS, DistinctValues, ParsedColumn, Reading
from otprop.files._errors import TableError
from otprop.files._numbers import any_number, number_mask, numbers_like, read_numbers, strip
from otprop.files._optional import pandas

_BOOLEANS = ({"true": True, "false": False}, {"yes": True, "no": False})
_ANY_BOOLEAN = {**_BOOLEANS[0], **_BOOLEANS[1], "1": True, "0": False, "1.0": True, "0.0": False}
_FEW = 10  # distinct values that may be categories
_ADVICE = {
    "dates": "write dates as 2024-12-31",
    "times": "write times of day as 14:30, others as a number of seconds",
    "numbers with a unit": "write the numbers alone",
}
_MOST = 0.9  # share of the cells that makes a column look like a type


def parse(name: str, text: Any, decimal: str) -> ParsedColumn:
    """The column as the first of booleans, numbers, dates, times and text that fits all of its cells.

    Cells in `MISSING` are missing. Numbers with leading zeros (`007`) are codes and stay text.
    """
    distinct = DistinctValues.from_column(text)
    missing = distinct.isin(MISSING)
    if missing.all():
        return ParsedColumn(np.full(len(distinct.codes), np.nan), Reading("text"), _errors(name, distinct))
    for read in (_booleans, read_numbers, read_dates, read_times):
        column = read(name, distinct, missing, decimal)
        if column is not None:
            column.notes += _errors(name, distinct)
            return column
    notes = _mixed(name, distinct, missing, decimal) or _looks_like(name, distinct, missing)
    return ParsedColumn(distinct.to_rows(missing), Reading("text"), notes + _errors(name, distinct))


def parse_like(name: str, text: Any, reading: Reading, here: str | None, origin: str) -> ParsedColumn:
    """The column parsed as `reading` says; TableError with the first cell that does not fit.

    `here` is the decimal sign of this file, None where it is ambiguous.
    """
    distinct = DistinctValues.from_column(text)
    missing = distinct.isin(MISSING)
    if missing.all():
        return ParsedColumn(np.full(len(distinct.codes), np.nan), reading)
    column: ParsedColumn | None = None
    if reading.kind == "number":
        column, wrong = numbers_like(name, distinct, reading, here)
        expected, held = "not a number", "numbers"
        expected += f" with the decimal sign {reading.form!r}" if reading.form == "," else ""
    elif reading.kind == "date":
        column, wrong = dates_like(name, distinct, missing, reading)
        expected, held = f"not a date such as {shown_form(reading.form)}", "dates"
    elif reading.kind == "time":
        column, wrong = times_like(name, distinct, missing)
        expected, held = "not a time of day such as 14:30", "times of day"
    elif reading.kind == "boolean":
        column, wrong = _booleans_like(distinct, missing, reading)
        expected, held = "neither true nor false", "booleans"
    else:
        return ParsedColumn(distinct.to_rows(missing), reading)
    if column is None:
        raise TableError(
            f"{origin}: column {name!r}, row {distinct.first_row(wrong)}: {distinct.value(wrong)!r} is {expected}; "
            f"this column held {held} when the model was made",
            "fix the cell or leave it empty",
            file=origin,
            column=name,
        )
    column.notes += _errors(name, distinct)
    return column


def reading_of(column: Any) -> Reading | None:
    """The reading of a column that has a type in its file; None for types that text cannot hold."""
    types, kind = pandas.api.types, column.dtype
    if types.is_bool_dtype(kind):
        return Reading("boolean")
    if types.is_datetime64_any_dtype(kind):
        return Reading("date", "ISO8601", "zone" if column.dt.tz is not None else "")
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):
        return Reading("number")
    return Reading("text") if types.is_string_dtype(kind) and not types.is_object_dtype(kind) else None


def _booleans(name: str, distinct: DistinctValues, missing: np.ndarray, decimal: str) -> ParsedColumn | None:
    if np.count_nonzero(~missing) > 6:
        return None
    for values in _BOOLEANS:
        found = _as_booleans(distinct, missing, values)
        if found is not None:
            return found
    return None


def _booleans_like(distinct: DistinctValues, missing: np.ndarray, reading: Reading) -> tuple[ParsedColumn | None, int]:
    found = _as_booleans(distinct, missing, _ANY_BOOLEAN)
    if found is not None:
        return found, 0
    wrong = [text.lower() not in _ANY_BOOLEAN for text in distinct.values.to_pylist()] & ~missing
    return None, int(np.argmax(wrong))


def _as_booleans(distinct: DistinctValues, missing: np.ndarray, values: dict[str, bool]) -> ParsedColumn | None:
    lower = [text.lower() for text in distinct.values.to_pylist()]
    if not all(text in values for text, gone in zip(lower, missing, strict=True) if not gone):
        return None
    booleans = np.array([values.get(text, False) for text in lower], dtype=bool)[distinct.codes]
    if missing.any():
        booleans = pandas.array(np.where(missing[distinct.codes], None, booleans), dtype="boolean")
    return ParsedColumn(booleans, Reading("boolean"))


def _errors(name: str, distinct: DistinctValues) -> list[str]:
    wrong = distinct.isin(SPREADSHEET_ERRORS)
    if not wrong.any():
        return []
    return [f"column {name!r} has {distinct.first(wrong)} in {_rows(distinct, wrong)}, taken as missing"]


def _rows(distinct: DistinctValues, mask: np.ndarray) -> str:
    count = int(distinct.counts[mask].sum())
    return f"{count} row{'s' if count > 1 else ''}"


def _mixed(name: str, distinct: DistinctValues, missing: np.ndarray, decimal: str) -> list[str]:
    sample = distinct.sample()
    if 4 * np.count_nonzero(any_number(sample)) < len(sample.values):
        return []
    plain, grouped = number_mask(strip(distinct).distinct, decimal)
    number = (plain | grouped) & ~missing
    other = np.flatnonzero(~number & ~missing)
    n_numbers, n_cells = distinct.counts[number].sum(), distinct.counts[~missing].sum()
    if not len(other) or 2 * n_numbers < n_cells:
        return []
    first, n_other = int(other[0]), int(n_cells - n_numbers)  # values are in the order of their first rows
    cell = f"row {distinct.first_row(first)}: {distinct.value(first)!r}"
    advice = ""
    if n_other == 1 or n_numbers >= _MOST * n_cells:
        cell = cell if n_other == 1 else f"{n_other} of {n_cells} cells, the first in {cell}"
        advice = f"; empty or fix {'this cell' if n_other == 1 else 'these cells'} to use the column as a number"
    return [f"column {name!r} mixes numbers with other text ({cell}), so it is read as text{advice}"]


def _looks_like(name: str, distinct: DistinctValues, missing: np.ndarray) -> list[str]:
    """A note on text that a reader would take for numbers or dates."""
    n_cells = distinct.counts[~missing].sum()
    units = distinct.match(r"^[<>~]?[+-]?\d[\d.,' ]*\s*[^\W\d_][^\d]{0,7}$|^[<>~]=? ?[+-]?\d[\d.,]*$")
    units &= ~distinct.match(r"^.*\.[A-Za-z][A-Za-z0-9]{1,4}$")  # 0001.png is a file
    clock = distinct.match(r"^\d+:\d{2}(:\d{2})?$")
    for mask, what in ((looks_like_dates(distinct), "dates"), (clock, "times"), (units, "numbers with a unit")):
        mask &= ~missing
        if mask is units and np.count_nonzero(mask) <= _FEW:  # 1st and 2nd, 4a and 4b
            continue
        if distinct.counts[mask].sum() >= _MOST * n_cells:
            other = ~mask & ~missing
            odd = distinct.first(other if other.any() else mask)
            return [f"column {name!r} looks like {what} ({odd!r}), but is read as text ({_ADVICE[what]})"]
    return []
