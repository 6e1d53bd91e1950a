"""Text of cells read as numbers, truth values, dates or text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop.files._error import need

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "<NA>", "NaT")
MISSING_NUMBERS = (*MISSING, "?", "-", "--", ".", "None", "none", "na")  # too often a word to be missing in text

_SOME = 200  # words looked at first
_INTEGER = r"^[+-]?\d+$"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_ZONE = r"( ?(Z|[+-]\d{2}:?\d{2}))"
_GROUPS = {".": [",", " ", "'", "\u2019", "\u00a0", "\u202f", "\u2009"]}  # thousands, by decimal sign
_GROUPS[","] = [".", *_GROUPS["."][1:]]
_TRUTH = ({"true": True, "false": False}, {"yes": True, "no": False})


@dataclass
class Typed:
    """A column of a frame, and what a user should know about it."""

    values: Any  # what pandas.Series takes
    notes: list[str] = field(default_factory=list)


class Words:
    """The different texts of a column, so that each is looked at once."""

    def __init__(self, words: Any, codes: np.ndarray) -> None:
        self.words = words
        self.codes = codes
        self.counts = np.bincount(codes, minlength=len(words))

    @classmethod
    def of(cls, text: Any) -> Words:
        """The words of a column, without blanks around them, in the order of their first rows."""
        encoded = text.dictionary_encode()
        words = need("pyarrow.compute").utf8_trim_whitespace(encoded.dictionary)
        return cls(words, encoded.indices.to_numpy(zero_copy_only=False))

    def some(self) -> Words:
        """Words from all over the column, to see quickly what it is not."""
        chosen = np.unique(np.linspace(0, len(self.words) - 1, _SOME).astype(np.int64))
        words = self.words.take(need("pyarrow").array(chosen))
        return Words(words, np.arange(len(words)))

    def are_in(self, words: tuple[str, ...]) -> np.ndarray:
        pc, pa = need("pyarrow.compute"), need("pyarrow")
        return _bools(pc.is_in(self.words, value_set=pa.array(words, self.words.type)))

    def match(self, pattern: str, ignore_case: bool = False) -> np.ndarray:
        pc = need("pyarrow.compute")
        return _bools(pc.match_substring_regex(self.words, pattern, ignore_case=ignore_case))

    def row_of(self, word: int) -> int:
        """The first row, from 1, that has this word."""
        return int(np.argmax(self.codes == word)) + 1


def typed(name: str, text: Any, decimal: str) -> Typed:
    """The column as numbers, truth values, dates or text, in this order, whichever fits all of its cells.

    Text that is given as missing (`MISSING`) is missing. Numbers with leading zeros (`007`) are codes, so text.
    """
    words = Words.of(text)
    missing = words.are_in(MISSING)
    if missing.all():
        return Typed(np.full(len(words.codes), np.nan))
    for read in (_truth, _numbers, _dates):
        column = read(name, words, missing, decimal)
        if column is not None:
            return column
    notes = _mixed(name, words, missing, decimal)
    return Typed(_text(words, missing), notes)


def find_decimal(columns: list[Any]) -> str:
    """The decimal sign of the file: the comma if numbers need it to be and none needs the point."""
    point = comma = 0
    for text in columns:
        words = Words.of(text)
        point += int(words.counts[_needs(words, ".")].sum())
        comma += int(words.counts[_needs(words, ",")].sum())
    return "," if comma > point else "."


def _needs(words: Words, sign: str) -> np.ndarray:
    """Numbers in which the sign cannot set thousands apart."""
    s = re.escape(sign)
    return words.match(rf"^[+-]?(\d*{s}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{s}\d+|0{s}\d+)([eE][+-]?\d+)?$")


def number_mask(words: Words, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """Which words are numbers, and which of these have thousands set apart."""
    sign = re.escape(decimal)
    plain = words.match(rf"^[+-]?(\d+{sign}?\d*|{sign}\d+)([eE][+-]?\d+)?$")
    plain |= words.match(r"^[+-]?inf(inity)?$", ignore_case=True)
    grouped = np.zeros_like(plain)
    for group in _GROUPS[decimal]:
        separator = re.escape(group)
        grouped |= words.match(rf"^[+-]?\d{{1,3}}({separator}\d{{3}})+({sign}\d+)?$")
    return plain, grouped & ~plain


def _any_number(words: Words) -> np.ndarray:
    """Numbers with either decimal sign."""
    masks = [mask for decimal in ".," for mask in number_mask(words, decimal)]
    return np.any(masks, axis=0)


def _number_mask_of_column(words: Words, missing: np.ndarray, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """The same as `number_mask`, quicker where all are plain numbers."""
    pa = need("pyarrow")
    if decimal == ".":
        try:
            _without(words, missing).cast(pa.float64())
        except pa.ArrowInvalid:
            return number_mask(words, decimal)
        return ~missing, np.zeros_like(missing)
    return number_mask(words, decimal)


def _without(words: Words, missing: np.ndarray) -> Any:
    """The words, null where they stand for something missing."""
    pa = need("pyarrow")
    return need("pyarrow.compute").if_else(pa.array(missing), pa.scalar(None, words.words.type), words.words)


def _numbers(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    some = words.some()
    if not (_any_number(some) | some.are_in(MISSING_NUMBERS)).all():
        return None
    missing = words.are_in(MISSING_NUMBERS)
    if missing.all():
        return None
    for sign in (decimal, "," if decimal == "." else "."):
        plain, grouped = _number_mask_of_column(words, missing, sign)
        if sign != decimal and grouped.any():  # 1.234 in a file of decimal commas is not one and a bit
            continue
        if not (plain | grouped | missing).all():
            continue
        if words.match(r"^0\d+$").any():
            return Typed(
                _text(words, words.are_in(MISSING)), [f"column {name!r} has leading zeros, so it is read as text"]
            )
        notes = []
        if grouped.any():
            example = words.words[int(np.argmax(grouped))].as_py()
            notes.append(f"column {name!r} has thousands separators ({example!r}), read as numbers")
        if sign != decimal:
            notes.append(f"column {name!r} has the decimal sign {sign!r}, the rest of the file {decimal!r}")
        return Typed(_parse(words, missing, sign, bool(grouped.any()))[words.codes], notes)
    return None


def _parse(words: Words, missing: np.ndarray, decimal: str, grouped: bool) -> np.ndarray:
    """A number for every word: integers if all are and none is missing or too large, else floats."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    text = _without(words, missing)
    if grouped:
        text = pc.replace_substring_regex(text, "[" + re.escape("".join(_GROUPS[decimal])) + "]", "")
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    text = pc.utf8_ltrim(text, "+")
    if not missing.any() and words.match(_INTEGER).all():
        try:
            return np.asarray(text.cast(pa.int64()))
        except pa.ArrowInvalid:  # more than 64 bits
            pass
    return np.asarray(text.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _truth(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    if np.count_nonzero(~missing) > 6:
        return None
    pandas = need("pandas")
    lower = [word.lower() for word in words.words.to_pylist()]
    for meaning in _TRUTH:
        if all(word in meaning for word, gone in zip(lower, missing, strict=True) if not gone):
            truth = np.array([meaning.get(word, False) for word in lower], dtype=bool)[words.codes]
            if missing.any():
                return Typed(pandas.array(np.where(missing[words.codes], None, truth), dtype="boolean"))
            return Typed(truth)
    return None


def _dates(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    """ISO dates and times, 2024/12/31, 31.12.2024, and days or months first with slashes where it is clear which."""
    some = words.some()
    if not (some.match(r"^\d") | some.are_in(MISSING)).all():
        return None
    time = rf"([T ]{_TIME})?"
    if (words.match(rf"^{_DATE}{time}{_ZONE}?$") | missing).all():
        zoned = words.match(rf"{_TIME}{_ZONE}$")[~missing]
        if zoned.any() and not zoned.all():  # some cells have a zone: there is no one time for the others
            return None
        return _parse_dates(words, missing, "ISO8601", bool(zoned.all()))
    for pattern, form in ((r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"), (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y")):
        if (words.match(rf"^{pattern}$") | missing).all():
            return _parse_dates(words, missing, form, False)
    if not (words.match(r"^\d{1,2}/\d{1,2}/\d{4}$") | missing).all():
        return None
    days_first = words.match(r"^(1[3-9]|2\d|3[01])/").any()
    months_first = words.match(r"^\d{1,2}/(1[3-9]|2\d|3[01])/").any()
    if days_first != months_first:
        return _parse_dates(words, missing, "%d/%m/%Y" if days_first else "%m/%d/%Y", False)
    why = "days and months both come first" if days_first else "days and months cannot be told apart"
    note = f"column {name!r} looks like dates, but {why}; it is read as text (write dates as 2024-12-31)"
    return Typed(_text(words, missing), [note])


def _parse_dates(words: Words, missing: np.ndarray, form: str, zoned: bool) -> Typed | None:
    pandas = need("pandas")
    text = words.words.to_pandas().astype(object).mask(missing, None)
    try:
        dates = pandas.to_datetime(text, format=form, utc=zoned)
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return Typed(dates.take(words.codes).reset_index(drop=True))


def _text(words: Words, missing: np.ndarray) -> Any:
    """The words as pandas' text, without blanks around them."""
    pa = need("pyarrow")
    text = _without(words, missing)
    return text.take(pa.array(words.codes)).to_pandas()


def _mixed(name: str, words: Words, missing: np.ndarray, decimal: str) -> list[str]:
    some = words.some()
    if 4 * np.count_nonzero(_any_number(some)) < len(some.words):
        return []
    plain, grouped = number_mask(words, decimal)
    number = (plain | grouped) & ~missing
    other = np.flatnonzero(~number & ~missing)
    n_numbers, n_cells = words.counts[number].sum(), words.counts[~missing].sum()
    if not len(other) or 2 * n_numbers < n_cells:
        return []
    first = int(other[0])  # words are in the order of their first rows
    return [
        f"column {name!r} mixes numbers with other text (row {words.row_of(first)}: {words.words[first].as_py()!r}), "
        "so it is read as text"
    ]


def _bools(array: Any) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)
