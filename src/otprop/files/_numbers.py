"""Text of cells read as numbers, with what people put around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.files._error import need
from otprop.files._words import MISSING, MISSING_NUMBERS, Reading, Typed, Words

_INTEGER = r"^[+-]?\d+$"
_GROUPS = {".": [",", " ", "'", "\u2019", "\u00a0", "\u202f", "\u2009"]}  # thousands, by decimal sign
_GROUPS[","] = [".", *_GROUPS["."][1:]]
_MONEY = (
    r"(?:US\$|R\$|[$€£¥₹₽₩₺₴₪₫฿₦₱¢]|kr\.?|zł|Kč|Fr\.|"
    r"USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|NZD|BRL)"
)


@dataclass
class Stripped:
    """Words with the numbers alone, and what was around them."""

    words: Words
    percent: np.ndarray  # which words had a percent sign
    money: list[str]  # the signs of money
    examples: list[int]  # a word for each way of writing that was found


def find_decimal(columns: list[Any]) -> str | None:
    """The decimal sign of the file: the one that more numbers need; None if none needs either."""
    point = comma = 0
    for text in columns:
        stripped = strip(Words.of(text)).words
        point += int(stripped.counts[needs(stripped, ".")].sum())
        comma += int(stripped.counts[needs(stripped, ",")].sum())
    return None if point == comma == 0 else "," if comma > point else "."


def needs(words: Words, sign: str) -> np.ndarray:
    """Numbers in which the sign cannot set thousands apart."""
    s, other = re.escape(sign), re.escape(_other(sign))
    alone = rf"\d*{s}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{s}\d+|0{s}\d+"
    return words.match(rf"^[+-]?({alone}|\d{{1,3}}({other}\d{{3}})+{s}\d+)([eE][+-]?\d+)?$")


def strip(words: Words) -> Stripped:
    """Take away percent signs, signs of money, brackets and late minus signs, where a number is within."""
    pc = need("pyarrow.compute")

    def replace(text: Any, pattern: str, instead: str) -> Any:
        return pc.replace_substring_regex(text, pattern, instead)

    dash = words.match("\u2212|^\u2013.*\\d")
    bracket, late = words.match(r"^\(.*\d.*\)$"), words.match(r"\d.*-$")
    text = replace(pc.replace_substring(words.words, "\u2212", "-"), "^\u2013", "-")
    text = replace(replace(text, r"^\((.*\d.*)\)$", r"-\1"), r"^(.*\d.*)-$", r"-\1")
    inner = words.replaced(text)
    percent = inner.match(r"\d.*%$")
    before, after = rf"^([+-]?)\s*{_MONEY}\s*([+-]?[\d.,].*)$", rf"^([+-]?[\d.,].*?)\s*(?:{_MONEY}|%)$"
    money = inner.match(before) | (inner.match(after) & ~percent)
    text = replace(replace(text, before, r"\1\2"), after, r"\1")
    found: list[str] = []
    if money.any():
        amounts = inner.words.filter(need("pyarrow").array(money))
        found = sorted(pc.unique(pc.struct_field(pc.extract_regex(amounts, f"(?P<sign>{_MONEY})"), "sign")).to_pylist())
    examples = [int(np.argmax(mask)) for mask in (percent, money, bracket, late, dash) if mask.any()]
    return Stripped(words.replaced(text), percent, found, list(dict.fromkeys(examples)))


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


def any_number(words: Words) -> np.ndarray:
    """Numbers with either decimal sign, bare or not."""
    stripped = strip(words).words
    masks = [mask for decimal in ".," for mask in number_mask(stripped, decimal)]
    return np.any(masks, axis=0)


def read_numbers(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    """The column as numbers, if all of its cells are; as text with a note where they are not to be compared."""
    some = words.some()
    if not (any_number(some) | some.are_in(MISSING_NUMBERS)).all():
        return None
    missing = words.are_in(MISSING_NUMBERS)
    if missing.all():
        return None
    return _with_either(name, words, missing, decimal)


def _with_either(name: str, words: Words, missing: np.ndarray, decimal: str) -> Typed | None:
    stripped = _strip_if_needed(words, missing)
    for sign in (decimal, _other(decimal)):
        plain, grouped = _masks(stripped.words, missing, sign)
        if sign != decimal and grouped.any():  # 1.234 in a file of decimal commas is not one and a bit
            continue
        if not (plain | grouped | missing).all():
            continue
        why = _not_numbers(stripped, missing)
        if why:
            return Typed(words.text(words.are_in(MISSING)), Reading("text"), [f"column {name!r} {why}"])
        notes = []
        if grouped.any():
            notes.append(f"column {name!r} has thousands separators ({words.first(grouped)!r}), read as numbers")
        if sign != decimal:
            notes.append(f"column {name!r} has the decimal sign {sign!r}, the rest of the file {decimal!r}")
        return _numbers(name, words, stripped, missing, sign, bool(grouped.any()), notes)
    return None


def numbers_like(name: str, words: Words, reading: Reading, here: str | None) -> tuple[Typed | None, int]:
    """The column as numbers of a kind known before; else None and the first word that does not fit.

    `here` is the decimal sign of this file, where it can be told.
    """
    missing = words.are_in(MISSING_NUMBERS)
    stripped = _strip_if_needed(words, missing)
    known = reading.form or here or "."
    first = known if here is None or needs(stripped.words, known).any() else here
    for sign in (first, _other(first)):
        plain, grouped = _masks(stripped.words, missing, sign)
        if not (plain | grouped | missing).all() or (sign not in (first, known) and grouped.any()):
            continue
        unit = _unit(stripped)
        notes = []
        if sign != known and not words.match(_INTEGER)[~missing].all():
            notes.append(f"column {name!r} has the decimal sign {sign!r}, in the table of the model it was {known!r}")
        if unit != reading.unit and ((unit and reading.unit) or "%" in (unit, reading.unit)) and not missing.all():
            was = f"written with {reading.unit}" if reading.unit else "bare numbers"
            now = f"cells such as {words.first(~missing)!r}"
            notes.append(f"column {name!r} has {now}, in the table of the model they were {was}")
        return _numbers(name, words, stripped, missing, sign, bool(grouped.any()), notes), 0
    plain, grouped = _masks(stripped.words, missing, known)
    return None, int(np.argmin(plain | grouped | missing))


def _other(sign: str) -> str:
    return "," if sign == "." else "."


def _strip_if_needed(words: Words, missing: np.ndarray) -> Stripped:
    """As `strip`, quicker where all are plain numbers."""
    pa = need("pyarrow")
    try:
        words.without(missing).cast(pa.float64())
    except pa.ArrowInvalid:
        return strip(words)
    return Stripped(words, np.zeros_like(missing), [], [])


def _masks(words: Words, missing: np.ndarray, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    """The same as `number_mask`, quicker where all are plain numbers."""
    pa = need("pyarrow")
    if decimal == ".":
        try:
            words.without(missing).cast(pa.float64())
        except pa.ArrowInvalid:
            return number_mask(words, decimal)
        return ~missing, np.zeros_like(missing)
    return number_mask(words, decimal)


def _not_numbers(stripped: Stripped, missing: np.ndarray) -> str:
    """Why cells that look like numbers are none that can be compared; empty where they can."""
    if stripped.words.match(r"^0\d+$").any():
        return "has leading zeros, so it is read as text"
    if len(stripped.money) > 1:
        return f"mixes {stripped.money[0]} and {stripped.money[1]}, so it is read as text"
    if stripped.percent.any() and not (stripped.percent | missing | stripped.words.match("^0*[.,]?0*$")).all():
        return "has a percent sign in some cells and none in others, so it is read as text"
    return ""


def _unit(stripped: Stripped) -> str:
    return "%" if stripped.percent.any() else stripped.money[0] if stripped.money else ""


def _numbers(
    name: str, words: Words, stripped: Stripped, missing: np.ndarray, sign: str, grouped: bool, notes: list[str]
) -> Typed:
    values = _parse(stripped.words, missing, sign, grouped)
    if stripped.percent.any():
        values = np.where(stripped.percent, values / 100, values)
    for example in stripped.examples:
        if not missing[example]:
            notes.append(f"column {name!r} has cells such as {words.word(example)!r}, read as {values[example]:.10g}")
    return Typed(values[words.codes], Reading("number", sign, _unit(stripped)), notes)


def _parse(words: Words, missing: np.ndarray, decimal: str, grouped: bool) -> np.ndarray:
    """A number for every word: integers if all are and none is missing or too large, else floats."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    text = words.without(missing)
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
