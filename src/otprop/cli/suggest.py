"""`otprop suggest`: name the rows to label next."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from otprop.cli._command import hint_text
from otprop.cli._options import (
    add_table_command,
    add_table_options,
    check_output_paths,
    default_output,
    prepared,
    require_target,
    same_input,
    write_rows,
)
from otprop.cli._streams import write_json

_EXAMPLE = """\
example:
  otprop suggest lots.csv --target variety -n 20 -o rows.csv
  otprop label lots.csv --target variety --corrections rows.csv

List the rows that are most useful to label next: typical rows of different regions and, once two classes have
labels, uncertain rows. Some are drawn at random, to keep the expected error unbiased. OUT has these rows with all
their columns. Fill in TARGET, which need not exist in FILE yet, and pass OUT to otprop label --corrections.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    usage = "suggest FILE --target COLUMN [-n N] [-o OUT] [--goal E] [options]"
    target = "column with the labels; may be new"
    parser = add_table_command(commands, "suggest", run_command, usage=usage, text=_EXAMPLE, target=target)
    add = parser.add_argument
    add("-n", type=int, default=20, metavar="N", help="number of rows; default: 20")
    output = "write the rows to a file to fill in: CSV, Excel, ...; - for standard output"
    add("-o", "--output", metavar="OUT", help=output)
    add("--random-share", type=float, default=0.2, metavar="P", help="share of the rows drawn at random; default: 0.2")
    goal = "estimate how many more labels an expected error of E needs, as in 0.02"
    add("--goal", type=float, metavar="E", help=goal)
    add_table_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Read, find the rows, write and print them; returns the exit status."""
    require_target(options)
    paths = None if options.output is None else check_output_paths(options, options.corrections)
    from otprop._validation import check_number
    from otprop.cli.console import Messages, or_none
    from otprop.labelling.next_rows import best_classes, needed_for, rows_to_fill_in, suggest_next

    if options.goal is not None:
        check_number("goal", options.goal, above=0, below=1)
    with prepared(options, allow_few=True, allow_complete=True) as (job, progress):
        found = suggest_next(job, options.n, random_share=options.random_share, progress=progress)
        fitted = len(job.target.classes) > 1
        needed = needed_for(job, options.goal) if options.goal is not None and fitted else None
        if paths is not None:
            write_rows(rows_to_fill_in(job, found), paths, options, job.table)
    messages = Messages(quiet=options.quiet)
    messages.notes(job.notes)
    if len(found) < options.n:
        messages.notes([f"{options.n} rows were wanted, {len(found)} are unlabelled"])
    if options.goal is not None and needed is None:
        messages.notes(["without effect: --goal; there are no two classes yet to learn from"])
    messages.suggestions(job, found, options.output, next_command(options))
    if needed is not None:
        messages.labels_needed(options.goal, needed, int((~job.target.given).sum()))
    if options.json:
        rows = [
            {
                "row": one.row + 1,
                "reason": one.reason,
                "uncertainty": or_none(one.uncertainty),
                "classes": dict(best_classes(job, one.row)),
            }
            for one in found
        ]
        summary: dict[str, Any] = {"input": job.table.origin, "output": options.output, "target": options.target}
        if needed is not None:
            summary["labels_needed"] = {"error": options.goal, **needed._asdict()}
        write_json({**summary, "suggestions": rows, "notes": [hint_text(note) for note in job.notes]})
    return 0


def next_command(options: argparse.Namespace) -> list[str]:
    """The `otprop label` that takes the rows once they are filled in, with the options that decide what it sees."""
    more = ["--corrections", *options.corrections, options.output or "OUT"]
    force = ["--force"] if Path(default_output(options.file)).exists() else []  # of an earlier label of this file
    return ["otprop", "label", *same_input(options), *more, *force]
