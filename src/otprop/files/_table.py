"""What all tables can do, whatever file they come from."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from otprop.files._error import TableError, listed, need
from otprop.files._packing import packed
from otprop.files._source import Source, check_ending, check_format, codec_of, kind_of, same_ending
from otprop.files._values import reading_of, typed_like
from otprop.files._words import Reading
from otprop.files.atomic import write_atomic

Column = Sequence[Any] | np.ndarray


class Table(ABC):
    """A table from a file, which can be written back as it was, with columns added.

    Parameters
    ----------
    source : Source
        The bytes of the file and where they are from.
    kind : str
        The kind of table that they are.

    Attributes
    ----------
    names : list of str
        The names of the columns, in order.
    n_rows : int
        The number of rows.
    origin : str
        The path as it was given, or "standard input".
    kind : str
        "csv", "tsv", "parquet", "feather" or "npz".
    digest : str
        The SHA-256 of the unpacked file, in hexadecimal digits.
    notes : list of str
        What was found out about the file and what is odd about it. `frame` adds what it finds in the columns.
    """

    names: list[str]
    n_rows: int
    origin: str
    kind: str
    digest: str
    notes: list[str]
    path: Path | None
    sign: str | None = None  # the decimal sign, where the file is text and it can be told

    def __init__(self, source: Source, kind: str) -> None:
        self.origin, self.path, self.kind, self.notes = source.origin, source.path, kind, []
        self.digest = sha256(source.data).hexdigest()
        self._readings: dict[str, Reading | None] = {}  # how columns were read

    def frame(self, names: Sequence[str] | None = None, like: Mapping[str, Reading] | None = None) -> Any:
        """The columns for features, as a pandas frame: numbers, truth values, dates, text; what is missing is NA.

        Parameters
        ----------
        names : sequence of str or None
            The columns to read; None for all.
        like : mapping of str to Reading or None
            How the columns of an earlier table were read, as its `readings` said. Text of these columns is read in the
            same way, with a note where it is written in another, and a TableError where a cell does not fit.
        """
        pandas = need("pandas")
        like = like or {}
        signs = [reading.form for reading in like.values() if reading.kind == "number" and reading.form]
        usual = max(signs, key=signs.count, default=None)
        columns = {}
        for name in self.names if names is None else names:
            position = self._position(name)
            text = self._as_text(position) if name in like else None
            if text is None:
                columns[name] = pandas.Series(self._typed(position))
                self._readings.setdefault(name, reading_of(columns[name]))
            else:
                here = self.sign if like[name].form in ("", usual) else None
                column = typed_like(name, text, like[name], here, self.origin)
                self._note(*column.notes)
                columns[name] = pandas.Series(column.values)
        return pandas.DataFrame(columns, index=pandas.RangeIndex(self.n_rows))

    def readings(self, names: Sequence[str] | None = None) -> dict[str, Reading]:
        """How the columns are read: whether as numbers, dates or text, and with which signs and forms.

        Parameters
        ----------
        names : sequence of str or None
            The columns; None for all. Columns of arrays have no reading.
        """
        wanted = self.names if names is None else names
        new = [name for name in wanted if name not in self._readings]
        if new:
            self.frame(new)
        return {name: reading for name in wanted if (reading := self._readings[name]) is not None}

    def cells(self, name: str) -> np.ndarray:
        """One column as it is in the file, as objects, None where it is empty.

        Parameters
        ----------
        name : str
            The column. Cells of text files are text, without the quotes around them; others are values of Python.
        """
        return self._cells(self._position(name))

    def write(
        self,
        out: str | Path | BinaryIO,
        added: Mapping[str, Column],
        fill: tuple[str, Column] | None = None,
        *,
        format: str | None = None,
        force: bool = False,
        excel_safe: bool = False,
        written: list[Path] | None = None,
    ) -> None:
        """Write the table with columns added, all else as it was.

        In the format of the input, untouched cells come back byte for byte (CSV, TSV) or as the same values and types
        (Parquet, Feather, NPZ). In another format, text becomes a number, a truth value, a date or a time only in
        columns where every cell would be written the same way again (`007` and `1.50` stay text), an empty cell becomes
        a missing value; a value becomes text as it would be printed, lists and structures as JSON, in UTF-8.

        Parameters
        ----------
        out : str, path or binary stream
            Where to write; "-" is standard output. A file is written beside its place and moved there in one step. A
            name that ends in `.gz` or `.zst` is packed.
        added : mapping of str to columns
            New columns, in order, each of `n_rows` values: text, numbers, truth values, None where empty.
        fill : (str, column) or None
            A column of the file, and values to write into it; cells where the value is None stay as they are.
        format : str or None
            "csv", "tsv", "parquet", "feather" or "npz"; None for what the name of `out` says, else as the input.
        force : bool
            Whether a file that is there may be replaced. The input never is.
        excel_safe : bool
            In CSV and TSV, put an apostrophe before every text cell, new or not, that begins with `=`, `+`, `-`, `@`,
            a tab or a line break and is no number, so that spreadsheets do not take it for a formula.
        written : list of path or None
            The path of the output is appended to it as soon as the file is in place.
        """
        if str(out) == "-":
            out = sys.stdout.buffer
        path = Path(out) if isinstance(out, (str, Path)) else None
        if path is not None and format is None:
            check_ending(path, self.path)
            if kind_of(path) is None and not same_ending(path, self.path):
                self._note(f"{path} is written as {self.kind}, as the input is: its name does not say what it is")
        kind = check_format(format) or (kind_of(path) if path else None) or self.kind
        codec = codec_of(path) if path else None
        columns = self._check_added(added)
        if fill is not None:
            self._position(fill[0])
            fill = (fill[0], self._check_length(fill[0], fill[1]))
        job = self._writer(kind, columns, fill, excel_safe and kind in ("csv", "tsv"))

        def write(handle: BinaryIO) -> None:
            with packed(handle, codec) as stream:
                job(stream)

        if path is None:
            write(cast(BinaryIO, out))
            cast(BinaryIO, out).flush()
        else:
            inputs = [] if self.path is None else [self.path]
            write_atomic(path, write, force, inputs, mode_like=self.path, written=written)

    @abstractmethod
    def _typed(self, position: int) -> Any:
        """A column as pandas takes it."""

    @abstractmethod
    def _as_text(self, position: int) -> Any:
        """A column of text as an Arrow array without nulls; None if the file has values of another type."""

    @abstractmethod
    def _cells(self, position: int) -> np.ndarray: ...

    @abstractmethod
    def _arrow(self) -> Any:
        """The whole table for another format, as an Arrow table."""

    def _arrow_text(self) -> Any:
        """The whole table for another kind of text: of a text file, its cells as they are."""
        return self._arrow()

    @abstractmethod
    def _writer(self, kind: str, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Any:
        """A function that writes to a stream; what can be checked has been checked when it is returned."""

    def _position(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise TableError(f"{self.origin} has no column {name!r}; its columns: {listed(self.names)}.") from None

    def _note(self, *notes: str) -> None:
        self.notes.extend(note for note in notes if note not in self.notes)

    def _check_added(self, added: Mapping[str, Column]) -> dict[str, Any]:
        there = [name for name in added if name in self.names]
        if there:
            raise TableError(
                f"{self.origin} already has a column {listed(there)}, which would be added; "
                "rename or remove it in the file, or give the added columns another start with --prefix."
            )
        return {name: to_arrow(self._check_length(name, column)) for name, column in added.items()}

    def _check_length(self, name: str, column: Column) -> Column:
        if len(column) != self.n_rows:
            raise ValueError(f"column {name!r} has {len(column)} values, the table has {self.n_rows} rows.")
        return column


def check_names(names: Sequence[str], origin: str) -> None:
    """Refuse names that occur twice."""
    seen: set[str] = set()
    twice = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        raise TableError(f"{origin} has more than one column named {listed(dict.fromkeys(twice))}; rename them.")


def to_arrow(column: Column) -> Any:
    """A new column as an Arrow array; None and NaN are missing."""
    pa = need("pyarrow")
    if isinstance(column, np.ndarray) and column.dtype.kind in "US":
        column = column.astype(object)
    array = pa.array(column, from_pandas=True)
    if pa.types.is_null(array.type) or pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    return array
