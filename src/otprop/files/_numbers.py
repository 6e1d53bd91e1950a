"""Text parsed as numbers, with units, currencies and thousands separators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.files._distinct import MISSING, MISSING_NUMBERS, DistinctValues, ParsedColumn, Reading
from otprop.files._optional import pa, pc

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


def read_numbers(name: str, distinct: DistinctValues, missing: np.ndarray, decimal: str) -> ParsedColumn | None:
    """The column as numbers if all of its cells are; as text with a note where their units differ."""
    sample = distinct.sample()
    if not (any_number(sample) | sample.isin(MISSING_NUMBERS)).all():
        return None
    missing = distinct.isin(MISSING_NUMBERS)
    if missing.all():
        return None
    stripped = _strip_if_needed(distinct, missing)
    for sign in (decimal, _other(decimal)):
        plain, grouped = _masks(stripped.distinct, missing, sign)
        if sign != decimal and grouped.any():  # 1.234 in a file with decimal commas is 1234
            continue
        if not (plain | grouped | missing).all():
            continue
        why = _not_numbers(stripped, missing)
        if why:
            return ParsedColumn(distinct.to_rows(distinct.isin(MISSING)), Reading("text"), [f"column {name!r} {why}"])
        notes = []
        if grouped.any():
            notes.append(f"column {name!r} has thousands separators ({distinct.first(grouped)!r}), read as numbers")
        if sign != decimal:
            notes.append(f"column {name!r} has the decimal sign {sign!r}, the rest of the file {decimal!r}")
        return _numbers(name, distinct, stripped, missing, sign, bool(grouped.any()), notes)
    return None


def numbers_like(
    name: str, distinct: DistinctValues, reading: Reading, here: str | None
) -> tuple[ParsedColumn | None, int]:
    """The column as numbers with the reading of an earlier file; else None and the index of the first misfit.

    `here` is the decimal sign of this file, None where it is ambiguous.
    """
    missing = distinct.isin(MISSING_NUMBERS)
    stripped = _strip_if_needed(distinct, missing)
    known = reading.form or here or "."
    first = known if here is None or needs(stripped.distinct, known).any() else here
    for sign in (first, _other(first)):
        plain, grouped = _masks(stripped.distinct, missing, sign)
        if not (plain | grouped | missing).all() or (sign not in (first, known) and grouped.any()):
            continue
        unit = _unit(stripped)
        notes = []
        if sign != known and not distinct.match(_INTEGER)[~missing].all():
            notes.append(f"column {name!r} has the decimal sign {sign!r}, in the table of the model it was {known!r}")
        if unit != reading.unit and ((unit and reading.unit) or "%" in (unit, reading.unit)) and not missing.all():
            was = f"written with {reading.unit}" if reading.unit else "bare numbers"
            now = f"cells such as {distinct.first(~missing)!r}"
            notes.append(f"column {name!r} has {now}, in the table of the model they were {was}")
        return _numbers(name, distinct, stripped, missing, sign, bool(grouped.any()), notes), 0
    plain, grouped = _masks(stripped.distinct, missing, known)
    return None, int(np.argmin(plain | grouped | missing))


def _other(sign: str) -> str:
    return "," if sign == "." else "."


def _are_plain(distinct: DistinctValues, missing: np.ndarray) -> bool:
    """Whether Arrow reads all values as numbers, which is faster than patterns."""
    try:
        distinct.null_where(missing).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _strip_if_needed(distinct: DistinctValues, missing: np.ndarray) -> Stripped:
    """`strip`, skipped where all values are plain numbers."""
    return Stripped(distinct, np.zeros_like(missing), [], []) if _are_plain(distinct, missing) else strip(distinct)


def _masks(distinct: DistinctValues, missing: np.ndarray, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """`number_mask`, faster where all values are plain numbers."""
    if decimal == "." and _are_plain(distinct, missing):
        return ~missing, np.zeros_like(missing)
    return number_mask(distinct, decimal)


def _not_numbers(stripped: Stripped, missing: np.ndarray) -> str:
    """Why cells that look like numbers cannot be compared; empty where they can."""
    if stripped.distinct.match(r"^0\d+$").any():
        return "has leading zeros, so it is read as text"
    if len(stripped.money) > 1:
        return f"mixes {stripped.money[0]} and {stripped.money[1]}, so it is read as text"
    if stripped.percent.any() and not (stripped.percent | missing | stripped.distinct.match("^0*[.,]?0*$")).all():
        return "has a percent sign in some cells and none in others, so it is read as text"
    return ""


def _unit(stripped: Stripped) -> str:
    return "%" if stripped.percent.any() else stripped.money[0] if stripped.money else ""


def _numbers(
    name: str,
    distinct: DistinctValues,
    stripped: Stripped,
    missing: np.ndarray,
    sign: str,
    grouped: bool,
    notes: list[str],
) -> ParsedColumn:
    values = _parse(stripped.distinct, missing, sign, grouped)
    if stripped.percent.any():
        values = np.where(stripped.percent, values / 100, values)
    for example in stripped.examples:
        if not missing[example]:
            cell = distinct.value(example)
            notes.append(f"column {name!r} has cells such as {cell!r}, read as {values[example]:.10g}")
    return ParsedColumn(values[distinct.codes], Reading("number", sign, _unit(stripped)), notes)


def _parse(distinct: DistinctValues, missing: np.ndarray, decimal: str, grouped: bool) -> np.ndarray:
    """A number for every value: int64 if all fit and none is missing, else float64."""
    text = distinct.null_where(missing)
    if grouped:
        text = pc.replace_substring_regex(text, "[" + re.escape("".join(_GROUPS[decimal])) + "]", "")
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    text = pc.utf8_ltrim(text, "+")
    if not missing.any() and distinct.match(_INTEGER).all():
        try:
            return np.asarray(text.cast(pa.int64()))
        except pa.ArrowInvalid:  # more than 64 bits
            pass
    return np.asarray(text.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
