"""`otprop label`: label the unlabelled rows of a table."""

from __future__ import annotations

import argparse
import ast
import os
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otprop import __version__
from otprop._errors import install_command
from otprop._validation import ParameterError, did_you_mean
from otprop.cli._command import UsageError, hint_text
from otprop.cli._options import (
    OUTPUT_HELP,
    OutputPaths,
    add_table_command,
    add_table_options,
    check_output_paths,
    make_request,
    read_input,
    require_target,
    same_input,
)
from otprop.cli._streams import bar, write_json
from otprop.cli.folder import add_folder_options, names_folder
from otprop.cli.folder import run_label as run_folder

if TYPE_CHECKING:
    from otprop.labelling.job import Job, Request
    from otprop.labelling.outcome import Outcome
    from otprop.propagation.class_errors import ClassErrors

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html
  otprop label lots.parquet --target variety --abstain-below 0.9 -o labelled.parquet
  otprop label lots.csv --target variety --corrections corrections.csv --force
  cat lots.csv | otprop label - --target variety -o - | head
  otprop label 'lots/*.parquet' --target variety -o labelled/
  otprop label photos/ --labels labels.csv -o labelled.csv

Label the rows whose TARGET cell is empty. The output has all cells of FILE unchanged, and the new columns
TARGET_label, _certainty, _confidence, _novelty, _round and _source (given, corrected, propagated, abstained).
For a folder or a pattern of files, the output is a folder with one file per input file; if the run is stopped,
the same command continues it. A folder of pictures or .txt files is one table, labelled by --labels or by its
sub-folders. FILE::TABLE is a table of an SQLite database, which is only read.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    usage, target = "label FILE --target COLUMN [-o OUT] [--report PAGE.html] [options]", "the column with the labels"
    parser = add_table_command(commands, "label", run_command, usage=usage, text=_EXAMPLE, target=target, files=True)
    add = parser.add_argument
    add("-o", "--output", metavar="OUT", help=OUTPUT_HELP)
    add("--report", type=Path, metavar="PAGE", help="write an HTML page with a map of the rows and the rows to review")
    add("--save", type=Path, metavar="MODEL", help="save the model for otprop predict")
    add("--fill", action="store_true", help="write the labels into the target column itself")
    add("--probabilities", action="store_true", help="add TARGET_p_CLASS for every class")
    add("--prefix", metavar="NAME", help="prefix of the added columns; default: TARGET_")
    add("--text-model", metavar="PATH", help="local sentence-transformers folder or .onnx file for text columns")
    add("--method", default="otp", metavar="NAME", help="otp, or otp-paper: the paper's algorithm; default: otp")
    settings: dict[str, Any] = {"action": "append", "default": [], "dest": "settings", "metavar": "NAME=VALUE"}
    add("--set", **settings, help="set a parameter of the method")
    add("--abstain-below", type=float, metavar="P", help="keep rows with a lower confidence unlabelled")
    add("--class-prior", nargs="+", metavar="CLASS=SHARE", help="known share of each class among all rows; or: uniform")
    add("--objective", metavar="NAME", help="accuracy (default), or balanced: find more of the rare classes")
    help_text = "cost of errors, as in yes:no=10; default: 1 each"
    add("--cost", nargs="+", dest="costs", metavar="TRUE:LABEL=COST", help=help_text)
    add("--map", choices=("pca", "umap"), help="layout of the map in the report; default: pca")
    add("--dry-run", action="store_true", help="print what would be done, and write nothing")
    add_folder_options(parser, landmarks=True)
    add_table_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Read, label, write; returns the exit status."""
    try:
        return _run(options, arguments)
    except ParameterError as error:
        from otprop.table.errors import RequestError

        if error.parameter == "objective" and options.costs is not None:
            error.parameter = "costs"
            if isinstance(error, RequestError) and isinstance(error.value, dict):
                error.value = " ".join(f"{true}:{given}={cost:g}" for (true, given), cost in error.value.items())
        raise


def _run(options: argparse.Namespace, arguments: list[str]) -> int:
    require_target(options)
    if names_folder(options):
        _check_map(options)
        return run_folder(options, arguments, _request(options), _notes(options))
    paths = check_output_paths(options, options.corrections)
    _check_map(options)
    from otprop._label_result import LabelResult
    from otprop.cli.console import Messages
    from otprop.labelling.job import prepare
    from otprop.labelling.output_columns import OutputColumns

    messages = Messages(quiet=options.quiet)
    output = OutputColumns(options.prefix, options.fill, options.probabilities)
    with bar(quiet=options.quiet) as progress:
        progress(0, 0, f"reading {options.file}")
        table = read_input(options, progress)
        table.notes += _notes(options)
        job = prepare(table, _request(options), output=output, call=shlex.join(["otprop", *arguments]))
        table.check_writable(paths.table)
        if options.dry_run:
            job.fit_features()
        else:
            result = LabelResult(job, job.run(progress))
            progress(1, 1, "writing")
            result.write_files(
                paths.table_target(),
                report=paths.report,
                model=paths.model,
                map=options.map or "pca",
                force=options.force,
                excel_safe=options.excel_safe,
                note_text=hint_text,
            )
    messages.notes(job.notes)
    if options.dry_run:
        messages.plan(job, paths)
    else:
        messages.outcome(job, result.outcome, paths, check_command(options))
    if options.json:
        write_json(_planned(job, paths) if options.dry_run else _summary(job, result.outcome, paths))
    return 0


def check_command(options: argparse.Namespace) -> list[str]:
    """The `otprop check` that judges the same labels."""
    more = ["--corrections", *options.corrections] if options.corrections else []
    return ["otprop", "check", *same_input(options), *more]


def _check_map(options: argparse.Namespace) -> None:
    if options.map is not None and options.report is None:
        raise UsageError(f"--map {options.map} draws on the page; name one with --report.")
    if options.map == "umap" and find_spec("umap") is None:
        raise ImportError(f"--map umap needs umap-learn: {install_command('umap')}")


def _notes(options: argparse.Namespace) -> list[str]:
    """A note on options that work against each other."""
    if options.abstain_below is None or (options.costs is None and options.objective in (None, "accuracy")):
        return []
    which = f"--objective {options.objective}" if options.costs is None else "--cost"
    return [
        f"{which} and --abstain-below work against each other: a label that was chosen because other errors cost more "
        "has a low confidence, so that such rows stay unlabelled"
    ]


def _request(options: argparse.Namespace) -> Request:
    prior = None if options.class_prior is None else read_prior(options.class_prior)
    return make_request(
        options, settings=dict(map(read_setting, options.settings)), class_prior=prior, objective=_objective(options)
    )


def _objective(options: argparse.Namespace) -> str | dict[tuple[str, str], float] | None:
    from otprop.propagation.decisions import OBJECTIVES

    if options.costs is None:
        if options.objective not in (None, *OBJECTIVES):
            near = did_you_mean(options.objective, OBJECTIVES) or "."
            raise UsageError(
                f"--objective {options.objective}: write accuracy or balanced, or give costs with --cost, as in "
                f"--cost yes:no=10{near}"
            )
        return options.objective
    if options.objective is not None:
        raise UsageError(
            f"--cost says which errors count, and so does --objective {options.objective}: use one of them."
        )
    return read_costs(options.costs)


def read_costs(words: Sequence[str]) -> dict[tuple[str, str], float]:
    """Costs by pair of classes from "true:label=cost"."""
    from otprop.propagation.decisions import MAX_COST

    costs: dict[tuple[str, str], float] = {}
    for word in words:
        pair, cost = _name_and_number(word)
        true, _, given = pair.partition(":")
        if not (true and given) or ":" in given or not 0 <= cost <= MAX_COST:
            raise UsageError(
                f"--cost {word}: write TRUE:LABEL=COST with a cost from 0 to {MAX_COST:g}, as in yes:no=10. For "
                "names with a colon, use Python: objective={(true, label): cost}."
            )
        if (true, given) in costs:
            raise UsageError(f"--cost {word}: the pair {true}:{given} was given a cost before.")
        costs[true, given] = cost
    return costs


def read_prior(words: Sequence[str]) -> str | dict[str, float]:
    """The classes' shares from ["uniform"] or "class=share" for every class."""
    if list(words) == ["uniform"]:
        return "uniform"
    shares: dict[str, float] = {}
    for word in words:
        name, share = _name_and_number(word)
        if "=" not in word or not 0 <= share < float("inf"):
            raise UsageError(
                f"--class-prior {word}: write 'uniform', or class=share for every class, as in yes=0.2 no=0.8; "
                "a share is a number of at least 0."
            )
        if name in shares:
            raise UsageError(f"--class-prior {word}: the class {name!r} was given a share before.")
        shares[name] = share
    return shares


