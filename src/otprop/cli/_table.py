"""What the commands that label a file have in common: reading it, where things go, the names of the added columns."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from otprop.cli._command import UsageError
from otprop.cli._streams import standard_input, standard_output

if TYPE_CHECKING:
    from otprop.files import Table

FILE_HELP = "CSV, TSV, Parquet, Feather or NPZ, plain, .gz or .zst; - for standard input"
OUTPUT_HELP = "default: FILE with .labelled before its ending, beside it"
INTERRUPTED = "interrupted. No file was written; an output that was there before is as it was."
FORMATS = ("csv", "tsv", "parquet", "feather", "npz")
_OF_TEXT = ("delimiter", "quote", "encoding", "decimal")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How a file is read, where it cannot be found out.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    add = parser.add_argument
    add("--format", choices=FORMATS, metavar="NAME", help=f"of the input, whatever its name says: {', '.join(FORMATS)}")
    add("--delimiter", metavar="C", help="of the cells; this and the next three where they are not found out")
    add("--quote", metavar="C")
    add("--encoding", metavar="NAME")
    add("--decimal", choices=(".", ","), metavar="C", help="decimal sign of the numbers in text: . or ,")


def add_writing(parser: argparse.ArgumentParser) -> None:
    """How the table is written.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    add = parser.add_argument
    add("--excel-safe", action="store_true", help="no text cell of a CSV starts a formula")
    add("--force", action="store_true", help="write over files that are there")


def add_verbosity_options(parser: argparse.ArgumentParser) -> None:
    """What the command says, and where.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    add = parser.add_argument
    add("--json", action="store_true", help="a summary for scripts on standard output")
    add("--quiet", action="store_true", help="errors only")
    add("--debug", action="store_true", help="show the traceback of an error")


@dataclass(frozen=True)
class OutputPaths:
    """Where things go: paths, or "-" for the output.

    Attributes
    ----------
    output : str
    report, model : path or None
    before : dict of path to the mark of the file that was there when the command began
    """

    output: str
    report: Path | None = None
    model: Path | None = None
    before: dict[Path, tuple[int, int] | None] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """All that are files."""
        return [Path(place) for place in (self.model, self.report, self.output) if place not in (None, "-")]

    def stream(self) -> str | BinaryIO:
        """What the table is written to."""
        return standard_output() if self.output == "-" else self.output

    def remember(self) -> None:
        """Look what is there now, to see later what was written."""
        self.before.update({path: _mark(path) for path in self.files})

    def aftermath(self) -> str:
        """What has been written by now, in a sentence; empty where nothing has."""
        written = [str(path) for path, mark in self.before.items() if _mark(path) != mark]
        return f"Written before that: {', '.join(written)}." if written else ""


def _mark(path: Path) -> tuple[int, int] | None:
    """What tells a file from the one that takes its place; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_ino, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def check_output_paths(options: argparse.Namespace, inputs: Sequence[str | Path] = ()) -> OutputPaths:
    """Refuse before the work what could not be read, or written after it.

    Parameters
    ----------
    options : argparse.Namespace
    inputs : sequence of str or path, files beside the table that are never written

    Returns
    -------
    OutputPaths
    """
    from otprop.files import TableError, check_ending, check_output

    if not options.file or options.output == "":
        raise UsageError(f"{'-o' if options.file else 'FILE'} is empty; name a file, or - for the standard stream.")
    if Path(options.file).is_dir():
        raise TableError(f"{options.file} is a folder; name one file in it.")
    places = OutputPaths(
        options.output or default_output(options.file), getattr(options, "report", None), getattr(options, "save", None)
    )
    for option, place in (("--report", places.report), ("--save", places.model)):
        if str(place) == "-":
            raise UsageError(f"{option} -: only the table goes to standard output, with -o -; name a file.")
    if options.json and places.output == "-":
        raise UsageError("--json writes to standard output, where the table goes with -o -. Give -o a file.")
    if options.json or places.output == "-":
        standard_output()  # an error where it is closed
    if len({path.resolve() for path in places.files}) < len(places.files):
        raise UsageError("the output, --report and --save need different names.")
    try:
        if places.output != "-":
            check_ending(places.output, options.file)
        for path in places.files:
            check_output(path, options.force, [*inputs, *([] if options.file == "-" else [options.file])])
    except TableError as error:
        raise UsageError(str(error)) from error
    places.remember()
    options.places = places  # for what is said where the command does not come to its end
    return places


def default_output(file: str) -> str:
    """Where the result goes where nobody says: beside the input, or to standard output.

    Parameters
    ----------
    file : str, the input

    Returns
    -------
    str
    """
    if file == "-":
        return "-"
    path = Path(file)
    endings = ""
    while path.suffix.lower() in (".gz", ".zst"):
        endings, path = path.suffix + endings, path.with_suffix("")
    return str(path.with_name(f"{path.stem}.labelled{path.suffix}{endings}"))


def read(options: argparse.Namespace) -> Table:
    """The table that the command names.

    Parameters
    ----------
    options : argparse.Namespace

    Returns
    -------
    Table
    """
    from otprop.files import read_table

    _check_reading(options)
    table = read_table(
        standard_input() if options.file == "-" else options.file,
        format=options.format,
        delimiter=options.delimiter,
        quote=options.quote,
        encoding=options.encoding,
        decimal=options.decimal,
    )
    if table.kind not in ("csv", "tsv"):
        useless = [f"--{name}" for name in _OF_TEXT if getattr(options, name) is not None]
        if useless:
            table.notes.append(f"without effect: {', '.join(useless)}; {table.origin} is not a text file")
    return table


def _check_reading(options: argparse.Namespace) -> None:
    """Refuse what cannot be the dialect or the encoding of any file."""
    from otprop.files import TableError, check_reading

    try:
        check_reading(delimiter=options.delimiter, quote=options.quote, encoding=options.encoding)
    except TableError as error:
        raise UsageError(f"--{error}") from error  # it begins with the name of the argument


def prefix_of(options: argparse.Namespace, target: str) -> str:
    """The start of the names of the added columns.

    Parameters
    ----------
    options : argparse.Namespace
    target : str

    Returns
    -------
    str
    """
    return options.prefix if options.prefix is not None else f"{target}_"


def refuse_taken(table: Table, names: Sequence[str], target: str) -> None:
    """Refuse columns that are there already, before the work.

    Parameters
    ----------
    table : Table
    names : sequence of str, of the columns that would be added
    target : str
    """
    from otprop.labelling.previous_run import free_prefix

    taken = [name for name in names if name in table.names]
    if taken:
        raise UsageError(
            f"{table.origin} already has {', '.join(map(repr, taken))}: give the added columns another start of their "
            f"names, as in --prefix {free_prefix(table.names, target)}"
        )
