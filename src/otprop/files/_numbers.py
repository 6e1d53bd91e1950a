"""Text parsed as numbers, with units, currencies and thousands separators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._optional import pa, pc
from otprop.files._distinct import MISSING_NUMBERS, DistinctValues, ParsedColumn, Reading

_INTEGER = r"^[+-]?\d+$"
_GROUPS = {".": [",", " ", "'", "\u2019", "\u00a0", "\u202f", "\u2009"]}  # thousands, by decimal sign
_GROUPS[","] = [".", *_GROUPS["."][1:]]
_MONEY = (
    r"(?:US\$|R\$|[$€£¥₹₽₩₺₴₪₫฿₦₱¢]|kr\.?|zł|Kč|Fr\.|"
    r"USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|NZD|BRL)"
)


@dataclass
class Stripped:
    """Values with the numbers alone, and what was around them."""

    distinct: DistinctValues
    percent: np.ndarray  # which values had a percent sign
    money: list[str]  # the currencies
    examples: list[int]  # a value for each notation that was found


def find_decimal(columns: list[Any]) -> str | None:
    """The decimal sign that more numbers need; None if no number needs either."""
    point = comma = 0
    for text in columns:
        stripped = strip(DistinctValues.from_column(text)).distinct
        point += int(stripped.counts[needs(stripped, ".")].sum())
        comma += int(stripped.counts[needs(stripped, ",")].sum())
    return None if point == comma == 0 else "," if comma > point else "."


def needs(distinct: DistinctValues, sign: str) -> np.ndarray:
    """Which values are numbers in which `sign` cannot be a thousands separator."""
    s, other = re.escape(sign), re.escape(_other(sign))
    alone = rf"\d*{s}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{s}\d+|0{s}\d+"
    return distinct.match(rf"^[+-]?({alone}|\d{{1,3}}({other}\d{{3}})+{s}\d+)([eE][+-]?\d+)?$")


def strip(distinct: DistinctValues) -> Stripped:
    """Remove percent signs, currencies, brackets and trailing minus signs around numbers."""

    def replace(text: Any, pattern: str, instead: str) -> Any:
        return pc.replace_substring_regex(text, pattern, instead)

    dash = distinct.match("\u2212|^\u2013.*\\d")
    bracket, late = distinct.match(r"^\(.*\d.*\)$"), distinct.match(r"\d.*-$")
    text = replace(pc.replace_substring(distinct.values, "\u2212", "-"), "^\u2013", "-")
    text = replace(replace(text, r"^\((.*\d.*)\)$", r"-\1"), r"^(.*\d.*)-$", r"-\1")
    inner = distinct.with_values(text)
    percent = inner.match(r"\d.*%$")
    before, after = rf"^([+-]?)\s*{_MONEY}\s*([+-]?[\d.,].*)$", rf"^([+-]?[\d.,].*?)\s*(?:{_MONEY}|%)$"
    money = inner.match(before) | (inner.match(after) & ~percent)
    text = replace(replace(text, before, r"\1\2"), after, r"\1")
    found: list[str] = []
    if money.any():
        amounts = inner.values.filter(pa.array(money))
        found = sorted(pc.unique(pc.struct_field(pc.extract_regex(amounts, f"(?P<sign>{_MONEY})"), "sign")).to_pylist())
    examples = [int(np.argmax(mask)) for mask in (percent, money, bracket, late, dash) if mask.any()]
    return Stripped(distinct.with_values(text), percent, found, list(dict.fromkeys(examples)))


def number_mask(distinct: DistinctValues, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """Which values are plain numbers, and which have thousands separators."""
    sign = re.escape(decimal)
    plain = distinct.match(rf"^[+-]?(\d+{sign}?\d*|{sign}\d+)([eE][+-]?\d+)?$")
    plain |= distinct.match(r"^[+-]?inf(inity)?$", ignore_case=True)
    grouped = np.zeros_like(plain)
    for group in _GROUPS[decimal]:
        separator = re.escape(group)
        grouped |= distinct.match(rf"^[+-]?\d{{1,3}}({separator}\d{{3}})+({sign}\d+)?$")
    return plain, grouped & ~plain


def any_number(distinct: DistinctValues) -> np.ndarray:
    """Which values are numbers with either decimal sign, with or without a unit."""
    stripped = strip(distinct).distinct
    masks = [mask for decimal in ".," for mask in number_mask(stripped, decimal)]
    return np.any(masks, axis=0)


def read_numbers(column: DistinctValues, decimal: str) -> ParsedColumn | None:
    """The column as numbers if all of its cells are; as text with a note where their units differ."""
    sample = column.sample()
    if not (any_number(sample) | sample.isin(MISSING_NUMBERS)).all():
        return None
    distinct = column.with_missing(column.isin(MISSING_NUMBERS))
    if distinct.missing.all():
        return None
    stripped = _strip_if_needed(distinct)
    for sign in (decimal, _other(decimal)):
        plain, grouped = _masks(stripped.distinct, sign)
        if sign != decimal and grouped.any():  # 1.234 in a file with decimal commas is 1234
            continue
        if not distinct.all_known(plain | grouped):
            continue
        why = _not_numbers(stripped)
        if why:
            return column.as_text(why)
        notes = []
        if grouped.any():
            notes.append(f"has thousands separators ({distinct.first(grouped)!r}), read as numbers")
        if sign != decimal:
            notes.append(f"has the decimal sign {sign!r}, the rest of the file {decimal!r}")
        return _numbers(distinct, stripped, sign, bool(grouped.any()), notes)
    return None


def numbers_like(distinct: DistinctValues, reading: Reading, here: str | None) -> ParsedColumn | int:
    """The column as numbers with the reading of an earlier file; else the index of the first value that is not one.

    `here` is the decimal sign of this file, None where it is ambiguous.
    """
    distinct = distinct.with_missing(distinct.isin(MISSING_NUMBERS))
    stripped = _strip_if_needed(distinct)
    known = reading.form or here or "."
    first = known if here is None or needs(stripped.distinct, known).any() else here
    for sign in (first, _other(first)):
        plain, grouped = _masks(stripped.distinct, sign)
        if not distinct.all_known(plain | grouped) or (sign not in (first, known) and grouped.any()):
            continue
        unit = _unit(stripped)
        notes = []
        if sign != known and not distinct.all_known(distinct.match(_INTEGER)):
            notes.append(f"has the decimal sign {sign!r}, in the table of the model it was {known!r}")
        differs = unit != reading.unit and ((unit and reading.unit) or "%" in (unit, reading.unit))
        if differs and distinct.known.any():
            was = f"written with {reading.unit}" if reading.unit else "bare numbers"
            cell = distinct.first(distinct.known)
            notes.append(f"has cells such as {cell!r}, in the table of the model they were {was}")
        return _numbers(distinct, stripped, sign, bool(grouped.any()), notes)
    plain, grouped = _masks(stripped.distinct, known)
    return int(np.argmin(plain | grouped | distinct.missing))


def _other(sign: str) -> str:
    return "," if sign == "." else "."


def _are_plain(distinct: DistinctValues) -> bool:
    """Whether Arrow reads all values as numbers, which is faster than patterns."""
    try:
        distinct.nulls().cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _strip_if_needed(distinct: DistinctValues) -> Stripped:
    """`strip`, skipped where all values are plain numbers."""
    return Stripped(distinct, np.zeros_like(distinct.missing), [], []) if _are_plain(distinct) else strip(distinct)


def _masks(distinct: DistinctValues, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """`number_mask`, faster where all values are plain numbers."""
    if decimal == "." and _are_plain(distinct):
        return distinct.known, np.zeros_like(distinct.missing)
    return number_mask(distinct, decimal)


def _not_numbers(stripped: Stripped) -> str:
    """Why cells that look like numbers cannot be compared; empty where they can."""
    distinct, percent = stripped.distinct, stripped.percent
    if distinct.match(r"^0\d+$").any():
        return "has leading zeros, so it is read as text"
    if len(stripped.money) > 1:
        return f"mixes {stripped.money[0]} and {stripped.money[1]}, so it is read as text"
    if percent.any() and not distinct.all_known(percent | distinct.match("^0*[.,]?0*$")):
        return "has a percent sign in some cells and none in others, so it is read as text"
    return ""


def _unit(stripped: Stripped) -> str:
    return "%" if stripped.percent.any() else stripped.money[0] if stripped.money else ""


def _numbers(distinct: DistinctValues, stripped: Stripped, sign: str, grouped: bool, notes: list[str]) -> ParsedColumn:
    values = _parse(stripped.distinct, sign, grouped)
    if stripped.percent.any():
        values = np.where(stripped.percent, values / 100, values)
    for example in stripped.examples:
        if distinct.known[example]:
            notes.append(f"has cells such as {distinct.value(example)!r}, read as {values[example]:.10g}")
    return ParsedColumn(values[distinct.codes], Reading("number", sign, _unit(stripped)), notes)


def _parse(distinct: DistinctValues, decimal: str, grouped: bool) -> np.ndarray:
    """A number for every value: int64 if all fit and none is missing, else float64."""
    text = distinct.nulls()
    if grouped:
        text = pc.replace_substring_regex(text, "[" + re.escape("".join(_GROUPS[decimal])) + "]", "")
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    text = pc.utf8_ltrim(text, "+")
    if distinct.known.all() and distinct.match(_INTEGER).all():
        try:
            return np.asarray(text.cast(pa.int64()))
        except pa.ArrowInvalid:  # more than 64 bits
            pass
    return np.asarray(text.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
