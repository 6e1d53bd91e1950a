"""The files of a folder: which there are, what their columns are, how many rows they have."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otprop.files import (
    FORMATS,
    NoRowsError,
    Reading,
    Table,
    TableError,
    format_of_name,
    listed,
    read_table,
    refuse_url,
)
from otprop.table.errors import RequestError, unknown_name
from otprop.table.pictures import is_picture_name

if TYPE_CHECKING:
    from otprop.labelling.job import Request

STATE_FOLDER = "_otprop"  # in the output folder; readers of Parquet folders skip names that start so


@dataclass(frozen=True)
class InputFile:
    """A file of the folder."""

    path: str  # absolute
    name: str  # its path below the folder that all files are in: also that of its output
    size: int
    changed: int  # time of the last change in nanoseconds
    touched: int = 0  # time of the last change of content or permissions, which no program can set
    mode: int = 0o600  # its permissions
    n_rows: int = 0
    kinds: dict[str, str] = field(default_factory=dict)  # of columns: number, date, text, ...; "" where any is accepted
    whole: dict[str, bool] = field(default_factory=dict)  # columns of numbers that are whole by their type
    readings: dict[str, Reading] = field(default_factory=dict)  # how the columns of a text file are parsed
    options: dict[str, Any] = field(default_factory=dict)  # parameters of `read_table`

    @property
    def is_parquet(self) -> bool:
        """Whether parts of it can be read without the rest."""
        return self.path.endswith((".parquet", ".pq")) and self.options.get("format") in (None, "parquet")

    def read(self) -> Table:
        """All of it."""
        with self.unchanged():
            return read_table(self.path, **self.options)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a file that is not as it was when the run began, before it is read and after."""
        self._refuse_change()
        yield
        self._refuse_change()

    @contextmanager
    def parquet(self) -> Iterator[Any]:
        """It as pyarrow opens it; refuses one that is damaged, gone, or changes meanwhile."""
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with self.unchanged(), parquet.ParquetFile(self.path) as file:
                yield file
        except TableError:
            raise
        except FileNotFoundError:
            raise TableError(f"{self.path} is gone", file=self.path) from None
        except (pa.ArrowException, OSError, ValueError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TableError(f"{self.path} is cut short or damaged ({text[:200]})", file=self.path) from error

    def _refuse_change(self) -> None:
        try:
            found = os.stat(self.path)
        except OSError:
            return  # who reads it says why it cannot
        if (found.st_size, found.st_mtime_ns, found.st_ctime_ns) != (self.size, self.changed, self.touched):
            raise TableError(
                f"{self.path} has changed since the run began",
                "wait until nothing writes to it, and start over with {}",
                file=self.path,
                arguments=[("force", True)],
            )

    @property
    def stamp(self) -> list[Any]:
        """What tells that the file is still the same."""
        return [self.name, self.size, self.changed]


def is_folder(file: str) -> bool:
    """Whether this names a folder, or a pattern of files."""
    return file != "-" and (os.path.isdir(file) or (glob.has_magic(file) and not os.path.exists(file)))


def find_files(pattern: str, format: str | None = None) -> tuple[list[tuple[str, str]], list[str]]:
    """Path and name of the files in a folder or of a pattern, sorted by name, and notes on what was skipped.

    Where the format is named, all files have it, whatever their names.
    """
    refuse_url(pattern)
    if os.path.isdir(pattern):
        entries = [entry.path for entry in os.scandir(pattern)]
    else:
        entries = [path for path in _matches(pattern) if STATE_FOLDER not in Path(path).parts]
    shown = [path for path in sorted(entries) if not os.path.basename(path).startswith((".", "_"))]
    found, again = _distinct([path for path in shown if os.path.isfile(path)])
    known = [path for path in found if format or format_of_name(Path(path))]
    others = [os.path.basename(path) for path in found if path not in set(known)]
    if not known:
        if others and all(map(is_picture_name, others)):
            raise TableError(
                f"{pattern} holds pictures ({listed(others, 3)}), and no table",
                "name their folder itself, or a table with a column of their paths",
                file=pattern,
            )
        if not entries and not os.path.isdir(pattern):
            raise TableError(f"no file matches {pattern}", "check the pattern and the folder", file=pattern)
        endings = ", ".join(f".{name}" for name in FORMATS)
        there = f"; there are {listed(others)}" if others else ""
        raise TableError(
            f"{pattern}: no file has the ending of a table ({endings}){there}",
            "name the format with {}" if others else "",
            file=pattern,
            arguments=[("format", "csv")] if others else [],
        )
    paths = sorted(os.path.abspath(path) for path in known)
    top = os.path.commonpath([os.path.dirname(path) for path in paths])
    broken = [path for path in shown if os.path.islink(path) and not os.path.exists(path)]
    notes = [f"skipped, unknown extension: {listed(others)}"] if others else []
    notes += [f"skipped, broken links: {listed(map(os.path.basename, broken))}"] if broken else []
    notes += [f"skipped, links to other inputs: {listed(map(os.path.basename, again))}"] if again else []
    return [(path, Path(os.path.relpath(path, top)).as_posix()) for path in paths], notes


def _matches(pattern: str) -> list[str]:
    """What a pattern matches; `**` follows no links, which may lead back up."""
    parts = Path(pattern).parts
    if "**" not in parts:
        return glob.glob(pattern)
    place = parts.index("**")
    top, rest = os.path.join("", *parts[:place]), parts[place + 1 :] or ("*",)
    found: dict[str, None] = {}
    for start in glob.glob(top) if top else [os.curdir]:
        for folder, below, _ in os.walk(start):
            below[:] = [name for name in below if not name.startswith(".")]
            found |= dict.fromkeys(_matches(os.path.join(glob.escape(folder), *rest)))
    return list(found)


def _distinct(paths: list[str]) -> tuple[list[str], list[str]]:
    """Each file once, by a path without links if there is one; and the other paths."""
    kept: dict[str, str] = {}
    for path in sorted(paths, key=lambda path: (os.path.realpath(path) != os.path.abspath(path), os.path.islink(path))):
        kept.setdefault(os.path.realpath(path), path)
    chosen = set(kept.values())
    return [path for path in paths if path in chosen], [path for path in paths if path not in chosen]


def inspect_file(path: str, name: str, options: Mapping[str, Any]) -> InputFile:
    """Read the columns and the number of rows: from the footer of a Parquet file, else from the whole file."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}", file=path) from error
    here = InputFile(
        path, name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode, options=dict(options)
    )
    if not here.size:
        return here
    if here.is_parquet:
        return _inspect_parquet(here)
    try:
        table = here.read()
    except NoRowsError:
        return here
    kinds = dict.fromkeys(table.names, "")
    readings = table.readings()
    typed = table.kind in ("feather", "npz")
    if typed:
        kinds |= {column: reading.kind for column, reading in readings.items()}
    return replace(here, n_rows=table.n_rows, kinds=kinds, readings={} if typed else readings)


def _inspect_parquet(here: InputFile) -> InputFile:
    import pyarrow as pa

    with here.parquet() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    kinds = {column.name: _kind(column.type) for column in schema}
    whole = {column.name: bool(pa.types.is_integer(column.type)) for column in schema}
    return replace(here, n_rows=n_rows, kinds=kinds, whole=whole)


def _kind(kind: Any) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if str(kind) in ("string", "large_string", "string_view"):
        return "text"
    return "" if types.is_null(kind) else str(kind)


def check_schemas(files: Sequence[InputFile], request: Request) -> list[str]:
    """Refuse files whose columns do not fit together, by name; returns the columns to read besides the target."""
    target, features, ignore = request.target, request.features, request.ignore
    names = list(dict.fromkeys(name for file in files for name in file.kinds))
    with_target = [file for file in files if target in file.kinds]
    if not with_target:
        raise RequestError("target", unknown_name("column", target, names), target)
    _refuse_other_kind(target, with_target, "target")
    voting = [name for name in names if name.startswith(tuple(request.votes)) and name != target]
    for parameter, asked in (("features", features or ()), ("ignore", ignore)):
        unknown = [name for name in asked if name not in names]
        if unknown:
            raise RequestError(parameter, unknown_name("column", unknown[0], names), unknown[0])
    wanted = [name for name in names if name != target and name not in ignore]
    if features is not None:
        needed = {*features, *voting, *(name for name in (request.chosen, request.groups) if isinstance(name, str))}
        wanted = [name for name in wanted if name in needed]
    for name in wanted:
        without = [file for file in files if name not in file.kinds]
        if without:
            having = next(file for file in files if name in file.kinds)
            raise TableError(
                f"{without[0].name} lacks the column {name!r}, which {having.name} has"
                + (f" ({len(without)} of {len(files)} files lack it)" if len(without) > 1 else ""),
                "add it there, or skip it with {}",
                file=without[0].path,
                column=name,
                arguments=[("ignore", name)],
            )
        _refuse_other_kind(name, files, "ignore")
    return wanted


def _refuse_other_kind(name: str, files: Sequence[InputFile], parameter: str) -> None:
    kinds: dict[str, InputFile] = {}
    for file in files:
        kinds.setdefault(file.kinds.get(name, ""), file)
    kinds = {kind: file for kind, file in kinds.items() if kind}  # a column without any value goes with all
    if len(kinds) > 1:
        (kind, file), (other, other_file) = list(kinds.items())[:2]
        advice = "give them one type" + (", or skip it with {}" if parameter == "ignore" else "")
        raise TableError(
            f"the column {name!r} holds {_plural(kind)} in {file.name} and {_plural(other)} in {other_file.name}",
            advice,
            file=other_file.path,
            column=name,
            arguments=[("ignore", name)] if parameter == "ignore" else [],
        )


def _plural(kind: str) -> str:
    return {"number": "numbers", "boolean": "booleans", "date": "dates"}.get(kind, kind)


def first_rows(files: Sequence[InputFile]) -> list[int]:
    """The number of the first row of each file among all rows."""
    return [0, *accumulate(file.n_rows for file in files)][:-1]


def changes(files: Sequence[InputFile], before: Mapping[str, Sequence[Any]]) -> str:
    """How the files differ from those of an earlier run, as a sentence; empty where they do not."""
    now = {file.name: file.stamp for file in files}
    for name, stamp in before.items():
        shown = name if name.isprintable() else repr(name)
        if name not in now:
            return f"{shown} is gone"
        if list(stamp) != now[name]:
            return f"{shown} has changed"
    new = [name for name in now if name not in before]
    return f"{new[0]} is new" if new else ""
