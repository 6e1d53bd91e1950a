"""Text of cells read as numbers, truth values, dates, times of day or text."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.files._dates import dates_like, looks_like_dates, read_dates, read_times, shown_form, times_like
from otprop.files._error import TableError, need
from otprop.files._numbers import any_number, number_mask, numbers_like, read_numbers, strip
from otprop.files._words import MISSING, SPREADSHEET_ERRORS, Reading, Typed, Words

_TRUTH = ({"true": True, "false": False}, {"yes": True, "no": False})
_ANY_TRUTH = {**_TRUTH[0], **_TRUTH[1], "1": True, "0": False, "1.0": True, "0.0": False}
_FEW = 10  # different values that may well be categories
_ADVICE = {
    "dates": "write dates as 2024-12-31",
    "times": "write times of day as 14:30, others as a number of seconds",
    "numbers with a unit": "write the numbers alone",
}
_MOST = 0.9  # from this share of the cells on, a column looks like something


def typed(name: str, text: Any, decimal: str) -> Typed:
    """The column as truth values, numbers, dates, times or text, in this order, whichever fits all of its cells.

    Text that is given as missing (`MISSING`) is missing. Numbers with leading zeros (`007`) are codes, so text.
    """
    words = Words.of(text)
    missing = words.are_in(MISSING)
    if missing.all():
        return Typed(np.full(len(words.codes), np.nan), Reading("text"), _errors(name, words))
    for read in (_truth, read_numbers, read_dates, read_times):
        column = read(name, words, missing, decimal)
        if column is not None:
            column.notes += _errors(name, words)
            return column
    notes = _mixed(name, words, missing, decimal) or _looks_like(name, words, missing)
    return Typed(words.text(missing), Reading("text"), notes + _errors(name, words))


def typed_like(name: str, text: Any, reading: Reading, here: str | None, origin: str) -> Typed:
    """The column read as one of the same name was before; TableError with the first cell that does not fit.

    `here` is the decimal sign of this file, where it can be told.
    """
    words = Words.of(text)
    missing = words.are_in(MISSING)
    if missing.all():
        return Typed(np.full(len(words.codes), np.nan), reading)
    column: Typed | None = None
    if reading.kind == "number":
        column, wrong = numbers_like(name, words, reading, here)
        expected = "no number" + (f" with the decimal sign {reading.form!r}" if reading.form == "," else "")
    elif reading.kind == "date":
        column, wrong = dates_like(name, words, missing, reading)
        expected = f"no date such as {shown_form(reading.form)}"
    elif reading.kind == "time":
        column, wrong = times_like(name, words, missing)
        expected = "no time of day such as 14:30"
    elif reading.kind == "truth":
        column, wrong = _truth_like(words, missing, reading)
        expected = "neither true nor false"
    else:
        return Typed(words.text(missing), reading)
    if column is None:
        raise TableError(
            f"{origin}: column {name!r}, row {words.row_of(wrong)}: {words.word(wrong)!r} is {expected}, as the table "
            "of the model has them; mend the cell or leave it empty."
        )
    column.notes += _errors(name, words)
    return column


def reading_of(column: Any) -> Reading | None:
    """How a column would be read whose types stood in its file; None for what text cannot hold."""
    types = need("pandas").api.types
    kind = column.dtype
    if types.is_bool_dtype(kind):
        return Reading("truth")
    if types.is_datetime64_any_dtype(kind):
        return Reading("date", "ISO8601", "zone" if column.dt.tz is not None else "")
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):
        return Reading("number")
    return Reading("text") if types.is_string_dtype(kind) and not types.is_object_dtype(kind) else None


def _truth(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    if np.count_nonzero(~missing) > 6:
        return None
    for meaning in _TRUTH:
        found = _by_meaning(words, missing, meaning)
        if found is not None:
            return found
    return None


def _truth_like(words: Words, missing: np.ndarray, reading: Reading) -> tuple[Typed | None, int]:
    found = _by_meaning(words, missing, _ANY_TRUTH)
    if found is not None:
        return found, 0
    wrong = [word.lower() not in _ANY_TRUTH for word in words.words.to_pylist()] & ~missing
    return None, int(np.argmax(wrong))


def _by_meaning(words: Words, missing: np.ndarray, meaning: dict[str, bool]) -> Typed | None:
    lower = [word.lower() for word in words.words.to_pylist()]
    if not all(word in meaning for word, gone in zip(lower, missing, strict=True) if not gone):
        return None
    truth = np.array([meaning.get(word, False) for word in lower], dtype=bool)[words.codes]
    if missing.any():
        truth = need("pandas").array(np.where(missing[words.codes], None, truth), dtype="boolean")
    return Typed(truth, Reading("truth"))


def _errors(name: str, words: Words) -> list[str]:
    wrong = words.are_in(SPREADSHEET_ERRORS)
    if not wrong.any():
        return []
    return [f"column {name!r} has {words.first(wrong)} in {_rows(words, wrong)}, taken as missing"]


def _rows(words: Words, mask: np.ndarray) -> str:
    count = int(words.counts[mask].sum())
    return f"{count} row{'s' if count > 1 else ''}"


def _mixed(name: str, words: Words, missing: np.ndarray, decimal: str) -> list[str]:
    some = words.some()
    if 4 * np.count_nonzero(any_number(some)) < len(some.words):
        return []
    plain, grouped = number_mask(strip(words).words, decimal)
    number = (plain | grouped) & ~missing
    other = np.flatnonzero(~number & ~missing)
    n_numbers, n_cells = words.counts[number].sum(), words.counts[~missing].sum()
    if not len(other) or 2 * n_numbers < n_cells:
        return []
    first = int(other[0])  # words are in the order of their first rows
    return [
        f"column {name!r} mixes numbers with other text (row {words.row_of(first)}: {words.word(first)!r}), "
        "so it is read as text"
    ]


def _looks_like(name: str, words: Words, missing: np.ndarray) -> list[str]:
    """A note where a person would see numbers or dates."""
    n_cells = words.counts[~missing].sum()
    units = words.match(r"^[<>~]?[+-]?\d[\d.,' ]*\s*[^\W\d_][^\d]{0,7}$|^[<>~]=? ?[+-]?\d[\d.,]*$")
    clock = words.match(r"^\d+:\d{2}(:\d{2})?$")
    for mask, what in ((looks_like_dates(words), "dates"), (clock, "times"), (units, "numbers with a unit")):
        mask &= ~missing
        if mask is units and np.count_nonzero(mask) <= _FEW:  # 1st and 2nd, 4a and 4b
            continue
        if words.counts[mask].sum() >= _MOST * n_cells:
            other = ~mask & ~missing
            odd = words.first(other if other.any() else mask)
            return [f"column {name!r} looks like {what} ({odd!r}), but is read as text ({_ADVICE[what]})"]
    return []
