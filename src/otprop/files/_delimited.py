"""Tables in delimited text (CSV, TSV)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from otprop._optional import pa, pc
from otprop._validation import ParameterError
from otprop.files._arrow import (
    FORMULA,
    Column,
    as_text,
    exact_column,
    formulas,
    guard,
    pieces,
    splice,
    to_arrow,
    to_cells,
)
from otprop.files._encoding import Encoding, to_utf8
from otprop.files._errors import NoRowsError, TableError, file_error
from otprop.files._layout import Dialect, Layout, find_dialect, lay_out, refuse_comments, skip_blanks
from otprop.files._numbers import find_decimal
from otprop.files._table import InputFile, Table
from otprop.files._writers import Writer

_SHOWN = {"\t": "tab", " ": "blank"}
_SAMPLE_ROWS = 2000  # for the decimal sign


class DelimitedTable(Table):
    """A table that keeps the text of its file and the positions of its cells.

    The first line that is not blank has the names. Blank lines are not rows, even if there is only one column.
    """

    def __init__(
        self,
        file: InputFile,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        quote: str | None = None,
    ) -> None:
        if decimal not in (None, ".", ","):
            raise ParameterError("decimal", f"must be '.' or ','; got {decimal!r}.")
        super().__init__(file, file.expected or "csv")
        body, self.encoding, note = to_utf8(file.data, encoding, file.origin)
        self._note(note or "")
        if not body or body.isspace():
            raise file_error(file.origin, "is empty: it has no column names and no rows")
        preamble = re.match(rb"sep=([^\r\n])\r?\n", body)  # a line in which Excel names the delimiter
        start = preamble.end() if preamble else 0
        if preamble and delimiter is None:
            delimiter = preamble.group(1).decode("latin-1")
        prefer = "\t" if file.expected == "tsv" else None
        refuse_comments(body, start, delimiter, quote, prefer, file.origin)
        self.dialect: Dialect = find_dialect(body, delimiter, quote, start, prefer)
        self.layout: Layout = lay_out(body, self.dialect, file.origin, start)
        self.kind = file.expected or ("tsv" if self.dialect.delimiter == "\t" else "csv")
        self.n_rows = len(self.layout.starts) - 1
        self._find_names()
        if self.n_rows == 0:
            raise NoRowsError(f"{file.origin} has column names but no rows", file=file.origin)
        if delimiter is None:
            self._refuse_other_delimiter()
        rows = slice(1, 1 + _SAMPLE_ROWS)
        self.sign = decimal or find_decimal([self._as_text(j, rows) for j in range(self.layout.n_columns)])
        self.decimal = self.sign or "."
        self._describe()

    def _find_names(self) -> None:
        given = [self._as_text(j, slice(0, 1))[0].as_py().strip() for j in range(self.layout.n_columns)]
        self._set_names(given)
        numbers = [name for name in given if re.fullmatch(r"[+-]?\d+[.,]\d+([eE][+-]?\d+)?", name)]
        if numbers:
            self._note(f"the first line holds numbers ({', '.join(numbers[:3])}): is it a line of column names?")

    def _refuse_other_delimiter(self) -> None:
        """Refuse a single column whose cells all contain the same unusual separator."""
        match = re.fullmatch(r"[\w .]+?(?:([\^~!:&*#@+=])[\w .]+)(?:\1[\w .]+)*", self.names[0])
        if len(self.names) == 1 and match:
            sign = match.group(1)
            cells = self._as_text(0, slice(0, 1 + _SAMPLE_ROWS)).to_pylist()
            if len({cell.count(sign) for cell in cells}) == 1:
                raise TableError(
                    f"{self.origin} has one column only, {self.names[0]!r}",
                    f"if {sign!r} is between its cells, pass {{}}; if it is one column, pass {{}}",
                    file=self.origin,
                    arguments=[("delimiter", sign), ("delimiter", ",")],
                )

    def _describe(self) -> None:
        if self.dialect.delimiter != ("\t" if self.kind == "tsv" else ",") and len(self.names) > 1:
            self._note(f"delimiter {_SHOWN.get(self.dialect.delimiter, repr(self.dialect.delimiter))}")
        if self.dialect.quote == "'":
            self._note("cells are quoted with '")
        if self.decimal == ",":
            self._note("decimal sign ','")
        if self.layout.n_blank:
            self._note(f"{self.layout.n_blank} blank lines, kept as they are")

    def _bounds(self, position: int, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the text of the cells begins and ends, without quotes, and which cells are quoted."""
        starts = self.layout.starts[rows, position].astype(np.int64)
        stops = self.layout.stops[rows, position].astype(np.int64)
        data = np.frombuffer(self.layout.body, dtype=np.uint8)
        if self.dialect.blanks:
            starts = skip_blanks(self.layout.body, starts, stops)
        quoted = np.zeros(len(starts), dtype=bool)
        if self.dialect.quote:
            quoted = (stops - starts >= 2) & (data[np.minimum(starts, len(data) - 1)] == ord(self.dialect.quote))
        if not self.layout.odd:
            starts, stops = starts + quoted, stops - quoted
        return starts, stops, quoted

    def _as_text(self, position: int, rows: slice = slice(1, None)) -> Any:
        """The text of a column, without quotes, as an Arrow array."""
        starts, stops, quoted = self._bounds(position, rows)
        text = pieces(self.layout.body, starts, stops)
        if not quoted.any():
            return text
        quote = self.dialect.quote
        if self.layout.odd:
            cell = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}(.*)", re.DOTALL)
            replaced = [_unquote(cell, value, quote) for value in text.filter(pa.array(quoted)).to_pylist()]
            return pc.replace_with_mask(text, pa.array(quoted), pa.array(replaced, pa.large_string()))
        if pc.any(pc.match_substring(text, quote)).as_py():
            return pc.if_else(pa.array(quoted), pc.replace_substring(text, quote * 2, quote), text)
        return text

    def _typed(self, position: int) -> Any:
        return self._parsed(position, self._as_text(position))

    def _cells(self, position: int) -> np.ndarray:
        cells: np.ndarray = self._as_text(position).to_numpy(zero_copy_only=False)
        cells[cells == ""] = None
        return cells

    def _arrow(self) -> Any:
        columns = [exact_column(self._as_text(j)) for j in range(len(self.names))]
        return pa.table(columns, names=self.names)

    def _arrow_text(self) -> Any:
        return pa.table([self._as_text(j) for j in range(len(self.names))], names=self.names)

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        starts, stops, instead = self._edits(added, fill, excel_safe)

        def write(stream: BinaryIO) -> None:
            stream.write(self.encoding.bom)
            for block in splice(self.layout.body, starts, stops, instead):
                stream.write(self.encoding.encode(block))

        return write

    def _edits(
        self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """All replacements in the order of the file: start, stop and new text."""
        filled = np.zeros(self.n_rows, dtype=bool)
        parts: list[tuple[np.ndarray, np.ndarray, Any]] = []
        if fill is not None:
            position = self.names.index(fill[0])
            values = to_arrow(fill[1])
            filled = np.array(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
            cells = self._new_cells(values.filter(pa.array(filled)), fill[0], excel_safe)
            where = np.flatnonzero(filled) + 1
            bounds = self.layout.starts[where, position], self.layout.stops[where, position]
            parts.append((*bounds, cells))
        if excel_safe:
            parts.extend(self._guards(fill[0] if fill else None, filled))
        if added:
            ends = self.layout.stops[:, -1]
            parts.append((ends, ends, self._suffixes(added, excel_safe)))
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), pa.array([], pa.large_string())
        starts = np.concatenate([part[0] for part in parts]).astype(np.int64)
        stops = np.concatenate([part[1] for part in parts]).astype(np.int64)
        order = np.argsort(starts, kind="stable")
        instead = pa.concat_arrays([part[2] for part in parts]).take(pa.array(order))
        return starts[order], stops[order], instead

    def _new_cells(self, array: Any, name: str, excel_safe: bool) -> Any:
        """A new column as cells of this file; refuse text that its encoding lacks."""
        text = as_text(array, name, self.decimal)
        is_text = pa.types.is_large_string(array.type)
        cells = to_cells(guard(text, self.decimal) if excel_safe and is_text else text, self.dialect, name)
        _check_encodable(cells, self.encoding, name, self.origin)
        return cells

    def _suffixes(self, added: dict[str, Any], excel_safe: bool) -> Any:
        """The text to append to each line, beginning with the header."""
        between = pa.scalar(self.dialect.delimiter + (" " if self.dialect.blanks else ""), pa.large_string())
        columns = [pa.array([""] * (self.n_rows + 1), pa.large_string())]  # so that a delimiter comes first
        for name, array in added.items():
            header = self._new_cells(pa.array([name], pa.large_string()), name, excel_safe)
            columns.append(pa.concat_arrays([header, self._new_cells(array, name, excel_safe)]))
        return pc.binary_join_element_wise(*columns, between)

    def _guards(self, filled_name: str | None, filled: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Replacements of untouched cells that could be taken for formulas, with an apostrophe before their text."""
        data = np.frombuffer(self.layout.body, dtype=np.uint8)
        risky = np.isin(np.arange(256), np.frombuffer(FORMULA.encode(), dtype=np.uint8))
        for position, name in enumerate(self.names):
            starts, stops, quoted = self._bounds(position, slice(None))
            begins = starts + quoted if self.layout.odd else starts
            mask = (begins < stops) & risky[data[np.minimum(begins, len(data) - 1)]]
            if name == filled_name:
                mask[1:] &= ~filled
            rows = np.flatnonzero(mask)
            if len(rows):
                text = self._as_text(position, slice(None)).take(pa.array(rows))
                rows, text = rows[(unsafe := formulas(text, self.decimal))], text.filter(pa.array(unsafe))
                cells = to_cells(guard(text, self.decimal), self.dialect, name)
                yield self.layout.starts[rows, position], self.layout.stops[rows, position], cells


def _unquote(cell: re.Pattern[str], value: str, quote: str) -> str:
    match = cell.fullmatch(value)
    return match.group(1).replace(quote * 2, quote) + match.group(2) if match else value


def _check_encodable(cells: Any, encoding: Encoding, name: str, origin: str) -> None:
    if encoding.name.startswith("utf"):
        return
    for cell in cells.unique().to_pylist():
        try:
            cell.encode(encoding.name)
        except UnicodeEncodeError:
            problem = f"column {name!r}: {cell!r} cannot be written in {encoding.name}, the encoding of {origin}"
            advice = "convert the file to UTF-8 first, or write to .parquet"
            raise TableError(problem, advice, file=origin, column=name) from None
