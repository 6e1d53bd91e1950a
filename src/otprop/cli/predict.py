"""`otprop predict`: labels for rows that come later, by a model that `otprop label --save` kept."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from otprop.cli._bar import bar
from otprop.cli._command import UsageError, add_command
from otprop.cli._table import (
    FILE_HELP,
    INTERRUPTED,
    OUTPUT_HELP,
    add_reading,
    add_verbosity_options,
    add_writing,
    check_output_paths,
    prefix_of,
    read,
    refuse_taken,
)

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --save lots.model
  otprop predict lots.model new_lots.csv -o new_lots_labelled.csv

Adds TARGET_label, _certainty, _confidence and, on request, TARGET_p_CLASS. The file needs the columns that the
model was made from, in any order.
Exit status: 0 done, 1 failed, 2 used wrongly, 130 interrupted, 141 the reader of -o - left.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(
        commands,
        "predict",
        run_command,
        usage="predict MODEL FILE [-o OUT] [options]",
        text=_EXAMPLE,
        interrupted=INTERRUPTED,
    )
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a file that otprop label --save wrote")
    add("file", metavar="FILE", help=FILE_HELP)
    add("-o", "--output", metavar="OUT", help=OUTPUT_HELP)
    add("--probabilities", action="store_true", help="add TARGET_p_CLASS for every class")
    add("--prefix", metavar="NAME", help="of the added columns; default: TARGET_")
    add_reading(parser)
    add_writing(parser)
    add_verbosity_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Load the model, read the file, label its rows, write.

    Parameters
    ----------
    options : argparse.Namespace
    arguments : list of str, as given

    Returns
    -------
    int
    """
    from otprop.cli.console import Messages
    from otprop.labelling.model import load_model, predict_table
    from otprop.labelling.output_columns import predicted_columns, predicted_names

    places = check_output_paths(options, [options.model])
    said = Messages(quiet=options.quiet)
    with bar(quiet=options.quiet) as show:
        show(0, 0, f"loading {options.model}")
        model = load_model(options.model)
        show(0, 0, f"reading {options.file}")
        table = read(options)
        prefix = prefix_of(options, model.target)
        try:
            model.check_columns(table.names)
        except ValueError as error:
            raise UsageError(str(error)) from error
        refuse_taken(table, predicted_names(model, prefix, probabilities=options.probabilities), model.target)
        show(0, 0, f"labelling {table.n_rows} rows")
        codes, distributions, confidence = predict_table(model, model.frame(table))
        added = predicted_columns(model, codes, distributions, confidence, prefix, probabilities=options.probabilities)
        show(1, 1, "writing")
        table.write(places.stream(), added, force=options.force, excel_safe=options.excel_safe)
    said.notes([*model.notes, *table.notes])
    said.predicted(model, codes, places)
    if options.json:
        counts = {name: int((codes == code).sum()) for code, name in enumerate(model.classes)}
        summary = {"input": table.origin, "output": str(places.output), "rows": table.n_rows, "labelled": counts}
        sys.stdout.write(json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
    return 0