def _name_and_number(word: str) -> tuple[str, float]:
    """The parts of "name=number"; -1 where there is no number."""
    name, _, number = word.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        return name, -1.0


def read_setting(setting: str) -> tuple[str, Any]:
    """A name and a value from "name=value": a number, True, None, a list, or else the text itself."""
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {setting}: write it as name=value, for example --set n_neighbors=15.")
    try:
        return name.strip(), ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return name.strip(), text.strip()


def _planned(job: Job, paths: OutputPaths) -> dict[str, Any]:
    """What would be done, for scripts; the features of the job are fitted."""
    target = job.target
    return {
        **_setting(job, paths),
        "dry_run": True,
        "rows": job.table.n_rows,
        "given": int(target.given.sum()),
        "to_label": int((~target.given).sum()),
        "classes": {name: {"given": int((target.codes == code).sum())} for code, name in enumerate(target.classes)},
        "columns": _columns(job),
        "notes": [hint_text(note) for note in job.notes],
    }


def _setting(job: Job, paths: OutputPaths) -> dict[str, Any]:
    return {
        "version": __version__,
        "input": job.table.origin,
        "output": str(paths.table),
        "report": None if paths.report is None else os.fspath(paths.report),
        "model": None if paths.model is None else os.fspath(paths.model),
        "target": job.request.target,
        "method": job.request.method,
        "parameters": job.parameters,
    }


