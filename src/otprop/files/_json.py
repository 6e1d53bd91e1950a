"""Tables in JSON: a list of objects, or one object per line."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

from otprop.files._arrow import Column, as_json
from otprop.files._columnar import ArrowTable
from otprop.files._encoding import to_utf8
from otprop.files._errors import NoRowsError, TableError, file_error, one_line
from otprop.files._limits import check_dense
from otprop.files._table import InputFile
from otprop.files._writers import Writer

_BLANKS = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\r\n]*[^\r\n\t ][^\r\n]*")
_DECODER = json.JSONDecoder()


class JsonTable(ArrowTable):
    """A table that keeps the text of its file: new values are inserted, the rest stays byte for byte.

    The columns are the keys of all objects, in the order of their first occurrence. A key that an object lacks and a
    null are missing values.
    """

    parses_text = True

    def __init__(self, file: InputFile, encoding: str | None = None) -> None:
        super().__init__(file, file.format or "json")
        body, self.encoding, note = to_utf8(file.data, encoding, file.origin)
        self._note(note or "")
        self.text = body.decode("utf-8")
        records = self._read_list() if self.kind == "json" else self._read_lines()
        self.spans = [(start, stop) for _, start, stop in records]  # text[start:stop] is an object
        rows = self._rows([record for record, _, _ in records]) if records else []
        names = list(dict.fromkeys(key for row in rows for key in row))
        check_dense(len(rows), len(names), sum(len(row) for row in rows), self.origin)
        for name in names:
            if any("\ud800" <= letter <= "\udfff" for letter in name):  # half of a surrogate pair, as JSON allows
                raise file_error(self.origin, f"has the key {name!r}, which is not valid Unicode")
        if records and not names:
            raise file_error(self.origin, "is empty: its objects have no keys")
        if not records:
            raise NoRowsError(f"{self.origin} is empty: it has no rows", file=self.origin)
        self._set_values((name, [row.get(name) for row in rows]) for name in names)

    def _rows(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The columns of each object, by name."""
        return records

    def _read_lines(self) -> list[tuple[dict[str, Any], int, int]]:
        records = []
        for line in _LINE.finditer(self.text):
            start = self._skip(line.start())
            record, stop = self._decode(start, line.end())
            if self.text[stop : line.end()].strip(" \t"):
                raise self._damaged(stop, "there is more than one value in the line")
            records.append((record, start, stop))
        return records

    def _read_list(self) -> list[tuple[dict[str, Any], int, int]]:
        records: list[tuple[dict[str, Any], int, int]] = []
        at = self._skip(self.text.index("[") + 1)
        while self.text[at : at + 1] != "]":
            if records:
                if self.text[at : at + 1] != ",":
                    raise self._damaged(at, "a comma or ] is missing")
                at = self._skip(at + 1)
            record, stop = self._decode(at)
            records.append((record, at, stop))
            at = self._skip(stop)
        if self._skip(at + 1) < len(self.text):
            raise self._damaged(at + 1, "there is more after the list")
        return records

    def _decode(self, at: int, end: int | None = None) -> tuple[dict[str, Any], int]:
        """The object that begins at a position, and where it ends; of JSON lines, only the line is looked at."""
        text, start = (self.text, 0) if end is None else (self.text[at:end], at)
        try:
            record, stop = _DECODER.raw_decode(text, at - start)
        except json.JSONDecodeError as error:
            raise self._damaged(start + error.pos, error.msg) from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(at, one_line(error)) from error
        if not isinstance(record, dict):
            found = f"line {self._line(at)} has {text[at - start :][:20]!r} where an object is expected"
            advice = 'write it as a list of objects, [{{"a": 1}}, {{"a": 2}}], or one object per line'
            raise file_error(self.origin, f"is JSON, but not a table: {found}", advice)
        return record, start + stop

    def _skip(self, at: int) -> int:
        return _BLANKS.match(self.text, at).end()  # type: ignore[union-attr]

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _damaged(self, at: int, why: str) -> TableError:
        return file_error(self.origin, f"is not valid JSON in line {self._line(at)} ({why})")

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        columns = {name: array.to_pylist() for name, array in added.items()}
        filled = [None] * self.n_rows if fill is None else self._new_values(fill)
        names = {name: as_json(name) for name in (*columns, *([fill[0]] if fill else []))}

        def write(stream: BinaryIO) -> None:
            stream.write(self.encoding.bom)
            done = 0
            for i, (start, stop) in enumerate(self.spans):
                cells = {name: values[i] for name, values in columns.items()}
                pieces = [self.text[done:start]]
                done = stop
                if fill is not None and filled[i] is not None:
                    span = self._span_of_value(start, fill[0])
                    if span is None:
                        cells = {fill[0]: filled[i], **cells}
                    else:
                        pieces += [self.text[start : span[0]], as_json(filled[i])]
                        start = span[1]
                pieces += self._with_keys(start, stop, i, {names[name]: as_json(cell) for name, cell in cells.items()})
                stream.write(self.encoding.encode("".join(pieces).encode("utf-8")))
            stream.write(self.encoding.encode(self.text[done:].encode("utf-8")))

        return write

    def _with_keys(self, start: int, stop: int, row: int, cells: dict[str, str]) -> list[str]:
        """The text of an object from `start` on with keys added at its end, in the style of the object."""
        begin = self.spans[row][0] + 1
        first = self._skip(begin)
        blanks = self.text[begin:first]
        last = stop - 1
        while self.text[last - 1] in " \t\r\n":
            last -= 1
        compact = '":' in self.text[begin:stop] and '": ' not in self.text[begin:stop]
        between = "," + (blanks if "\n" in blanks else "" if compact else " ")
        pairs = [f"{name}:{'' if compact else ' '}{cell}" for name, cell in cells.items()]
        if not pairs:
            return [self.text[start:stop]]
        lead = "" if self.text[first] == "}" else between
        return [self.text[start:last], lead + between.join(pairs), self.text[last:stop]]

    def _span_of_value(self, start: int, name: str) -> tuple[int, int] | None:
        """Where the value of a key begins and ends in the object at `start`; None if it lacks the key."""
        found, at = None, self._skip(start + 1)
        while self.text[at] != "}":
            key, at = _DECODER.raw_decode(self.text, at)
            begin = self._skip(self._skip(at) + 1)
            _, at = _DECODER.raw_decode(self.text, begin)
            if key == name:
                found = (begin, at)
            at = self._skip(at)
            at = self._skip(at + 1) if self.text[at] == "," else at
        return found
