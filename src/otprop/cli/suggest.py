"""`otprop suggest`: name the rows to label next."""

from __future__ import annotations

import argparse
from typing import Any

from otprop.cli._bar import bar
from otprop.cli._command import UsageError, add_command
from otprop.cli._flags import error_text
from otprop.cli._options import (
    FILE_HELP,
    INTERRUPTED,
    add_reading_options,
    add_target_options,
    add_verbosity_options,
    add_writing_options,
    make_request,
    read_input,
)
from otprop.cli._output_paths import check_output_paths
from otprop.cli._streams import write_json

_EXAMPLE = """\
example:
  otprop suggest lots.csv --target variety -n 20 -o rows.csv
  otprop label lots.csv --target variety --corrections rows.csv

Names the rows that would teach most: without labels, typical rows of different regions; else uncertain and typical
ones. Some are drawn at random, so that the expected error stays honest. OUT has these rows with all their columns:
fill in TARGET, which need not exist in FILE yet, and give OUT to otprop label --corrections.
Exit status: 0 done, 1 failed, 2 used wrongly, 130 interrupted, 141 the reader of -o - left, 143 terminated.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(
        commands,
        "suggest",
        run_command,
        usage="suggest FILE --target COLUMN [-n N] [-o OUT] [options]",
        text=_EXAMPLE,
        interrupted=INTERRUPTED,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help=FILE_HELP)
    add("--target", required=True, metavar="COLUMN", help="the column with the labels, or the one that will have them")
    add("-n", type=int, default=20, metavar="N", help="how many rows; default: 20")
    add(
        "-o",
        "--output",
        metavar="OUT",
        help="write these rows, to be filled in: CSV, Excel, ...; - for standard output",
    )
    add("--random-share", type=float, default=0.2, metavar="P", help="share of the rows drawn at random; default: 0.2")
    add_target_options(parser)
    add_reading_options(parser)
    add_writing_options(parser)
    add_verbosity_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Read, find the rows, write and print them; returns the exit status."""
    paths = None if options.output is None else check_output_paths(options, options.corrections)
    from otprop._validation import ParameterError
    from otprop.cli.console import Messages
    from otprop.labelling.job import prepare
    from otprop.labelling.next_rows import best_classes, rows_to_fill_in, suggest_next
    from otprop.table.errors import ColumnError, NoFeaturesError
    from otprop.table.frame import write_frame

    with bar(quiet=options.quiet) as progress:
        progress(0, 0, f"reading {options.file}")
        table = read_input(options)
        try:
            job = prepare(table, make_request(options), allow_few=True, allow_complete=True)
        except (ValueError, TypeError) as error:
            raise UsageError(error_text(error)) from error
        try:
            found = suggest_next(job, options.n, random_share=options.random_share, progress=progress)
        except (ParameterError, ColumnError, NoFeaturesError) as error:
            raise UsageError(error_text(error)) from error
        if paths is not None:
            data = rows_to_fill_in(job, found)
            write_frame(
                data,
                paths.table_target(),
                force=options.force,
                excel_safe=options.excel_safe,
                mode_like=table.path,
                written=paths.written,
            )
    messages = Messages(quiet=options.quiet)
    messages.notes(job.notes)
    if len(found) < options.n:
        messages.notes([f"{options.n} rows were wanted, {len(found)} are unlabelled"])
    messages.suggestions(job, found, options.output)
    if options.json:
        rows = [
            {
                "row": one.row + 1,
                "reason": one.reason,
                "uncertainty": one.uncertainty if one.uncertainty == one.uncertainty else None,
                "classes": dict(best_classes(job, one.row)),
            }
            for one in found
        ]
        write_json({"input": table.origin, "output": options.output, "target": options.target, "suggestions": rows})
    return 0
