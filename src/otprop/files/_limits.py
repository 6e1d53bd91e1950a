"""Limits of what a small file may become: unpacked, as a table of empty cells, as a workbook built from its XML."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import IO, NoReturn
from xml.parsers import expat

from otprop.files._errors import TableError, file_error

MIN_LIMIT, MAX_TIMES = 256 << 20, 200  # bytes once decompressed: at least, and for each compressed byte
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384  # of a sheet of Excel's
DENSE_CELLS, TIMES_FILLED = 10_000_000, 20  # cells of a table that may be empty, at least, and for each that is not
MIN_ELEMENTS, ELEMENTS_PER_BYTE = 5_000_000, 10  # of the XML of a workbook, at least, and for each byte of the file
MAX_IN_RANGES = 2_000_000  # cells of ranges that openpyxl makes one by one
MAX_STYLES = 66_000  # Excel has 65 490
MAX_DEPTH = 200
_STYLES = frozenset(("xf", "font", "fill", "border", "numFmt", "dxf", "cellStyle"))
_RANGES = frozenset(("mergeCell", "hyperlink", "comment", "table"))
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_XML = re.compile(rb"\s*<|\xef\xbb\xbf|\xff\xfe|\xfe\xff|\x00<")
_BLOCK = 1 << 20


def size_limit(compressed: int, max_bytes: int | None) -> int:
    """How many bytes a file may have once it is decompressed."""
    return max(MIN_LIMIT, MAX_TIMES * compressed) if max_bytes is None else max_bytes


def check_zip_size(data: bytes, origin: str, max_bytes: int | None) -> None:
    """Refuse a ZIP archive (NPZ, Excel) whose members are larger than the limit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_size(sum(member.file_size for member in archive.infolist()), len(data), origin, max_bytes)


def check_size(size: int, compressed: int, origin: str, max_bytes: int | None) -> None:
    """Refuse a file that would be larger than the limit once it is decompressed."""
    limit = size_limit(compressed, max_bytes)
    if size > limit:
        raise too_large(origin, limit)


def too_large(origin: str, limit: int) -> TableError:
    """The error of a file that is larger than the limit once it is decompressed."""
    advice = "if you trust it, unpack it first or allow more with {}"
    return file_error(origin, f"has more than {limit:,} bytes once it is unpacked", advice, max_bytes=None)


def check_dense(n_rows: int, n_columns: int, n_filled: int, origin: str) -> None:
    """Refuse a table with nearly only empty cells: they would need far more memory than the file."""
    if n_rows * n_columns > max(DENSE_CELLS, TIMES_FILLED * n_filled):
        problem = f"has {n_rows:,} rows and {n_columns:,} columns, but only {n_filled:,} values"
        raise file_error(origin, problem, "remove the columns that few rows have")


def check_workbook(data: bytes, origin: str) -> None:
    """Refuse a workbook that is larger than a sheet can be, or whose parts would become far more than they are."""
    scan = _Scan(origin, max(MIN_ELEMENTS, ELEMENTS_PER_BYTE * len(data)))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                with archive.open(member) as part:
                    scan.read(part)
    except TableError:
        raise
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
        return  # openpyxl says what is wrong with it


class _Scan:
    """Counts the elements of all parts of a workbook; raises TableError where there are too many of a kind."""

    def __init__(self, origin: str, most_elements: int) -> None:
        self.origin, self.left = origin, most_elements
        self.in_ranges = 0

    def read(self, part: IO[bytes]) -> None:
        """Count one part; a part that is not XML, or damaged, is left to openpyxl."""
        block = part.read(_BLOCK)
        if not _XML.match(block):
            return
        self.depth, self.row_depth, self.row, self.column = 0, -1, 0, 0
        self.n_rows = self.n_cells = self.width = 0
        self.styles = dict.fromkeys(_STYLES, 0)
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.EntityDeclHandler = self._entity
        try:
            while block:
                parser.Parse(block, False)
                block = part.read(_BLOCK)
        except expat.ExpatError:
            pass
        check_dense(self.n_rows, self.width, self.n_cells, self.origin)

    def _start(self, title: str, attributes: dict[str, str]) -> None:
        self.left -= 1
        self.depth += 1
        if self.left < 0 or self.depth > MAX_DEPTH:
            self._refuse("too many parts for its size" if self.left < 0 else "parts within parts without an end")
        if self.depth == self.row_depth + 1:
            self._cell(attributes.get("r"))
            return
        name = title.rpartition(" ")[2]
        if name == "row":
            self._begin_row(attributes.get("r"))
        elif name in _STYLES:
            self.styles[name] += 1
            if self.styles[name] > MAX_STYLES:
                self._refuse(f"more than {MAX_STYLES:,} styles")
        elif name in _RANGES and ":" in attributes.get("ref", ""):
            self._range(attributes["ref"])

    def _end(self, title: str) -> None:
        if self.depth == self.row_depth:
            self.row_depth = -1
        self.depth -= 1

    def _begin_row(self, number: str | None) -> None:
        self.row_depth, self.column, self.n_rows = self.depth, 0, self.n_rows + 1
        self.row += 1
        if number is not None:
            self.row = int(number) if re.fullmatch(r"[0-9]{1,7}", number) else MAX_ROWS + 1
        if self.row > MAX_ROWS or self.n_rows > MAX_ROWS:
            self._refuse(f"more than {MAX_ROWS:,} rows")

    def _cell(self, reference: str | None) -> None:
        self.n_cells += 1
        self.column += 1
        if reference is not None:
            row, self.column = self._place(reference)
            if row > MAX_ROWS:
                self._refuse(f"more than {MAX_ROWS:,} rows")
        self.width = max(self.width, self.column)
        if self.width > MAX_COLUMNS:
            self._refuse(f"more than {MAX_COLUMNS:,} columns")

    def _range(self, reference: str) -> None:
        first, _, last = reference.partition(":")
        (top, left), (bottom, right) = self._place(first), self._place(last)
        self.in_ranges += (abs(bottom - top) + 1) * (abs(right - left) + 1)
        if self.in_ranges > MAX_IN_RANGES:
            self._refuse(f"ranges of more than {MAX_IN_RANGES:,} cells")

    def _place(self, reference: str) -> tuple[int, int]:
        """Row and column of a reference such as B7, both from 1."""
        found = _CELL.fullmatch(reference)
        if found is None:
            self._refuse(f"a cell at {reference[:20]!r}")
        column = 0
        for letter in found[1].upper():
            column = 26 * column + ord(letter) - 64
        return int(found[2]), column

    def _entity(self, *parts: object) -> None:
        self._refuse("definitions of XML entities")

    def _refuse(self, what: str) -> NoReturn:
        raise file_error(self.origin, f"has {what}, as no workbook of Excel's has", "save it as .csv, and read that")
