"""`otprop predict`: labels for rows that come later, by a model that `otprop label --save` kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from otprop.cli._command import UsageError, add_command
from otprop.cli._options import (
    EXIT_STATUS,
    FILES_HELP,
    INTERRUPTED,
    OUTPUT_HELP,
    add_output_options,
    add_reading_options,
    check_output_paths,
    read_input,
)
from otprop.cli._streams import bar, write_json
from otprop.cli.folder import add_folder_options, names_folder, run_predict

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --save lots.model
  otprop predict lots.model new_lots.csv -o new_lots_labelled.csv
  otprop predict lots.model 'new_lots/*.parquet' -o new_lots_labelled/

Add the columns TARGET_label, _certainty, _confidence and, with --probabilities, TARGET_p_CLASS. FILE needs the
columns that the model was trained on, in any order.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(
        commands,
        "predict",
        run_command,
        usage="predict MODEL FILE [-o OUT] [options]",
        text=_EXAMPLE + EXIT_STATUS,
        interrupted=INTERRUPTED,
    )
    add = parser.add_argument
    help_text = "file written by otprop label --save; for a folder, OUT/_otprop/model"
    add("model", type=Path, metavar="MODEL", help=help_text)
    add("file", metavar="FILE", help=FILES_HELP)
    add("-o", "--output", metavar="OUT", help=OUTPUT_HELP)
    help_text = "text model that MODEL was trained with; a model file does not store its path"
    add("--text-model", metavar="PATH", help=help_text)
    add("--image-model", metavar="PATH", help="image model that MODEL was trained with, likewise")
    add("--probabilities", action="store_true", help="add TARGET_p_CLASS for every class")
    add("--prefix", metavar="NAME", help="prefix of the added columns; default: TARGET_")
    add_reading_options(parser)
    add("--jobs", type=int, metavar="N", help="processes for a folder; default: one per processor")
    add_folder_options(parser, landmarks=False)
    add_output_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Load the model, read the file, label its rows, write; returns the exit status."""
    if names_folder(options):
        return run_predict(options)
    if options.jobs is not None:
        raise UsageError(f"--jobs is for a folder or a pattern of files; {options.file} is one file.")
    paths = check_output_paths(options, [options.model])
    from otprop._predict import Model
    from otprop.cli.console import Messages
    from otprop.labelling.model import load_model
    from otprop.labelling.outcome import counted
    from otprop.labelling.output_columns import OutputColumns

    messages = Messages(quiet=options.quiet)
    output = OutputColumns(options.prefix, probabilities=options.probabilities)
    with bar(quiet=options.quiet) as progress:
        progress(0, 0, f"loading {options.model}")
        saved = load_model(options.model, text_model=options.text_model, image_model=options.image_model)
        model = Model(saved)
        progress(0, 0, f"reading {options.file}")
        table = read_input(options, progress)
        model.check_table(table, output)
        table.check_writable(paths.table)
        progress(0, 0, f"labelling {counted(table.n_rows, 'row')}")
        found = model.predict_table(table, output)
        progress(1, 1, "writing")
        table.write(paths.table_target(), found.columns, force=options.force, excel_safe=options.excel_safe)
    messages.notes([*model.notes, *table.notes, *found.notes])
    messages.predicted(saved, found.labels.codes, paths)
    if options.json:
        counts = {name: int((found.labels.codes == code).sum()) for code, name in enumerate(saved.classes)}
        write_json({"input": table.origin, "output": paths.table, "rows": table.n_rows, "labelled": counts})
    return 0
