"""Options that the commands that label a file share: what they ask for, what is read, and where the outputs go."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from otprop._progress import ProgressCallback, no_progress
from otprop.cli._command import UsageError, add_command, flag, unmarked
from otprop.cli._streams import bar, standard_input, standard_output

if TYPE_CHECKING:
    from otprop.files import Table
    from otprop.labelling.job import Job, Request

FILE_KINDS = "CSV, TSV, JSON, Excel, Parquet, Feather, NPZ or .h5ad, also as .gz or .zst"
FILE_HELP = f"{FILE_KINDS}; - for standard input"
FILES_HELP = f"{FILE_HELP}; or a folder, or a quoted pattern"
OUTPUT_HELP = "output file, folder or -; default: NAME.labelled.EXT next to FILE, - if FILE is -"
INTERRUPTED = "interrupted. No file was written or changed."
EXIT_STATUS = """\
Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted, 141 broken pipe of -o -, 143 terminated.
"""
FORMATS = ("csv", "tsv", "parquet", "feather", "npz", "json", "jsonl", "xlsx")
_INPUTS = ("votes_file", "labels", "vectors", "text_model", "image_model")  # files beside the table
_OF_TEXT = ("delimiter", "quote", "encoding", "decimal")
_PASSED_ON = (  # to the next command, so that it sees the same labels and columns
    *("unlabeled", "merge_labels", "numeric_classes", "new_classes", "chosen", "groups", "features", "ignore"),
    *("votes", "votes_file"),
    *("embedding", "image_model", "metric", "seed", "jobs", "labels", "use_rep", "graph", "vectors"),
    *("format", "delimiter", "quote", "encoding", "decimal", "max_bytes", "sheet"),
)


def add_table_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace, list[str]], int],
    *,
    usage: str,
    text: str,
    target: str,
    files: bool = False,
) -> argparse.ArgumentParser:
    """Add a command about a table with a target; its own options follow, then those of `add_table_options`.

    `target` is the help of that option; `files`: it takes a folder of files, too. The rest is as in `add_command`.
    """
    parser = add_command(commands, name, run, usage=usage, text=text + EXIT_STATUS, interrupted=INTERRUPTED)
    parser.add_argument("file", metavar="FILE", help=FILES_HELP if files else FILE_HELP)
    parser.add_argument("--target", metavar="COLUMN", help=target)
    return parser


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """The options that all commands about a table with a target have."""
    add_target_options(parser)
    add_reading_options(parser)
    add_output_options(parser)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read, where it cannot be detected."""
    add = parser.add_argument_group("reading the file").add_argument
    add("--format", choices=FORMATS, metavar="NAME", help=f"{', '.join(FORMATS)}; default: by the file name")
    add("--delimiter", metavar="C", help="cell delimiter; this and the next three options are detected by default")
    add("--quote", metavar="C", help="quote character")
    add("--encoding", metavar="NAME", help="text encoding, as in utf-8")
    add("--decimal", choices=(".", ","), metavar="C", help="decimal sign of numbers: . or ,")
    add("--sheet", metavar="NAME", help="sheet of an Excel file; default: the first")
    add("--max-bytes", type=int, metavar="N", help="limit for the decompressed size of a compressed file")
    add("--labels", metavar="FILE", help="labels of a folder of pictures or texts: a file of paths and labels")
    add("--use-rep", metavar="NAME", help="matrix of an .h5ad file to compare cells by; default: X_pca")
    add("--graph", metavar="NAME", help="graph of an .h5ad file that labels spread over, such as connectivities")
    add("--vectors", metavar="FILE", help=".npy file with one vector per row of the table")


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Which labels, columns and votes of the file are used."""
    add = parser.add_argument_group("labels and columns").add_argument
    words: dict[str, Any] = {"action": "append", "type": unmarked, "default": [], "metavar": "WORD"}
    add("--unlabeled", **words, help="extra value that means unlabelled")
    add("--merge-labels", action="store_true", help="merge labels that differ only by case, spaces or a typing error")
    add("--numeric-classes", action="store_true", help="accept numbers that look like measurements as classes")
    help_text = "files with more labels: corrections from a report, or suggested rows filled in"
    add("--corrections", nargs="+", default=[], metavar="FILE", help=help_text)
    help_text = "accept labels of corrections as new classes, even if they look like typing errors"
    add("--new-classes", action="store_true", help=help_text)
    add("--chosen", metavar="COLUMN", help="column that marks labels of rows that were picked, not drawn at random")
    add("--groups", metavar="COLUMN", help="column of patients, sites, ... whose rows were labelled together")
    add("--features", nargs="+", metavar="COLUMN", help="use only these columns")
    add("--ignore", nargs="+", default=[], metavar="COLUMN", help="skip these columns")
    add("--embedding", metavar="PREFIX", help="prefix of the columns of an embedding")
    add("--image-model", metavar="PATH", help="local .onnx or TorchScript file for pictures")
    add("--metric", metavar="NAME", help="distance between rows: euclidean, cosine, manhattan, ...")
    add("--seed", type=int, default=0, metavar="N", help="random seed; default: 0")
    add("--jobs", type=int, metavar="N", help="threads; default: -1, all processors")
    add = parser.add_argument_group("votes").add_argument
    help_text = "columns of noisy labels (language model, annotators, rules); or a prefix of class probabilities"
    add("--votes", nargs="+", default=[], metavar="COLUMN", help=help_text)
    add("--votes-file", metavar="FILE", help="votes with one line per row and annotator")


def make_request(options: argparse.Namespace, **more: Any) -> Request:
    """The request that the options make; `more` are fields that have no option of their name."""
    from otprop.labelling.job import Request

    asked = {one.name: getattr(options, one.name) for one in fields(Request) if hasattr(options, one.name)}
    return Request(**{**asked, **more})


def same_input(options: argparse.Namespace) -> list[str]:
    """The file, the target, and the options that decide what a command sees, without the corrections."""
    words = [options.file, "--target", options.target]
    for name in _PASSED_ON:
        value, option = getattr(options, name), flag(name)
        if name == "unlabeled":
            words += [f"{option}={word}" for word in value]
        elif isinstance(value, list):
            words += [option, *value] if value else []
        elif value is True or (value is not None and value is not False and (name, value) != ("seed", 0)):
            words += [option] if value is True else [option, str(value)]
    return words


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """How the table is written, and what is printed."""
    add = parser.add_argument_group("writing").add_argument
    add("--excel-safe", action="store_true", help="escape text cells that a spreadsheet would run as a formula")
    add("--force", action="store_true", help="overwrite existing output files")
    add = parser.add_argument_group("messages").add_argument
    add("--json", action="store_true", help="print a JSON summary to standard output")
    add("--quiet", action="store_true", help="print only errors")
    add("--debug", action="store_true", help="print the traceback of an error")


def reading_options(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `read_table` that the command names."""
    from otprop.files import check_reading

    dialect = {name: getattr(options, name) for name in ("delimiter", "quote", "encoding")}
    check_reading(**dialect)
    return {**dialect, **{name: getattr(options, name) for name in ("format", "decimal", "max_bytes", "sheet")}}


