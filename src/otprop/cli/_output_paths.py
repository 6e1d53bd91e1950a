"""Where the commands that label a file write, checked before the work."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from otprop.cli._command import UsageError
from otprop.cli._options import is_one_table
from otprop.cli._streams import standard_output

if TYPE_CHECKING:
    from otprop.files import Table

_INPUTS = ("votes_file", "labels", "vectors", "text_model", "image_model")  # files beside the table


@dataclass(frozen=True)
class OutputPaths:
    """The outputs of a command.

    Attributes
    ----------
    table : str, "-" for standard output
    report, model : path or None
    """

    table: str
    report: Path | None = None
    model: Path | None = None

    @property
    def files(self) -> list[Path]:
        """All outputs that are files, in the order of writing."""
        return [Path(path) for path in (self.model, self.report, self.table) if path not in (None, "-")]

    def table_target(self) -> str | BinaryIO:
        """What the table is written to."""
        return standard_output() if self.table == "-" else self.table


def check_output_paths(options: argparse.Namespace, inputs: Sequence[str | Path] = ()) -> OutputPaths:
    """Refuse before the work what could not be read, or written after it; `inputs` are never written."""
    from otprop.files import TableError, check_ending, check_output, refuse_url
    from otprop.files.atomic import record_writes
    from otprop.table.database import database_parts, is_database
    from otprop.table.opening import holds_row

    if not options.file or options.output == "":
        raise UsageError(f"{'-o' if options.file else 'FILE'} is empty; name a file, or - for the standard stream.")
    refuse_url(options.file)
    if Path(options.file).is_dir() and not is_one_table(options):
        raise TableError(f"{options.file} is a folder", "name one file in it")
    paths = OutputPaths(
        options.output or default_output(options.file), getattr(options, "report", None), getattr(options, "save", None)
    )
    for option, path in (("--report", paths.report), ("--save", paths.model)):
        if str(path) == "-":
            raise UsageError(f"{option} -: only the table goes to standard output, with -o -; name a file.")
    if options.json and paths.table == "-":
        raise UsageError("--json writes to standard output, where the table goes with -o -. Give -o a file.")
    if options.json or paths.table == "-":
        standard_output()  # an error where it is closed
    if len({os.path.realpath(path) for path in paths.files}) < len(paths.files):
        raise UsageError("the output, --report and --save need different names.")
    if paths.table != "-":
        check_ending(paths.table, options.file)
    file = database_parts(options.file)[0] if is_database(options.file) else options.file
    others = [getattr(options, name, None) for name in _INPUTS]
    read = [*inputs, *(other for other in (*others, file) if other not in (None, "-"))]
    for path in paths.files:
        if holds_row(options.file, path, getattr(options, "labels", None)):
            problem = f"{path} is one of the files of the input {options.file}, which are never written"
            raise TableError(problem, "choose another output")
        check_output(path, options.force, read)
    options.outputs, options.written = paths.files, record_writes()  # for the sentence on a command that fails half-way
    return paths


def write_rows(data: Any, paths: OutputPaths, options: argparse.Namespace, table: Table) -> None:
    """Write a DataFrame of rows of `table`, which may hold what only the readers of that may see."""
    from otprop.table.frame import write_frame

    write_frame(
        data,
        paths.table_target(),
        force=options.force,
        excel_safe=options.excel_safe,
        mode_like=table.path,
    )


def default_output(file: str) -> str:
    """The default output: next to the input, or standard output."""
    if file == "-":
        return "-"
    from otprop.table.database import default_output as beside_database
    from otprop.table.database import is_database

    if is_database(file):
        return beside_database(file)
    path = Path(file)
    if path.is_dir():
        whole = path.resolve()  # . and .. have no name
        return str((path if path.name not in ("", "..") else whole).with_name(f"{whole.name}.labelled.csv"))
    endings = ""
    while path.suffix.lower() in (".gz", ".zst"):
        endings, path = path.suffix + endings, path.with_suffix("")
    suffix = ".xlsx" if path.suffix.lower() in (".xls", ".xlsm") else path.suffix  # not written any more
    return str(path.with_name(f"{path.stem}.labelled{suffix}{endings}"))
