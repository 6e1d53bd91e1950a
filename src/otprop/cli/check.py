"""`otprop check`: find given labels that look wrong."""

from __future__ import annotations

import argparse
from typing import Any

from otprop.cli._command import hint_text
from otprop.cli._options import (
    add_table_command,
    add_table_options,
    check_output_paths,
    prepared,
    require_target,
    write_rows,
)
from otprop.cli._streams import write_json

_EXAMPLE = """\
example:
  otprop check lots.csv --target variety -o issues.csv
  otprop label lots.csv --target variety --corrections issues.csv

List the given labels that the other labels contradict, the most doubtful first. OUT has the columns row, label
(empty: fill in the right label), given, suggested, and the probability that the given label is wrong. Unlabelled
rows help, but are not needed.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    usage = "check FILE --target COLUMN [-o OUT] [options]"
    target = "column with the labels"
    parser = add_table_command(commands, "check", run_command, usage=usage, text=_EXAMPLE, target=target)
    output = "write the list: CSV, Excel, ...; - for standard output"
    parser.add_argument("-o", "--output", metavar="OUT", help=output)
    add_table_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Read, judge the labels, write and print the list; returns the exit status."""
    require_target(options)
    paths = None if options.output is None else check_output_paths(options, options.corrections)
    from otprop.cli.console import Messages, issue_list, voter_summary
    from otprop.labelling.corrections import issues_to_correct

    with prepared(options, allow_complete=True) as (job, progress):
        outcome = job.run(progress)
        if paths is not None:
            write_rows(issues_to_correct(outcome.label_issues, job.table), paths, options, job.table)
    messages = Messages(quiet=options.quiet)
    messages.notes(job.notes)
    messages.issues(outcome, options.output)
    if options.json:
        counts = {"given": int(outcome.given.sum()), "judged": outcome.n_judged}
        notes = [hint_text(note) for note in job.notes]
        found = {"target": options.target, **counts, "label_issues": issue_list(outcome), "notes": notes}
        if outcome.voters:
            found["voters"] = [voter_summary(voter) for voter in outcome.voters]
        write_json({"input": job.table.origin, "output": options.output, **found})
    return 0
