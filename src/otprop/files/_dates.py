"""Text parsed as dates and times of day."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any

import numpy as np

from otprop.files._distinct import MISSING, DistinctValues, ParsedColumn, Reading
from otprop.files._optional import pandas

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


def read_dates(name: str, distinct: DistinctValues, missing: np.ndarray, decimal: str) -> ParsedColumn | None:
    """The column as dates, with or without times, if all cells have one unambiguous format."""
    sample = distinct.sample()
    if not (sample.match(rf"^\d.*[-/. :]|^({_MONTHS})", ignore_case=True) | sample.isin(MISSING)).all():
        return None
    if _are_iso(distinct, missing):
        return _iso(distinct, missing)
    for pattern, forms in _ORDERS:
        if not (_written(distinct, pattern) | missing).all():
            continue
        if len(forms) == 1:
            return _with_form(name, distinct, missing, forms[0])
        days_first, months_first = distinct.match(_DAY_FIRST).any(), distinct.match(_MONTH_FIRST).any()
        if days_first != months_first:
            return _with_form(name, distinct, missing, forms[0] if days_first else forms[1])
        why = "days and months both come first" if days_first else "days and months cannot be told apart"
        note = f"column {name!r} looks like dates, but {why}; it is read as text (write dates as 2024-12-31)"
        return ParsedColumn(distinct.to_rows(missing), Reading("text"), [note])
    return None


def dates_like(
    name: str, distinct: DistinctValues, missing: np.ndarray, reading: Reading
) -> tuple[ParsedColumn | None, int]:
    """The column as dates in the earlier or another unambiguous format; else None and the index of the first misfit."""
    if reading.form != ISO:
        pattern = next((pattern for pattern, forms in _ORDERS if reading.form in forms), "^$")
        written = _written(distinct, pattern)
        if (written & ~missing).any():
            dates = _parsed(distinct, missing | ~written, reading.form)
            wrong = ~missing & np.asarray(dates.isna())
            if wrong.any():
                return None, int(np.argmax(wrong))
            return ParsedColumn(_rows(dates, distinct), reading), 0
    found = read_dates(name, distinct, missing, "")
    if found is None or found.reading.kind != "date":
        return None, _first_misfit(distinct, missing)
    if found.reading.form != reading.form:
        found.notes.append(
            f"column {name!r} has dates such as {distinct.first(~missing)!r}, in the table of the model they were "
            f"written as {shown_form(reading.form)}"
        )
    elif found.reading.unit != reading.unit:
        has, had = ("a time zone", "none") if found.reading.unit else ("no time zone", "one")
        found.notes.append(f"column {name!r} has times with {has}, in the table of the model they had {had}")
    return found, 0


def read_times(name: str, distinct: DistinctValues, missing: np.ndarray, decimal: str) -> ParsedColumn | None:
    """The column as times of day if all of its cells are."""
    if not (distinct.match(rf"^{_CLOCK}$", ignore_case=True) | missing).all():
        return None
    seconds = _seconds(distinct.null_where(missing).to_pandas().astype(object))
    if (np.isnan(seconds) & ~missing).any():
        return None
    clock = np.empty(len(seconds), dtype=object)
    clock[:] = [None if value != value else _time_of_day(value) for value in seconds]
    return ParsedColumn(clock[distinct.codes], Reading("time"))


def times_like(name: str, distinct: DistinctValues, missing: np.ndarray) -> tuple[ParsedColumn | None, int]:
    """The column as times of day; else None and the index of the first misfit."""
    found = read_times(name, distinct, missing, "")
    if found is not None:
        return found, 0
    wrong = ~missing & np.isnan(_seconds(distinct.values.to_pandas().astype(object)))
    return None, int(np.argmax(wrong))


def shown_form(form: str) -> str:
    """An example date in this format."""
    return str(pandas.Timestamp(2024, 12, 31).strftime("%Y-%m-%d" if form == ISO else form))


def looks_like_dates(distinct: DistinctValues) -> np.ndarray:
    """Which values look like a date in any notation."""
    numbers = distinct.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b")
    return numbers | distinct.match(rf"^(\w+,? )?\d{{1,2}}[ .-]+({_MONTHS})|^({_MONTHS})[a-z]* \d", ignore_case=True)


def _written(distinct: DistinctValues, pattern: str) -> np.ndarray:
    return distinct.match(rf"^(?:{pattern})(?:[T ,]+{_CLOCK})?$", ignore_case=True)


def _are_iso(distinct: DistinctValues, missing: np.ndarray) -> bool:
    return bool((distinct.match(rf"^\d{{4}}-\d{{1,2}}-\d{{1,2}}([T ]{_ISO_TIME})?{_ZONE}?$") | missing).all())


def _iso(distinct: DistinctValues, missing: np.ndarray) -> ParsedColumn | None:
    zoned = distinct.match(rf"{_ISO_TIME}{_ZONE}$")[~missing]
    if zoned.any() and not zoned.all():  # cells without a zone cannot be compared with the others
        return None
    text = distinct.null_where(missing).to_pandas().astype(object)
    try:
        dates = pandas.to_datetime(text, format=ISO, utc=bool(zoned.all()))
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return ParsedColumn(_rows(dates, distinct), Reading("date", ISO, "zone" if zoned.all() else ""))


def _with_form(name: str, distinct: DistinctValues, missing: np.ndarray, form: str) -> ParsedColumn | None:
    dates = _parsed(distinct, missing, form)
    if (np.asarray(dates.isna()) & ~missing).any():
        return None
    notes = [f"column {name!r} has years of two digits, read as 1969 to 2068"] if form.endswith("%y") else []
    return ParsedColumn(_rows(dates, distinct), Reading("date", form), notes)


def _parsed(distinct: DistinctValues, missing: np.ndarray, form: str) -> Any:
    """A date for each value, with its time if it has one; NaT where it cannot be parsed."""
    text = distinct.null_where(missing).to_pandas().astype(object)
    parts = text.str.extract(rf"(?i)^(?P<day>.*?)(?:[T ,]+(?P<clock>{_CLOCK}))?$")
    day = parts["day"].astype(object)
    if form in ("%b %d, %Y", "%B %d, %Y"):
        day = day.str.replace(r", ?", ", ", regex=True)
    if form == "%d %B %Y":
        day = day.str.replace(".", "", regex=False)
    dates = pandas.to_datetime(day, format=form, errors="coerce")
    clock = parts["clock"].astype(object)
    timed = clock.notna()
    if timed.any():
        seconds = np.where(timed, _seconds(clock), 0.0)
        late = np.round(np.nan_to_num(seconds) * 1e6).astype("timedelta64[us]")
        dates = (dates.astype("datetime64[us]") + late).mask(np.isnan(seconds))
    return dates


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
    whole = timedelta(microseconds=min(round(seconds * 1e6), 86_400_000_000 - 1))
    minutes, rest = divmod(whole.seconds, 60)
    return time(minutes // 60, minutes % 60, rest, whole.microseconds)


def _first_misfit(distinct: DistinctValues, missing: np.ndarray) -> int:
    """The index of the first value that is not an ISO date."""
    text = distinct.null_where(missing).to_pandas().astype(object)
    dates = pandas.to_datetime(text, format=ISO, errors="coerce", utc=True)
    return int(np.argmax(np.asarray(dates.isna()) & ~missing))


def _rows(dates: Any, distinct: DistinctValues) -> Any:
    return dates.take(distinct.codes).reset_index(drop=True)
