"""`otprop label`: fill the column that is mostly empty."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from otprop.cli._bar import bar
from otprop.cli._command import UsageError, add_command

if TYPE_CHECKING:
    from otprop.files import Table
    from otprop.labelling.job import Job, Request
    from otprop.labelling.outcome import Outcome

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html
  otprop label lots.parquet --target variety --abstain-below 0.9 -o labelled.parquet
  cat lots.csv | otprop label - --target variety -o - | head

Labels the rows whose TARGET cell is empty. All other cells come back as they were; added are TARGET_label,
_certainty, _confidence, _round and _source (given, propagated, abstained).
Exit status: 0 done, 1 failed, 2 used wrongly, 130 interrupted.
"""
INTERRUPTED = "interrupted. Nothing was written; an output that was there before is as it was."


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(
        commands,
        "label",
        run_command,
        brief="label the rows of a file",
        usage="label FILE --target COLUMN [-o OUT] [--report PAGE.html] [options]",
        text=_EXAMPLE,
        interrupted=INTERRUPTED,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="CSV, TSV, Parquet, Feather or NPZ, plain, .gz or .zst; - for standard input")
    add("--target", required=True, metavar="COLUMN", help="the column with the labels")
    add("-o", "--output", metavar="OUT", help="default: FILE with .labelled before its ending, beside it")
    add("--report", type=Path, metavar="PAGE", help="write a page that shows what happened")
    add("--save", type=Path, metavar="MODEL", help="keep the model, for otprop predict")
    add("--fill", action="store_true", help="write the labels into the target column itself")
    add("--probabilities", action="store_true", help="add TARGET_p_CLASS for every class")
    add("--prefix", metavar="NAME", help="of the added columns; default: TARGET_")
    add("--unlabeled", action="append", default=[], metavar="WORD", help="a cell that says this is unlabelled, too")
    add("--features", nargs="+", metavar="COLUMN", help="use these columns only")
    add("--ignore", nargs="+", default=[], metavar="COLUMN", help="leave these columns out")
    add("--embedding", metavar="PREFIX", help="columns that start so are one vector")
    add("--method", default="otp", metavar="NAME", help="otp or a method of the benchmark: ls, trees, ...")
    add("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE", help="a parameter of the method")
    add("--abstain-below", type=float, metavar="P", help="leave rows under this confidence unlabelled")
    add("--class-prior", nargs="+", metavar="CLASS=SHARE", help="shares of all rows, if you know them; or: uniform")
    add("--metric", metavar="NAME", help="what rows are near by: euclidean, cosine, manhattan, ...")
    add("--map", choices=("pca", "umap"), default="pca", help="how the page draws the rows; default: pca")
    add("--seed", type=int, default=0, metavar="N")
    add("--jobs", type=int, metavar="N", help="threads; default: all")
    add_reading(parser)
    add("--excel-safe", action="store_true", help="no text cell of a CSV starts a formula")
    add("--force", action="store_true", help="write over files that are there")
    add("--dry-run", action="store_true", help="say what would be done")
    add_manners(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How a file is read, where it cannot be found out.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    add = parser.add_argument
    formats = ("csv", "tsv", "parquet", "feather", "npz")
    add("--format", choices=formats, metavar="NAME", help=f"of the input, whatever its name says: {', '.join(formats)}")
    add("--delimiter", metavar="C", help="of the cells; this and the next three where they are not found out")
    add("--quote", metavar="C")
    add("--encoding", metavar="NAME")
    add("--decimal", metavar="C", help="decimal sign of the numbers in text: . or ,")


def add_manners(parser: argparse.ArgumentParser) -> None:
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
class Places:
    """Where things go: paths, or "-" for the output."""

    output: str
    report: Path | None
    model: Path | None


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Read, label, write.

    Parameters
    ----------
    options : argparse.Namespace
    arguments : list of str, as given

    Returns
    -------
    int
    """
    from otprop.cli import _say
    from otprop.labelling.job import prepare

    places = check_places(options)
    said = _say.Said(quiet=options.quiet)
    with bar(quiet=options.quiet) as show:
        show(0, 0, f"reading {options.file}")
        table = read(options)
        try:
            job = prepare(table, _request(options))
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from error
        prefix = options.prefix if options.prefix is not None else f"{options.target}_"
        _check_names(options, job, prefix)
        if options.dry_run:
            job.features.fit(table.frame(job.features.wanted))
        else:
            outcome = job.run(show)
            show(1, 1, "writing")
            _write(options, arguments, places, job, outcome, prefix)
    said.notes(job.notes)
    if options.dry_run:
        said.plan(job, places)
        return 0
    said.outcome(job, outcome, places)
    if options.json:
        summary = _say.summary(job, outcome, places)
        sys.stdout.write(json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
    return 0


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

    source: str | BinaryIO = sys.stdin.buffer if options.file == "-" else options.file
    return read_table(
        source,
        format=options.format,
        delimiter=options.delimiter,
        quote=options.quote,
        encoding=options.encoding,
        decimal=options.decimal,
    )


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


def check_places(options: argparse.Namespace) -> Places:
    """Refuse before the work what could not be written after it.

    Parameters
    ----------
    options : argparse.Namespace

    Returns
    -------
    Places
    """
    from otprop.files import TableError, check_output

    places = Places(
        options.output or default_output(options.file), getattr(options, "report", None), getattr(options, "save", None)
    )
    if options.json and places.output == "-":
        raise UsageError("--json writes to standard output, where the table goes with -o -. Give -o a file.")
    written = [Path(place) for place in (places.output, places.report, places.model) if place not in (None, "-")]
    if len({path.resolve() for path in written}) < len(written):
        raise UsageError("the output, --report and --save need different names.")
    inputs = [] if options.file == "-" else [Path(options.file)]
    for path in written:
        try:
            check_output(path, options.force, inputs)
        except TableError as error:
            raise UsageError(str(error)) from error
    return places


def _request(options: argparse.Namespace) -> Request:
    from otprop.labelling.job import Request

    return Request(
        target=options.target,
        method=options.method,
        settings=options.settings,
        features=options.features,
        ignore=options.ignore,
        embedding=options.embedding,
        unlabeled=options.unlabeled,
        abstain_below=options.abstain_below,
        class_prior=options.class_prior,
        metric=options.metric,
        seed=options.seed,
        jobs=options.jobs,
    )


def _check_names(options: argparse.Namespace, job: Job, prefix: str) -> None:
    """Refuse columns that are there already, before the work."""
    from otprop.labelling.added import added_names

    confidence = job.request.method == "otp"
    names = added_names(
        job.target, prefix, fill=options.fill, probabilities=options.probabilities, confidence=confidence
    )
    taken = [name for name in names if name in job.table.names]
    if taken:
        raise UsageError(
            f"{job.table.origin} has a column {', '.join(map(repr, taken))} already. Give the added columns another "
            f"start of their names with --prefix."
        )


def _write(
    options: argparse.Namespace, arguments: list[str], places: Places, job: Job, outcome: Outcome, prefix: str
) -> None:
    """The model and the page first: whoever sees the output sees that all is done."""
    from otprop.files import write_safely
    from otprop.labelling.added import added_columns, filled_column
    from otprop.labelling.model import save_model

    if places.model is not None:
        save_model(places.model, job, force=options.force)
    if places.report is not None:
        from otprop.labelling.page import make_page

        command = shlex.join(["otprop", *arguments])
        text = make_page(job, outcome, command=command, how=options.map)
        write_safely(places.report, text.encode(), force=options.force)
    out: str | BinaryIO = sys.stdout.buffer if places.output == "-" else places.output
    added = added_columns(job.target, outcome, prefix, fill=options.fill, probabilities=options.probabilities)
    fill = (job.request.target, filled_column(job.target, outcome)) if options.fill else None
    job.table.write(
        out,
        added,
        fill,
        force=options.force,
        excel_safe=options.excel_safe,
    )
