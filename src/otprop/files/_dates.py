"""Text of cells read as dates and times of day; the only place that decides about them."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any

import numpy as np

from otprop.files._error import need
from otprop.files._words import MISSING, Reading, Typed, Words

ISO = "ISO8601"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_LONG_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_ISO_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_ZONE = r"( ?(Z|[+-]\d{2}:?\d{2}))"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[ap]\.?m\.?)?"
_ORDERS = (  # how a date is written, and what that may mean
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


def read_dates(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    """The column as dates, if all of its cells are written in one way and it is clear which; with times or without."""
    some = words.some()
    if not (some.match(rf"^\d.*[-/. :]|^({_MONTHS})", ignore_case=True) | some.are_in(MISSING)).all():
        return None
    if _are_iso(words, missing):
        return _iso(words, missing)
    for pattern, forms in _ORDERS:
        if not (_written(words, pattern) | missing).all():
            continue
        if len(forms) == 1:
            return _with_form(name, words, missing, forms[0])
        days_first, months_first = words.match(_DAY_FIRST).any(), words.match(_MONTH_FIRST).any()
        if days_first != months_first:
            return _with_form(name, words, missing, forms[0] if days_first else forms[1])
        why = "days and months both come first" if days_first else "days and months cannot be told apart"
        note = f"column {name!r} looks like dates, but {why}; it is read as text (write dates as 2024-12-31)"
        return Typed(words.text(missing), Reading("text"), [note])
    return None


def dates_like(name: str, words: Words, missing: np.ndarray, reading: Reading) -> tuple[Typed | None, int]:
    """The column as dates written as before, or in a way that cannot be mistaken; else None and the first misfit."""
    if reading.form != ISO:
        pattern = next((pattern for pattern, forms in _ORDERS if reading.form in forms), "^$")
        written = _written(words, pattern)
        if (written & ~missing).any():
            dates = _parsed(words, missing | ~written, reading.form)
            wrong = ~missing & np.asarray(dates.isna())
            if wrong.any():
                return None, int(np.argmax(wrong))
            return Typed(_rows(dates, words), reading), 0
    found = read_dates(name, words, missing, "")
    if found is None or found.reading.kind != "date":
        return None, _first_misfit(words, missing)
    if found.reading.form != reading.form:
        found.notes.append(
            f"column {name!r} has dates such as {words.first(~missing)!r}, in the table of the model they were "
            f"written as {shown_form(reading.form)}"
        )
    elif found.reading.unit != reading.unit:
        has, had = ("a time zone", "none") if found.reading.unit else ("no time zone", "one")
        found.notes.append(f"column {name!r} has times with {has}, in the table of the model they had {had}")
    return found, 0


def read_times(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    """The column as times of day, if all of its cells are."""
    if not (words.match(rf"^{_CLOCK}$", ignore_case=True) | missing).all():
        return None
    seconds = _seconds(words.without(missing).to_pandas().astype(object))
    if (np.isnan(seconds) & ~missing).any():
        return None
    clock = np.empty(len(seconds), dtype=object)
    clock[:] = [None if value != value else _time_of_day(value) for value in seconds]
    return Typed(clock[words.codes], Reading("time"))


def times_like(name: str, words: Words, missing: np.ndarray) -> tuple[Typed | None, int]:
    """The column as times of day; else None and the first word that is none."""
    found = read_times(name, words, missing, "")
    if found is not None:
        return found, 0
    wrong = ~missing & np.isnan(_seconds(words.words.to_pandas().astype(object)))
    return None, int(np.argmax(wrong))


def shown_form(form: str) -> str:
    """A date written so, as an example."""
    return str(need("pandas").Timestamp(2024, 12, 31).strftime("%Y-%m-%d" if form == ISO else form))


def looks_like_dates(words: Words) -> np.ndarray:
    """Which words have the look of a date, in whatever way."""
    numbers = words.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b")
    return numbers | words.match(rf"^(\w+,? )?\d{{1,2}}[ .-]+({_MONTHS})|^({_MONTHS})[a-z]* \d", ignore_case=True)


def _written(words: Words, pattern: str) -> np.ndarray:
    return words.match(rf"^(?:{pattern})(?:[T ,]+{_CLOCK})?$", ignore_case=True)


def _are_iso(words: Words, missing: np.ndarray) -> bool:
    return bool((words.match(rf"^\d{{4}}-\d{{1,2}}-\d{{1,2}}([T ]{_ISO_TIME})?{_ZONE}?$") | missing).all())


def _iso(words: Words, missing: np.ndarray) -> Typed | None:
    zoned = words.match(rf"{_ISO_TIME}{_ZONE}$")[~missing]
    if zoned.any() and not zoned.all():  # some cells have a zone: there is no one time for the others
        return None
    text = words.without(missing).to_pandas().astype(object)
    try:
        dates = need("pandas").to_datetime(text, format=ISO, utc=bool(zoned.all()))
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return Typed(_rows(dates, words), Reading("date", ISO, "zone" if zoned.all() else ""))


def _with_form(name: str, words: Words, missing: np.ndarray, form: str) -> Typed | None:
    dates = _parsed(words, missing, form)
    if (np.asarray(dates.isna()) & ~missing).any():
        return None
    notes = [f"column {name!r} has years of two digits, read as 1969 to 2068"] if form.endswith("%y") else []
    return Typed(_rows(dates, words), Reading("date", form), notes)


def _parsed(words: Words, missing: np.ndarray, form: str) -> Any:
    """A date for each word, with its time if it has one; NaT where that cannot be."""
    pandas = need("pandas")
    text = words.without(missing).to_pandas().astype(object)
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
    """Seconds since midnight; NaN where there is no such time."""
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


def _first_misfit(words: Words, missing: np.ndarray) -> int:
    """The first word that is no ISO date."""
    text = words.without(missing).to_pandas().astype(object)
    dates = need("pandas").to_datetime(text, format=ISO, errors="coerce", utc=True)
    return int(np.argmax(np.asarray(dates.isna()) & ~missing))


def _rows(dates: Any, words: Words) -> Any:
    return dates.take(words.codes).reset_index(drop=True)
