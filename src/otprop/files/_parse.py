"""Text parsed as booleans, numbers, dates, times of day or text."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

import numpy as np

from otprop._optional import pandas
from otprop.files._distinct import SPREADSHEET_ERRORS, DistinctValues, ParsedColumn, Reading
from otprop.files._errors import file_error
from otprop.files._numbers import any_number, number_mask, numbers_like, read_numbers, strip

ISO = "ISO8601"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_LONG_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_ISO_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_ZONE = r"( ?(Z|[+-]\d{2}:?\d{2}))"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[ap]\.?m\.?)?"
_ORDERS = (  # pattern of a date, and the strptime formats it may have
    (r"\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y", "%m/%d/%Y")),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%d/%m/%y", "%m/%d/%y")),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (rf"\d{{1,2}} (?:{_MONTHS}) \d{{4}}", ("%d %b %Y",)),
    (rf"\d{{1,2}}-(?:{_MONTHS})-\d{{4}}", ("%d-%b-%Y",)),
    (rf"\d{{1,2}}-(?:{_MONTHS})-\d{{2}}", ("%d-%b-%y",)),
    (rf"(?:{_MONTHS}) \d{{1,2}}, ?\d{{4}}", ("%b %d, %Y",)),
    (rf"\d{{1,2}}\.? (?:{_LONG_MONTHS}) \d{{4}}", ("%d %B %Y",)),
    (rf"(?:{_LONG_MONTHS}) \d{{1,2}}, ?\d{{4}}", ("%B %d, %Y",)),
)
_DAY_FIRST, _MONTH_FIRST = r"^(1[3-9]|2\d|3[01])[/-]", r"^\d{1,2}[/-](1[3-9]|2\d|3[01])[/-]"
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
    if distinct.missing.all():
        column = ParsedColumn(np.full(len(distinct.codes), np.nan), Reading("text"))
    else:
        column = (
            _read_booleans(distinct)
            or read_numbers(distinct, decimal)
            or _read_dates(distinct)
            or _read_times(distinct)
            or distinct.as_text(*(_mixed(distinct, decimal) or _looks_like(distinct)))
        )
    return _with_notes(column, name, distinct)


def parse_like(name: str, text: Any, reading: Reading, here: str | None, origin: str) -> ParsedColumn:
    """The column parsed as `reading` says; TableError with the first cell that does not fit.

    `here` is the decimal sign of this file, None where it is ambiguous.
    """
    distinct = DistinctValues.from_column(text)
    if distinct.missing.all():
        return ParsedColumn(np.full(len(distinct.codes), np.nan), reading)
    found: ParsedColumn | int  # the column, or the index of the first value that does not fit
    if reading.kind == "number":
        found = numbers_like(distinct, reading, here)
        expected, held = "not a number", "numbers"
        expected += f" with the decimal sign {reading.form!r}" if reading.form == "," else ""
    elif reading.kind == "date":
        found = _dates_like(distinct, reading)
        expected, held = f"not a date such as {_shown_form(reading.form)}", "dates"
    elif reading.kind == "time":
        wrong = np.isnan(_seconds(distinct.values.to_pandas().astype(object)))
        found = _read_times(distinct) or _first(wrong, distinct)
        expected, held = "not a time of day such as 14:30", "times of day"
    elif reading.kind == "boolean":
        wrong = np.array([text.lower() not in _ANY_BOOLEAN for text in distinct.values.to_pylist()], dtype=bool)
        found = _as_booleans(distinct, _ANY_BOOLEAN) or _first(wrong, distinct)
        expected, held = "neither true nor false", "booleans"
    else:
        return distinct.as_text()
    if isinstance(found, int):
        cell = f": column {name!r}, row {distinct.first_row(found)}: {distinct.value(found)!r} is {expected}"
        problem = f"{cell}; this column held {held} when the model was made"
        raise file_error(origin, problem, "fix the cell or leave it empty", name)
    return _with_notes(found, name, distinct)


def _with_notes(column: ParsedColumn, name: str, distinct: DistinctValues) -> ParsedColumn:
    """The column with its name before its notes, and one on errors of a spreadsheet."""
    wrong = distinct.isin(SPREADSHEET_ERRORS)
    if wrong.any():
        count = int(distinct.counts[wrong].sum())
        column.notes.append(f"has {distinct.first(wrong)} in {count} row{'s' if count > 1 else ''}, taken as missing")
    column.notes = [f"column {name!r} {note}" for note in column.notes]
    return column


def _first(wrong: np.ndarray, distinct: DistinctValues) -> int:
    """The index of the first value that is wrong and not missing."""
    return int(np.argmax(wrong & distinct.known))


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


def _read_booleans(distinct: DistinctValues) -> ParsedColumn | None:
    if np.count_nonzero(distinct.known) > 6:
        return None
    return next((found for values in _BOOLEANS if (found := _as_booleans(distinct, values))), None)


def _as_booleans(distinct: DistinctValues, values: dict[str, bool]) -> ParsedColumn | None:
    lower = [text.lower() for text in distinct.values.to_pylist()]
    if not distinct.all_known(np.array([text in values for text in lower], dtype=bool)):
        return None
    booleans = np.array([values.get(text, False) for text in lower], dtype=bool)[distinct.codes]
    if distinct.missing.any():
        booleans = pandas.array(np.where(distinct.missing[distinct.codes], None, booleans), dtype="boolean")
    return ParsedColumn(booleans, Reading("boolean"))


def _read_dates(distinct: DistinctValues) -> ParsedColumn | None:
    """The column as dates, with or without times, if all cells have one unambiguous format."""
    sample = distinct.sample()
    if not sample.all_known(sample.match(rf"^\d.*[-/. :]|^({_MONTHS})", ignore_case=True)):
        return None
    if distinct.all_known(distinct.match(rf"^\d{{4}}-\d{{1,2}}-\d{{1,2}}([T ]{_ISO_TIME})?{_ZONE}?$")):
        return _iso(distinct)
    for pattern, forms in _ORDERS:
        if not distinct.all_known(_written(distinct, pattern)):
            continue
        if len(forms) == 1:
            return _with_form(distinct, forms[0])
        days_first, months_first = distinct.match(_DAY_FIRST).any(), distinct.match(_MONTH_FIRST).any()
        if days_first != months_first:
            return _with_form(distinct, forms[0] if days_first else forms[1])
        why = "days and months both come first" if days_first else "days and months cannot be told apart"
        return distinct.as_text(f"looks like dates, but {why}; it is read as text (write dates as 2024-12-31)")
    return None


def _dates_like(distinct: DistinctValues, reading: Reading) -> ParsedColumn | int:
    """The column as dates in the earlier or another unambiguous format; else the index of the first misfit."""
    if reading.form != ISO:
        pattern = next((pattern for pattern, forms in _ORDERS if reading.form in forms), "^$")
        written = _written(distinct, pattern)
        if (written & distinct.known).any():
            dates = _parsed(distinct.with_missing(distinct.missing | ~written), reading.form)
            if not distinct.all_known(dates.notna().to_numpy()):
                return _first(dates.isna().to_numpy(), distinct)
            return ParsedColumn(_to_rows(dates, distinct), reading)
    found = _read_dates(distinct)
    if found is None or found.reading.kind != "date":
        dates = pandas.to_datetime(distinct.to_objects(), format=ISO, errors="coerce", utc=True)
        return _first(dates.isna().to_numpy(), distinct)
    if found.reading.form != reading.form:
        cell, was = distinct.first(distinct.known), _shown_form(reading.form)
        found.notes.append(f"has dates such as {cell!r}, in the table of the model they were written as {was}")
    elif found.reading.unit != reading.unit:
        has, had = ("a time zone", "none") if found.reading.unit else ("no time zone", "one")
        found.notes.append(f"has times with {has}, in the table of the model they had {had}")
    return found


def _shown_form(form: str) -> str:
    """An example date in this format."""
    return str(pandas.Timestamp(2024, 12, 31).strftime("%Y-%m-%d" if form == ISO else form))


def _written(distinct: DistinctValues, pattern: str) -> np.ndarray:
    return distinct.match(rf"^(?:{pattern})(?:[T ,]+{_CLOCK})?$", ignore_case=True)


def _iso(distinct: DistinctValues) -> ParsedColumn | None:
    zoned = distinct.match(rf"{_ISO_TIME}{_ZONE}$")[distinct.known]
    if zoned.any() and not zoned.all():  # cells without a zone cannot be compared with the others
        return None
    try:
        dates = pandas.to_datetime(distinct.to_objects(), format=ISO, utc=bool(zoned.all()))
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return ParsedColumn(_to_rows(dates, distinct), Reading("date", ISO, "zone" if zoned.all() else ""))


def _with_form(distinct: DistinctValues, form: str) -> ParsedColumn | None:
    dates = _parsed(distinct, form)
    if not distinct.all_known(dates.notna().to_numpy()):
        return None
    notes = ["has years of two digits, read as 1969 to 2068"] if form.endswith("%y") else []
    return ParsedColumn(_to_rows(dates, distinct), Reading("date", form), notes)


def _parsed(distinct: DistinctValues, form: str) -> Any:
    """A date for each value, with its time if it has one; NaT where it cannot be parsed."""
    parts = distinct.to_objects().str.extract(rf"(?i)^(?P<day>.*?)(?:[T ,]+(?P<clock>{_CLOCK}))?$")
    day, clock = parts["day"].astype(object), parts["clock"].astype(object)
    if form in ("%b %d, %Y", "%B %d, %Y"):
        day = day.str.replace(r", ?", ", ", regex=True)
    if form == "%d %B %Y":
        day = day.str.replace(".", "", regex=False)
    dates = pandas.to_datetime(day, format=form, errors="coerce")
    timed = clock.notna()
    if timed.any():
        seconds = np.where(timed, _seconds(clock), 0.0)
        late = np.round(np.nan_to_num(seconds) * 1e6).astype("timedelta64[us]")
        dates = (dates.astype("datetime64[us]") + late).mask(np.isnan(seconds))
    return dates


def _to_rows(dates: Any, distinct: DistinctValues) -> Any:
    return dates.take(distinct.codes).reset_index(drop=True)


def _read_times(distinct: DistinctValues) -> ParsedColumn | None:
    """The column as times of day if all of its cells are."""
    if not distinct.all_known(distinct.match(rf"^{_CLOCK}$", ignore_case=True)):
        return None
    seconds = _seconds(distinct.to_objects())
    if not distinct.all_known(~np.isnan(seconds)):
        return None
    clock = np.empty(len(seconds), dtype=object)
    clock[:] = [None if value != value else _time_of_day(value) for value in seconds]
    return ParsedColumn(clock[distinct.codes], Reading("time"))


def _seconds(clock: Any) -> np.ndarray:
    """Seconds since midnight; NaN where the time is invalid."""
    found = clock.str.extract(r"(?i)^(\d{1,2}):(\d{2})(?::(\d{2}(?:[.,]\d{1,9})?))?(?: ?([ap])\.?m\.?)?$")
    hours, minutes = found[0].astype(float).to_numpy(), found[1].astype(float).to_numpy()
    seconds = found[2].str.replace(",", ".", regex=False).fillna("0").astype(float).to_numpy()
    half = found[3].str.lower()
    halved, evening = half.notna().to_numpy(), (half == "p").to_numpy(dtype=bool)
    fine = np.where(halved, (hours >= 1) & (hours <= 12), hours <= 23) & (minutes <= 59) & (seconds < 60)
    hours = np.where(halved, hours % 12 + 12 * evening, hours)
    return np.where(fine, 3600 * hours + 60 * minutes + seconds, np.nan)


def _time_of_day(seconds: float) -> time:
    return (datetime.min + timedelta(microseconds=min(round(seconds * 1e6), 86_400_000_000 - 1))).time()


def _mixed(distinct: DistinctValues, decimal: str) -> list[str]:
    """A note on numbers with other text among them."""
    sample = distinct.sample()
    if 4 * np.count_nonzero(any_number(sample)) < len(sample.values):
        return []
    plain, grouped = number_mask(strip(distinct).distinct, decimal)
    number = (plain | grouped) & distinct.known
    other = np.flatnonzero(~number & distinct.known)
    n_numbers, n_cells = distinct.counts[number].sum(), distinct.counts[distinct.known].sum()
    if not len(other) or 2 * n_numbers < n_cells:
        return []
    first, n_other = int(other[0]), int(n_cells - n_numbers)  # values are in the order of their first rows
    cell = f"row {distinct.first_row(first)}: {distinct.value(first)!r}"
    advice = ""
    if n_other == 1 or n_numbers >= _MOST * n_cells:
        cell = cell if n_other == 1 else f"{n_other} of {n_cells} cells, the first in {cell}"
        advice = f"; empty or fix {'this cell' if n_other == 1 else 'these cells'} to use the column as a number"
    return [f"mixes numbers with other text ({cell}), so it is read as text{advice}"]


def _looks_like(distinct: DistinctValues) -> list[str]:
    """A note on text that a reader would take for numbers or dates."""
    n_cells = distinct.counts[distinct.known].sum()
    dates = distinct.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b")
    dates |= distinct.match(rf"^(\w+,? )?\d{{1,2}}[ .-]+({_MONTHS})|^({_MONTHS})[a-z]* \d", ignore_case=True)
    units = distinct.match(r"^[<>~]?[+-]?\d[\d.,' ]*\s*[^\W\d_][^\d]{0,7}$|^[<>~]=? ?[+-]?\d[\d.,]*$")
    units &= ~distinct.match(r"^.*\.[A-Za-z][A-Za-z0-9]{1,4}$")  # 0001.png is a file
    clock = distinct.match(r"^\d+:\d{2}(:\d{2})?$")
    for mask, what in ((dates, "dates"), (clock, "times"), (units, "numbers with a unit")):
        mask &= distinct.known
        if mask is units and np.count_nonzero(mask) <= _FEW:  # 1st and 2nd, 4a and 4b
            continue
        if distinct.counts[mask].sum() >= _MOST * n_cells:
            other = ~mask & distinct.known
            odd = distinct.first(other if other.any() else mask)
            return [f"looks like {what} ({odd!r}), but is read as text ({_ADVICE[what]})"]
    return []
