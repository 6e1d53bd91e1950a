"""What all tables can do, whatever the format of their file."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from otprop._optional import pandas
from otprop.files._arrow import Column, fill_column, to_arrow, with_columns
from otprop.files._distinct import Reading
from otprop.files._errors import TableError, file_error, listed
from otprop.files._formats import check_ending, check_format, format_of_name, refuse_url, same_ending
from otprop.files._parse import parse, parse_like, reading_of
from otprop.files._writers import Writer, arrow_writer, write_output

_LIMITED = ("xlsx", "npz")  # formats that do not hold every value


@dataclass(frozen=True)
class InputFile:
    """What a table is made from."""

    origin: str  # the path as given, "standard input", or what the caller calls it
    path: Path | None
    data: bytes  # decompressed
    format: str | None  # by content; None for text
    expected: str | None  # by the argument `format` or by the name
    max_bytes: int | None = None


class Table(ABC):
    r"""A table from a file, which can be written back as it was, with columns added.

    Parameters
    ----------
    file : InputFile
        The bytes of the file and their origin.
    kind : str
        The format of the table.

    Attributes
    ----------
    names : list of str
        The names of the columns, in order.
    n_rows : int
        The number of rows.
    origin : str
        The path as it was given, or "standard input".
    kind : str
        "csv", "tsv", "parquet", "feather", "npz", "json", "jsonl" or "xlsx".
    digest : str
        The SHA-256 of the decompressed file, in hexadecimal digits.
    notes : list of str
        What was detected in the file and what is unusual about it. `frame` adds notes on the columns.
    unnamed : list of str
        The columns that have no name in the file and were given one.
    unread : dict of str to str
        Arrays of an NPZ file that cannot be read as columns, each with the reason.

    Examples
    --------
    >>> import io
    >>> from otprop.files import read_table
    >>> table = read_table(io.BytesIO(b"weight,kind\n1.50,light\n9.1,\n"))
    >>> table.kind, table.n_rows, table.names
    ('csv', 2, ['weight', 'kind'])
    >>> table.cells("weight").tolist(), table.frame()["weight"].tolist()  # as in the file, and as numbers
    (['1.50', '9.1'], [1.5, 9.1])
    """

    names: list[str]
    n_rows: int
    decimal: str = "."  # the decimal sign of numbers in text
    sign: str | None = None  # the same, None where it is ambiguous
    written_as: str | None = None  # the format of an output whose name does not say; None for that of the file
    folder: Path | None = None  # where relative paths of pictures start; None for the folder of the file
    default_target: str | None = None  # the column with the labels, where the source itself says so
    default_features: Sequence[str] | None = None  # the columns to use unless others are named
    annotators: Mapping[str, Sequence[str]] = MappingProxyType({})  # columns of votes by column of labels
    beside: Mapping[str, np.ndarray] = MappingProxyType({})  # vectors of the rows that are not in the file
    graph: Any = None  # sparse matrix of affinities between the rows, used instead of a graph made of the features
    arrays: Mapping[str, np.ndarray] = MappingProxyType({})  # of an NPZ file, as they are there

    def __init__(self, file: InputFile, kind: str) -> None:
        self.origin, self.path, self.kind = file.origin, file.path, kind
        self.digest = sha256(file.data).hexdigest()
        self.notes: list[str] = []
        self._noted: set[str] = set()
        self.unnamed: list[str] = []
        self.unread: dict[str, str] = {}
        self._readings: dict[str, Reading | None] = {}

    def frame(self, names: Sequence[str] | None = None, like: Mapping[str, Reading] | None = None) -> Any:
        """The columns as a pandas frame of numbers, booleans, dates, text and arrays; what is missing is NA.

        Parameters
        ----------
        names : sequence of str or None
            The columns to read; None for all.
        like : mapping of str to Reading or None
            The `readings` of an earlier table. Text of these columns is parsed in the same way, with a note where its
            notation differs, and a TableError where a cell does not fit.
        """
        like = like or {}
        signs = [reading.form for reading in like.values() if reading.kind == "number" and reading.form]
        usual = max(signs, key=signs.count, default=None)
        columns = {}
        for name in self.names if names is None else names:
            if name in self.beside:
                columns[name] = pandas.Series(list(self.beside[name]))
                continue
            position = self._position(name)
            text = self._as_text(position) if name in like else None
            if text is None:
                columns[name] = pandas.Series(self._typed(position))
                self._readings.setdefault(name, reading_of(columns[name]))
            else:
                here = self.sign if like[name].form in ("", usual) else None
                column = parse_like(name, text, like[name], here, self.origin)
                self._note(*column.notes)
                columns[name] = pandas.Series(column.values)
        return pandas.DataFrame(columns, index=pandas.RangeIndex(self.n_rows))

    def readings(self, names: Sequence[str] | None = None) -> dict[str, Reading]:
        """How the columns are parsed: as numbers, dates or text, and in which notation.

        Parameters
        ----------
        names : sequence of str or None
            The columns; None for all. Columns of arrays have no reading.
        """
        wanted = [name for name in (self.names if names is None else names) if name not in self.beside]
        new = [name for name in wanted if name not in self._readings]
        if new:
            self.frame(new)
        return {name: reading for name in wanted if (reading := self._readings[name]) is not None}

    @property
    def usable(self) -> list[str]:
        """The names of all columns that `frame` takes: those of the file, and the vectors beside it."""
        return [*self.names, *self.beside]

    def cells(self, name: str) -> np.ndarray:
        """One column as it is in the file, as objects, None where it is empty.

        Parameters
        ----------
        name : str
            The column. Cells of text files are text, without quotes around them; others are Python values.
        """
        return self._cells(self._position(name))

    def has_column(self, name: str) -> bool:
        """Whether a column can be read under this name.

        Parameters
        ----------
        name : str
            One of `names`, or for NPZ files an entry of a matrix: ``X_0``.
        """
        try:
            self._position(name)
        except TableError:
            return False
        return True

    def check_writable(self, out: str | Path | BinaryIO) -> None:
        """Refuse an output whose format cannot hold the table, before any work is done.

        Parameters
        ----------
        out : str, path or binary stream
            As in `write`.

        Raises
        ------
        TableError
            The name stands for Excel or NPZ, and a cell or a name does not fit.
        """
        kind = format_of_name(Path(out)) if isinstance(out, (str, Path)) else None
        if kind in _LIMITED and kind != self.kind:
            arrow_writer(self._arrow(), kind)

    def write(
        self,
        out: str | Path | BinaryIO,
        added: Mapping[str, Column],
        fill: tuple[str, Column] | None = None,
        *,
        format: str | None = None,
        force: bool = False,
        excel_safe: bool = False,
    ) -> None:
        """Write the table with columns added and everything else unchanged.

        In the format of the input, untouched cells come back byte for byte (CSV, TSV, JSON) or as the same values and
        types (Parquet, Feather, NPZ, Excel). In another format, text becomes a number, a boolean, a date or a time only
        in columns where every cell would be written the same way again (`007` and `1.50` stay text), and an empty cell
        becomes a missing value; other values become text as they are printed, lists and structures as JSON, in UTF-8.

        Parameters
        ----------
        out : str, path or binary stream
            Where to write; "-" is standard output. A file appears in one step, and is not readable by more people than
            the input. A name that ends in `.gz` or `.zst` is compressed.
        added : mapping of str to columns
            New columns, in order, each of `n_rows` values: text, numbers, booleans, None where empty.
        fill : (str, column) or None
            A column of the file, and values to write into it; cells where the value is None stay as they are.
        format : str or None
            One of the values of `kind`; None for the format that the name of `out` stands for. A name without an ending
            gets that of the input; an unknown ending is refused.
        force : bool
            Whether an existing file may be replaced. The input never is.
        excel_safe : bool
            In CSV and TSV, put an apostrophe before every text cell, new or not, that begins with `=`, `+`, `-`, `@`,
            a tab or a line break and is not a number, so that spreadsheets do not read it as a formula.
        """
        if str(out) == "-":
            out = sys.stdout.buffer
        path = Path(out) if isinstance(out, (str, Path)) else None
        if path is not None:
            refuse_url(path)
        new = self._check_added(added)
        if fill is not None:
            self._position(fill[0])
            self._check_length(*fill)
        kind = self._kind_of_output(path, format)
        excel_safe = excel_safe and kind in ("csv", "tsv")
        if kind == self.kind:
            write = self._writer(new, fill, excel_safe)
        else:
            whole = self._arrow_text() if kind in ("csv", "tsv") else self._arrow()
            whole = whole if fill is None else fill_column(whole, fill, self.origin)
            write = arrow_writer(with_columns(whole, new), kind, excel_safe, self.decimal)
        write_output(out, write, force, [] if self.path is None else [self.path], mode_like=self.path)

    def _kind_of_output(self, path: Path | None, format: str | None) -> str:
        """The format to write: the one asked for, that of the name, or that of the input, with a note."""
        usual = self.written_as or self.kind
        if path is not None and format is None:
            check_ending(path, self.path)
            if format_of_name(path) is None and not same_ending(path, self.path):
                as_input = "" if self.written_as else ", as the input is"
                self._note(f"{path} is written as {usual}{as_input}: its name does not say what it is")
        return check_format(format) or (format_of_name(path) if path else None) or usual

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
        """The whole table for CSV or TSV: of a text file, its cells as they are."""
        return self._arrow()

    @abstractmethod
    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        """A function that writes the table in its own format."""

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def _position(self, name: str) -> int:
        try:
            return self._places[name]
        except KeyError:
            problem = f"has no column {name!r}; its columns: {listed(self.names)}"
            raise file_error(self.origin, problem, column=name) from None

    def _parsed(self, position: int, text: Any) -> Any:
        """Text as the values of a pandas column."""
        name = self.names[position]
        column = parse(name, text, self.decimal)
        self._note(*column.notes)
        self._readings[name] = column.reading
        return column.values

    def _note(self, *notes: str) -> None:
        for note in notes:
            if note and note not in self._noted:
                self._noted.add(note)
                self.notes.append(note)

    def _set_names(self, given: Sequence[str]) -> None:
        """Take the names of the columns, with new ones for empty names; refuse names that occur twice."""
        check_names([name for name in given if name], self.origin)
        self.names = list(given)
        for j, name in enumerate(given):
            self.names[j] = name or free_name(f"column {j + 1}", self.names)
        self.unnamed = [name for name, old in zip(self.names, given, strict=True) if not old]
        if self.unnamed:
            self._note(f"columns without a name are called {', '.join(self.unnamed)}")

    def _check_added(self, added: Mapping[str, Column]) -> dict[str, Any]:
        known = [name for name in added if name in self.names]
        if known:
            advice = "rename or remove it in the file, or choose other names for the added columns"
            raise file_error(
                self.origin, f"already has a column {listed(known)}, which would be added", advice, known[0]
            )
        return {name: to_arrow(self._check_length(name, column)) for name, column in added.items()}

    def _check_length(self, name: str, column: Column) -> Column:
        if len(column) != self.n_rows:
            raise ValueError(f"column {name!r} has {len(column)} values, the table has {self.n_rows} rows.")
        return column


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with underscores after it where it is taken."""
    while name in taken:
        name += "_"
    return name


def check_names(names: Sequence[str], origin: str) -> None:
    """Refuse names that occur twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise file_error(origin, f"has more than one column named {listed(twice)}", "rename them", twice[0])
