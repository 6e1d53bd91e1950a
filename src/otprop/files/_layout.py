"""Delimited text: its delimiter and quote, and the positions of its records and cells."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from otprop._validation import ParameterError
from otprop.files._encoding import line_of
from otprop.files._errors import file_error

_BLOCK = 1 << 24  # bytes
_DELIMITER, _LF, _CR, _QUOTE = 1, 2, 4, 8
_DELIMITERS = (",", ";", "\t", "|", " ")  # a blank only if no other fits
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
_SAMPLE = 1 << 18  # bytes


@dataclass(frozen=True)
class Dialect:
    """The delimiter and the quote of a file."""

    delimiter: str
    quote: str  # empty: no quoting
    blanks: bool = False  # every delimiter is followed by a blank, which belongs to no cell


@dataclass(frozen=True)
class Layout:
    """The cells of a text: cell (i, j) is `body[starts[i, j]:stops[i, j]]`, quotes included; row 0 has the names."""

    body: bytes
    starts: np.ndarray
    stops: np.ndarray
    odd: bool  # quotes inside of cells: unquoting needs a regular expression
    n_blank: int  # blank lines, which are not rows

    @property
    def n_columns(self) -> int:
        return int(self.starts.shape[1])


@dataclass(frozen=True)
class Cells:
    """The cells of all records in sequence."""

    starts: np.ndarray
    stops: np.ndarray
    last: np.ndarray  # index of the last cell of each record
    odd: bool


class UnclosedQuoteError(ValueError):
    """A quote is opened and never closed."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def lay_out(body: bytes, dialect: Dialect, origin: str, start: int = 0) -> Layout:
    """Find all cells from `start` on; refuse rows with another number of cells than the header."""
    try:
        cells = find_cells(body, dialect, start)
    except UnclosedQuoteError as error:
        problem = f": the quote {dialect.quote} opened in line {line_of(body, error.position)} is never closed"
        advice = "close it, or pass {} if quotes mean nothing in this file"
        raise file_error(origin, problem, advice, quote="") from None
    return _table(body, cells, origin)


def find_cells(body: bytes, dialect: Dialect, start: int = 0) -> Cells:
    """The cells of all records; a line break or the end of the text ends a record."""
    positions, kinds, odd = _separators(body, dialect, start)
    if odd:
        positions, kinds = _separators_one_by_one(body, dialect, start)
    data = np.frombuffer(body, dtype=np.uint8)
    size = len(body)
    following = data[np.minimum(positions + 1, size - 1)] if size else np.zeros(0, dtype=np.uint8)
    pair = (kinds == _CR) & (following == ord("\n")) & (positions + 1 < size)
    if pair.any():  # CR LF is one line end
        keep = np.ones(len(positions), dtype=bool)
        keep[np.flatnonzero(pair) + 1] = False
        positions, kinds, pair = positions[keep], kinds[keep], pair[keep]
    after = positions + 1 + pair
    end = int(after[-1]) if len(after) else start
    if end < size or (len(kinds) and kinds[-1] == _DELIMITER):  # no line break at the end
        positions = np.append(positions, positions.dtype.type(size))
        kinds = np.append(kinds, np.uint8(_LF))
        after = np.append(after, after.dtype.type(size))
    starts = np.empty_like(positions)
    starts[:1] = start
    starts[1:] = after[:-1]
    return Cells(starts, positions, np.flatnonzero(kinds != _DELIMITER), odd)


