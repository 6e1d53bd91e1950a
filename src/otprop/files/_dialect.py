"""Detection of the delimiter and the quote of a text file."""

from __future__ import annotations

import re

import numpy as np

from otprop._validation import ParameterError
from otprop.files._errors import TableError
from otprop.files._layout import Cells, Dialect, UnclosedQuoteError, find_cells

_DELIMITERS = (",", ";", "\t", "|", " ")  # a blank only if no other fits
_SAMPLE = 1 << 18  # bytes
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


def find_dialect(body: bytes, delimiter: str | None, quote: str | None, start: int, prefer: str | None) -> Dialect:
    """The dialect under which the first lines have the same number of cells; arguments that are not None are kept."""
    if quote is not None and (len(quote) > 1 or quote in ("\n", "\r") or not quote.isascii()):
        raise ParameterError("quote", f"must be one ASCII character, or empty for none; got {quote!r}.")
    sample = _sample(body, start)
    quote = _find_quote(sample) if quote is None else quote
    if delimiter is None:
        delimiter = _find_delimiter(sample, quote, prefer)
    else:
        delimiter = _NAMED.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in ("\n", "\r", quote) or not delimiter.isascii():
            raise ParameterError(
                "delimiter", f"must be one ASCII character, tab or space, and not the quote; got {delimiter!r}."
            )
    blanks = delimiter != " " and _blanks_follow(sample, delimiter, quote)
    return Dialect(delimiter, quote, blanks)


def refuse_comments(
    body: bytes, start: int, delimiter: str | None, quote: str | None, prefer: str | None, origin: str
) -> None:
    """Refuse comments above the names: lines that begin with # and have another number of cells than the rest."""
    above = re.compile(rb"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))+").match(body, start)
    if above is None or b"#" not in above.group() or above.end() >= len(body):
        return
    rest = _sample(body, above.end())
    dialect = find_dialect(body, delimiter, quote, above.end(), prefer)
    widths, wanted = _widths(above.group(), dialect), _widths(rest, dialect)
    if len(wanted) == 0 or len(widths) == 0 or (widths == wanted[0]).all():
        return
    count = len(re.findall(rb"(?m)^[ \t]*#", above.group().replace(b"\r", b"\n")))
    lines = "1 line that begins" if count == 1 else f"{count} lines that begin"
    raise TableError(f"{origin} has {lines} with # above its column names", "remove the comments", file=origin)


def _sample(body: bytes, start: int) -> bytes:
    """Whole lines from the beginning."""
    sample = body[start : start + _SAMPLE]
    if start + _SAMPLE < len(body):
        cut = max(sample.rfind(b"\n"), sample.rfind(b"\r"))
        sample = sample[: cut + 1] if cut > 0 else sample
    return sample


def _find_quote(sample: bytes) -> str:
    """The double quote, unless it never occurs and cells are in single quotes."""
    if b'"' not in sample:
        opening = re.findall(rb"(?:^|[,;\t|\n\r])('[^'\n\r]*'?)(?=[,;\t|\n\r]|$)", sample)
        if opening and all(len(cell) > 1 and cell.endswith(b"'") for cell in opening):
            return "'"
    return '"'


def _find_delimiter(sample: bytes, quote: str, prefer: str | None) -> str:
    best, best_score = prefer or ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        widths = _widths(sample, Dialect(delimiter, quote))
        if len(widths) == 0 or widths[0] < 2:
            continue
        agree = float(np.mean(widths == widths[0]))
        score = (agree + (0.5 if delimiter == prefer else 0.0), int(widths[0]))
        if delimiter == " " and (best_score[0] > 0 or agree < 1):
            continue
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _widths(sample: bytes, dialect: Dialect) -> np.ndarray:
    """The number of cells of each line that is not blank."""
    cells = _cells(sample, dialect)
    if cells is None:
        return np.zeros(0, dtype=np.int64)
    first = np.append(0, cells.last[:-1] + 1)
    widths = cells.last - first + 1
    empty = (widths == 1) & (cells.starts[first] == cells.stops[first])
    return widths[~empty]


def _cells(sample: bytes, dialect: Dialect) -> Cells | None:
    """The cells of the sample; a quote still open at its end is cut off with its record."""
    for _ in range(3):
        try:
            return find_cells(sample, dialect)
        except UnclosedQuoteError as error:
            cut = max(sample.rfind(b"\n", 0, error.position), sample.rfind(b"\r", 0, error.position))
            if cut <= 0:
                return None
            sample = sample[: cut + 1]
    return None


def _blanks_follow(sample: bytes, delimiter: str, quote: str) -> bool:
    """Whether a blank follows every delimiter, as in `a, "b"`."""
    lines = [line for line in re.split(rb"[\r\n]+", sample)[:50] if line]
    blank, every = (delimiter + " ").encode(), delimiter.encode()
    count = sum(line.count(every) for line in lines)
    return count > 0 and count == sum(line.count(blank) for line in lines)