def read_input(options: argparse.Namespace, progress: ProgressCallback = no_progress) -> Table:
    """The table that the command names; a target that only the table itself names is set."""
    from otprop.table.opening import open_table, target_of

    more = {"target": getattr(options, "target", None), "progress": progress, **opening_options(options)}
    file = standard_input() if options.file == "-" else options.file
    table = open_table(file, **more, **reading_options(options))
    if "target" in options:
        options.target = target_of(table, options.target)
    if table.kind not in ("csv", "tsv"):
        useless = [f"--{name}" for name in _OF_TEXT if getattr(options, name) is not None]
        if useless:
            table.notes.append(f"without effect: {', '.join(useless)}; {table.origin} is not a text file")
    return table


def opening_options(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `open_table` that the command names."""
    names = ("labels", "use_rep", "graph", "vectors")
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def is_one_table(options: argparse.Namespace) -> bool:
    """Whether the file of a command is a folder that is one table."""
    from otprop.table.opening import is_one_table

    return options.file != "-" and is_one_table(options.file, getattr(options, "labels", None))


def require_target(options: argparse.Namespace) -> None:
    """Refuse a command without a target, before anything is read, unless its file may name one itself."""
    from otprop.files import format_of_name

    file = Path(options.file)
    may_be_json = (options.format or format_of_name(file)) == "json"
    if options.target is not None or may_be_json or is_one_table(options):
        return
    if file.is_dir() and not any(format_of_name(path) for path in file.iterdir()):
        raise UsageError(f"{options.file} has neither tables nor pictures nor texts.")
    raise UsageError("the following arguments are required: --target.")


@dataclass(frozen=True)
class OutputPaths:
    """The outputs of a command."""

    table: str  # "-" for standard output
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
    from otprop.files._formats import check_page_ending
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
    file = database_parts(options.file)[0] if is_database(options.file) else options.file
    others = [getattr(options, name, None) for name in _INPUTS]
    read = [*inputs, *(other for other in (*others, file) if other not in (None, "-"))]
    for path in paths.files:
        if holds_row(options.file, path, getattr(options, "labels", None)):
            problem = f"{path} is one of the files of the input {options.file}, which are never overwritten"
            raise TableError(problem, "choose another output")
    if paths.table != "-":
        check_ending(paths.table, options.file)
    for path in paths.files:
        check_output(path, options.force, read)
    if paths.report is not None:
        check_page_ending(paths.report)
    options.outputs, options.written = paths.files, record_writes()  # for the sentence on a command that fails half-way
    return paths


@contextmanager
def prepared(options: argparse.Namespace, **more: Any) -> Iterator[tuple[Job, ProgressCallback]]:
    """The job of a command about a table with a target, with a progress bar; `more` is for `prepare`."""
    from otprop.labelling.job import prepare

    with bar(quiet=options.quiet) as progress:
        progress(0, 0, f"reading {options.file}")
        yield prepare(read_input(options, progress), make_request(options), **more), progress


def write_rows(data: Any, paths: OutputPaths, options: argparse.Namespace, table: Table) -> None:
    """Write a DataFrame of rows of `table`, which may hold what only the readers of that may see."""
    from otprop.table.frame import write_frame

    more = {"force": options.force, "excel_safe": options.excel_safe}
    write_frame(data, paths.table_target(), **more, mode_like=table.path)


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