def _columns(job: Job) -> list[dict[str, Any]]:
    return [{"name": use.name, "role": use.role, "why": use.why, "features": use.width} for use in job.columns]


def _summary(job: Job, outcome: Outcome, paths: OutputPaths) -> dict[str, Any]:
    """What was done to a file, for scripts."""
    from otprop.cli.console import coverage_list, issue_list, or_none, voter_summary

    new = ~outcome.given & (outcome.codes >= 0)
    errors = {one.label: one for one in outcome.class_errors}
    counts = {
        name: {
            "given": int((outcome.given & (outcome.codes == code)).sum()),
            "labelled": int((new & (outcome.codes == code)).sum()),
            **(_class_errors(errors[name]) if name in errors else {}),
        }
        for code, name in enumerate(outcome.classes)
    }
    return {
        **_setting(job, paths),
        "rows": job.table.n_rows,
        "given": int(outcome.given.sum()),
        "corrected": 0 if outcome.corrected is None else int(outcome.corrected.sum()),
        "labelled": int(new.sum()),
        "abstained": int((outcome.codes < 0).sum()),
        "rounds": outcome.n_rounds,
        "seconds": round(outcome.seconds, 3),
        "expected_error": outcome.expected_error,
        "expected_error_range": outcome.error_range,
        "expected_cost": outcome.expected_cost,
        "held_out_labels": outcome.n_held_out,
        "classes": counts,
        "columns": _columns(job),
        "coverage": coverage_list(outcome.coverage),
        "label_issues": issue_list(outcome),
        "sources": [
            {"name": name, "weight": weight, "accuracy": or_none(accuracy)}
            for name, weight, accuracy in outcome.sources
        ],
        "voters": [voter_summary(voter) for voter in outcome.voters],
        "notes": [hint_text(note) for note in job.notes],
    }


def _class_errors(one: ClassErrors) -> dict[str, Any]:
    """Precision and recall of a class."""
    from otprop.cli.console import or_none

    return {
        "expected": one.n_expected,
        "precision": or_none(one.precision),
        "recall": or_none(one.recall),
        "precision_range": one.precision_range,
        "recall_range": one.recall_range,
    }