def _separators(body: bytes, dialect: Dialect, start: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Positions and kinds of the separators outside quotes, by the parity of the quotes before them."""
    table = np.zeros(256, dtype=np.uint8)
    table[ord(dialect.delimiter)] = _DELIMITER
    table[ord("\n")], table[ord("\r")] = _LF, _CR
    if dialect.quote:
        table[ord(dialect.quote)] = _QUOTE
    data = np.frombuffer(body, dtype=np.uint8)
    dtype = np.int32 if len(body) < 2**31 - 2 else np.int64
    found, found_kinds, inside, opened = [], [], 0, start
    for at in range(start, len(body), _BLOCK):
        kinds = table[data[at : at + _BLOCK]]
        where = np.flatnonzero(kinds)
        kinds = kinds[where]
        where = (where + at).astype(dtype)
        quote = kinds == _QUOTE
        if quote.any() or inside:
            depth = (np.cumsum(quote) + inside) & 1
            if _misplaced(data, where[quote], depth[quote], table, dialect, start):
                return np.zeros(0, dtype=dtype), np.zeros(0, dtype=np.uint8), True
            first = where[quote & (depth == 1)]
            first = first[(first == start) | (data[np.maximum(first - 1, 0)] != ord(dialect.quote))]
            opened = int(first[-1]) if len(first) else opened
            keep = ~quote & (depth == 0)
            inside = int(depth[-1]) if len(depth) else inside
            where, kinds = where[keep], kinds[keep]
        found.append(where)
        found_kinds.append(kinds)
    if inside:
        raise UnclosedQuoteError(opened)
    if not found:
        return np.zeros(0, dtype=dtype), np.zeros(0, dtype=np.uint8), False
    return np.concatenate(found), np.concatenate(found_kinds), False


def _misplaced(
    data: np.ndarray, quotes: np.ndarray, depth: np.ndarray, table: np.ndarray, dialect: Dialect, start: int
) -> bool:
    """Whether a quote opens in the middle of a cell or closes before its end."""
    opening = quotes[depth == 1]
    before = table[data[np.maximum(opening - 1, 0)]] != 0
    before |= opening == start
    if dialect.blanks:
        blank = data[np.maximum(opening - 1, 0)] == ord(" ")
        before |= blank & (table[data[np.maximum(opening - 2, 0)]] == _DELIMITER)
    closing = quotes[depth == 0]
    after = table[data[np.minimum(closing + 1, len(data) - 1)]] != 0
    after |= closing + 1 == len(data)
    return not (before.all() and after.all())


def _separators_one_by_one(body: bytes, dialect: Dialect, start: int) -> tuple[np.ndarray, np.ndarray]:
    """`_separators` for text with quotes inside of cells: only a quote at the beginning of a cell opens."""
    delimiter, quote = re.escape(dialect.delimiter).encode(), re.escape(dialect.quote).encode()
    opening = (b" *+" if dialect.blanks else b"") + quote
    quoted = opening + b"(?:[^" + quote + b"]++|" + quote + quote + b")*+" + quote
    cell = re.compile(b"(" + quoted + b")?[^" + delimiter + b"\\r\\n]*+([" + delimiter + b"\\r\\n]|\\Z)")
    opens = re.compile(opening)
    codes = {dialect.delimiter.encode(): _DELIMITER, b"\n": _LF, b"\r": _CR}
    where, kinds = [], []
    for match in cell.finditer(body, start):
        if match.start() == len(body):
            break
        if match.start(1) < 0 and opens.match(body, match.start()):
            raise UnclosedQuoteError(match.start())
        if match.group(2):
            where.append(match.start(2))
            kinds.append(codes[match.group(2)])
    dtype = np.int32 if len(body) < 2**31 - 2 else np.int64
    return np.array(where, dtype=dtype), np.array(kinds, dtype=np.uint8)


def skip_blanks(body: bytes, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Where the text of cells begins after blanks."""
    starts, data = starts.copy(), np.frombuffer(body, dtype=np.uint8)
    while (more := (starts < stops) & (data[np.minimum(starts, len(data) - 1)] == ord(" "))).any():
        starts[more] += 1
    return starts


def _table(body: bytes, cells: Cells, origin: str) -> Layout:
    """Drop the blank lines and stack the records."""
    last = cells.last.astype(np.int64)
    first = np.append(np.int64(0), last[:-1] + 1)
    widths = last - first + 1
    blank = (widths == 1) & (skip_blanks(body, cells.starts[first], cells.stops[first]) >= cells.stops[first])
    n_columns = int(widths[~blank][0])
    wrong = np.flatnonzero(~blank & (widths != n_columns))
    if len(wrong):
        at = int(wrong[0])
        row, line = np.count_nonzero(~blank[:at]), line_of(body, int(cells.starts[first[at]]))
        cells_found = "1 cell" if widths[at] == 1 else f"{widths[at]} cells"
        many = "too many" if widths[at] > n_columns else "too few"
        more = "1 more row has" if len(wrong) == 2 else f"{len(wrong) - 1} more rows have"
        others = f" ({more} too many or too few)" if len(wrong) > 1 else ""
        problem = (
            f": row {row} (line {line}) has {cells_found}, {many} for the {n_columns} columns of the header{others}"
        )
        raise file_error(
            origin, problem, "fix it, or pass {} or {} if the file uses others", delimiter=None, quote=None
        )
    starts, stops = cells.starts, cells.stops
    if blank.any():
        keep = np.repeat(~blank, widths)
        starts, stops = starts[keep], stops[keep]
    shape = (-1, n_columns)
    return Layout(body, starts.reshape(shape), stops.reshape(shape), cells.odd, int(blank.sum()))


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
            why = f"must be one ASCII character, tab or space, and not the quote; got {delimiter!r}."
            raise ParameterError("delimiter", why)
    blanks = delimiter != " " and _blanks_follow(sample, delimiter)
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
    raise file_error(origin, f"has {lines} with # above its column names", "remove the comments")


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
    cells = _sample_cells(sample, dialect)
    if cells is None:
        return np.zeros(0, dtype=np.int64)
    first = np.append(0, cells.last[:-1] + 1)
    widths = cells.last - first + 1
    empty = (widths == 1) & (cells.starts[first] == cells.stops[first])
    return widths[~empty]


def _sample_cells(sample: bytes, dialect: Dialect) -> Cells | None:
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


def _blanks_follow(sample: bytes, delimiter: str) -> bool:
    """Whether a blank follows every delimiter, as in `a, "b"`."""
    lines = [line for line in re.split(rb"[\r\n]+", sample)[:50] if line]
    blank, every = (delimiter + " ").encode(), delimiter.encode()
    count = sum(line.count(every) for line in lines)
    return count > 0 and count == sum(line.count(blank) for line in lines)
