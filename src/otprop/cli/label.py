"""`otprop label`: fill the column that is mostly empty."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otprop.cli._bar import bar
from otprop.cli._command import UsageError, add_command, word
from otprop.cli._table import (
    FILE_HELP,
    INTERRUPTED,
    OUTPUT_HELP,
    OutputPaths,
    add_reading,
    add_verbosity_options,
    add_writing,
    check_output_paths,
    prefix_of,
    read,
    refuse_taken,
)

if TYPE_CHECKING:
    from otprop.labelling.job import Job, Request
    from otprop.labelling.outcome import Outcome

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html
  otprop label lots.parquet --target variety --abstain-below 0.9 -o labelled.parquet
  cat lots.csv | otprop label - --target variety -o - | head

Labels the rows whose TARGET cell is empty. All other cells come back as they were; added are TARGET_label,
_certainty, _confidence, _round and _source (given, propagated, abstained).
Exit status: 0 done, 1 failed, 2 used wrongly, 130 interrupted, 141 the reader of -o - left.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(
        commands,
        "label",
        run_command,
        usage="label FILE --target COLUMN [-o OUT] [--report PAGE.html] [options]",
        text=_EXAMPLE,
        interrupted=INTERRUPTED,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help=FILE_HELP)
    add("--target", required=True, metavar="COLUMN", help="the column with the labels")
    add("-o", "--output", metavar="OUT", help=OUTPUT_HELP)
    add("--report", type=Path, metavar="PAGE", help="write a page that shows what happened")
    add("--save", type=Path, metavar="MODEL", help="keep the model, for otprop predict")
    add("--fill", action="store_true", help="write the labels into the target column itself")
    add("--probabilities", action="store_true", help="add TARGET_p_CLASS for every class")
    add("--prefix", metavar="NAME", help="of the added columns; default: TARGET_")
    add("--unlabeled", action="append", type=word, default=[], metavar="WORD", help="such a cell is unlabelled, too")
    add("--features", nargs="+", metavar="COLUMN", help="use these columns only")
    add("--ignore", nargs="+", default=[], metavar="COLUMN", help="leave these columns out")
    add("--embedding", metavar="PREFIX", help="columns that start so are one vector")
    add("--method", default="otp", metavar="NAME", help="otp or a method of the benchmark: ls, trees, ...")
    add("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE", help="a parameter of the method")
    add("--abstain-below", type=float, metavar="P", help="leave rows under this confidence unlabelled")
    add("--class-prior", nargs="+", metavar="CLASS=SHARE", help="shares of all rows, if you know them; or: uniform")
    add("--metric", metavar="NAME", help="what rows are near by: euclidean, cosine, manhattan, ...")
    add("--map", choices=("pca", "umap"), help="how the page draws the rows; default: pca")
    add("--seed", type=int, default=0, metavar="N")
    add("--jobs", type=int, metavar="N", help="threads; default: all")
    add_reading(parser)
    add_writing(parser)
    add("--dry-run", action="store_true", help="say what would be done")
    add_verbosity_options(parser)


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
    from otprop.cli import console
    from otprop.labelling.methods import RequestError

    places = check_output_paths(options)
    _check_map(options)
    said = console.Messages(quiet=options.quiet)
    outcome = None
    with bar(quiet=options.quiet) as show:
        show(0, 0, f"reading {options.file}")
        try:
            job = _prepare(options)
            if options.dry_run:
                job.fit_features()
            else:
                outcome = job.run(show)
        except RequestError as error:
            raise UsageError(str(error)) from error
        if outcome is not None:
            show(1, 1, "writing")
            _write(options, arguments, places, job, outcome)
    said.notes(job.notes)
    if outcome is None:
        said.plan(job, places)
    else:
        said.outcome(job, outcome, places)
    if options.json:
        summary = console.planned(job, places) if outcome is None else console.summary(job, outcome, places)
        sys.stdout.write(json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
    return 0


def _check_map(options: argparse.Namespace) -> None:
    if options.map is not None and options.report is None:
        raise UsageError(f"--map {options.map} draws on the page; name one with --report.")
    if options.map == "umap" and find_spec("umap") is None:
        raise ImportError("--map umap needs umap-learn: pip install 'otprop[umap]'")


def _prepare(options: argparse.Namespace) -> Job:
    """Read the file and check everything that can be checked before the work begins."""
    from otprop.labelling.job import prepare
    from otprop.labelling.output_columns import output_column_names

    table = read(options)
    try:
        job = prepare(table, _request(options))
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    names = output_column_names(
        job.target,
        prefix_of(options, options.target),
        fill=options.fill,
        probabilities=options.probabilities,
        confidence=job.request.method == "otp",
    )
    refuse_taken(table, names, options.target)
    return job


def _request(options: argparse.Namespace) -> Request:
    from otprop.labelling.job import Request

    return Request(**{one.name: getattr(options, one.name) for one in fields(Request)})


def _write(options: argparse.Namespace, arguments: list[str], places: OutputPaths, job: Job, outcome: Outcome) -> None:
    """All that can fail first; the table last: whoever sees it sees that all is done."""
    from otprop.files import write_atomic
    from otprop.labelling.model import save_model
    from otprop.labelling.output_columns import filled_column, output_columns

    prefix = prefix_of(options, options.target)
    added = output_columns(job.target, outcome, prefix, fill=options.fill, probabilities=options.probabilities)
    fill = (job.request.target, filled_column(job.target, outcome)) if options.fill else None
    page = b""
    if places.report is not None:
        from otprop.report.label_page import make_page

        command = shlex.join(["otprop", *arguments])
        page = make_page(job, outcome, command=command, how=options.map or "pca").encode()
    if places.model is not None:
        save_model(places.model, job, force=options.force)
    if places.report is not None:
        write_atomic(places.report, page, force=options.force)
    job.table.write(places.stream(), added, fill, force=options.force, excel_safe=options.excel_safe)
