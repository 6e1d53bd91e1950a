"""Options that the commands that label a file share, and what they ask for."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from otprop._progress import ProgressCallback, no_progress
from otprop.cli._command import unmarked
from otprop.cli._doors import add_door_options, door_options
from otprop.cli._flags import flag
from otprop.cli._streams import standard_input

if TYPE_CHECKING:
    from otprop.files import Table
    from otprop.labelling.job import Request

FILE_HELP = "CSV, TSV, JSON, Excel, Parquet, Feather or NPZ, plain, .gz or .zst; - for standard input"
FILES_HELP = f"{FILE_HELP}; or a folder, or a pattern in quotes"
OUTPUT_HELP = "default: FILE with .labelled before its ending, beside it; of a folder, a folder"
INTERRUPTED = "interrupted. No file was written; an output that was there before is as it was."
FORMATS = ("csv", "tsv", "parquet", "feather", "npz", "json", "jsonl", "xlsx")
_OF_TEXT = ("delimiter", "quote", "encoding", "decimal")
_PASSED_ON = (  # to the next command, so that it sees the same labels and columns
    *("unlabeled", "merge_labels", "numeric_classes", "new_classes", "chosen", "groups", "features", "ignore"),
    *("votes", "votes_file"),
    *("embedding", "image_model", "metric", "seed", "jobs", "labels", "use_rep", "vectors"),
    *("format", "delimiter", "quote", "encoding", "decimal", "max_bytes", "sheet"),
)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read, where it cannot be detected."""
    add = parser.add_argument
    add("--format", choices=FORMATS, metavar="NAME", help=f"{', '.join(FORMATS)}; default: by the file name")
    add("--delimiter", metavar="C", help="of the cells; this and the next three where they are not found out")
    add("--quote", metavar="C")
    add("--encoding", metavar="NAME")
    add("--decimal", choices=(".", ","), metavar="C", help="decimal sign of the numbers in text: . or ,")
    add("--sheet", metavar="NAME", help="sheet of an Excel file; default: the first")
    add("--max-bytes", type=int, metavar="N", help="largest size of a compressed file once it is decompressed")
    add_door_options(parser)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Which labels and columns of the file are used."""
    add = parser.add_argument
    add(
        "--unlabeled", action="append", type=unmarked, default=[], metavar="WORD", help="such a cell is unlabelled, too"
    )
    add("--merge-labels", action="store_true", help="labels that differ by case, blanks or a typing error are one")
    add("--numeric-classes", action="store_true", help="numbers that look like measurements are classes")
    add(
        "--corrections",
        nargs="+",
        default=[],
        metavar="FILE",
        help="more labels: corrections from a page, or suggested rows that were filled in",
    )
    add("--new-classes", action="store_true", help="labels of the corrections may be new classes, however written")
    add("--chosen", metavar="COLUMN", help="tells labels that were picked (yes, reviewed) from those drawn at random")
    add("--groups", metavar="COLUMN", help="patient, site, ...: rows of a group were labelled together")
    add("--features", nargs="+", metavar="COLUMN", help="use these columns only")
    add("--ignore", nargs="+", default=[], metavar="COLUMN", help="leave these columns out")
    add("--embedding", metavar="PREFIX", help="columns that start so are one vector")
    add("--image-model", metavar="PATH", help="vectors of pictures by a local .onnx or TorchScript file")
    add("--metric", metavar="NAME", help="what rows are near by: euclidean, cosine, manhattan, ...")
    add("--seed", type=int, default=0, metavar="N")
    add("--jobs", type=int, metavar="N", help="threads; default: all")


def add_votes_option(parser: argparse.ArgumentParser) -> None:
    """Columns with what voters say."""
    add = parser.add_argument
    help_text = "what a language model, annotators or rules say; or the start of columns with a probability per class"
    add("--votes", nargs="+", default=[], metavar="COLUMN", help=help_text)
    add("--votes-file", metavar="FILE", help="more votes: a line for each row, annotator and label")


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


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """How the table is written."""
    add = parser.add_argument
    add("--excel-safe", action="store_true", help="no text cell of a CSV starts a formula")
    add("--force", action="store_true", help="write over files that are there")


def add_verbosity_options(parser: argparse.ArgumentParser) -> None:
    """What the command prints, and where."""
    add = parser.add_argument
    add("--json", action="store_true", help="a summary for scripts on standard output")
    add("--quiet", action="store_true", help="errors only")
    add("--debug", action="store_true", help="show the traceback of an error")


def reading_options(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `read_table` that the command names."""
    from otprop.files import check_reading

    dialect = {name: getattr(options, name) for name in ("delimiter", "quote", "encoding")}
    check_reading(**dialect)
    return {**dialect, **{name: getattr(options, name) for name in ("format", "decimal", "max_bytes", "sheet")}}


def read_input(options: argparse.Namespace, progress: ProgressCallback = no_progress) -> Table:
    """The table that the command names."""
    from otprop.table.opening import open_table

    more = {"target": getattr(options, "target", None), "progress": progress, **door_options(options)}
    source = standard_input() if options.file == "-" else options.file
    table = open_table(source, **more, **reading_options(options))
    if table.kind not in ("csv", "tsv"):
        useless = [f"--{name}" for name in _OF_TEXT if getattr(options, name) is not None]
        if useless:
            table.notes.append(f"without effect: {', '.join(useless)}; {table.origin} is not a text file")
    return table
