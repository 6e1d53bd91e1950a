"""`otprop label` and `otprop predict` for a folder of files, or a pattern of them."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otprop.cli._command import FAILED, UsageError, error_text, hint_text
from otprop.cli._options import is_one_table, reading_options
from otprop.cli._streams import bar, write_error, write_json

if TYPE_CHECKING:
    from otprop.dask._folder import FolderRequest, FolderResult
    from otprop.labelling.job import Request

INTERRUPTED = "interrupted. Finished files are in place; the same command continues with the others."
SCHEDULER_HELP = "address of a Dask cluster for a folder; default: processes on this machine"


def add_folder_options(parser: argparse.ArgumentParser, *, landmarks: bool) -> None:
    """Options for folders only."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help=SCHEDULER_HELP)
    if landmarks:
        help_text = "unlabelled rows of a folder that the fit uses; default: 200000"
        parser.add_argument("--landmarks", type=int, metavar="N", help=help_text)


def names_folder(options: argparse.Namespace) -> bool:
    """Whether the command is about a folder; refuses options of folders where it is not."""
    from otprop.dask._inputs import find_files, is_folder
    from otprop.files import format_of_name

    if is_folder(options.file) and not is_one_table(options):
        find_files(options.file, options.format)  # an error where there is no table
        if options.output is None:
            raise UsageError(f"{options.file} is a folder; name one for the results with -o, or one file in it.")
        is_file = os.path.isfile(options.output) or format_of_name(Path(options.output)) is not None
        if options.output in ("", "-") or (is_file and not os.path.isdir(options.output)):
            raise UsageError(f"-o {options.output}: the results of a folder go to a folder.")
        return True
    for option in ("scheduler", "landmarks"):
        if getattr(options, option, None) is not None:
            raise UsageError(f"--{option} is for a folder or a pattern of files; {options.file} is one file.")
    return False


def run_label(options: argparse.Namespace, arguments: list[str], request: Request, notes: Sequence[str]) -> int:
    """Label the files of a folder; returns the exit status. `notes` are printed with those of the result."""
    from otprop.dask._folder import LANDMARKS, label_folder, plan_folder
    from otprop.dask._inputs import find_files
    from otprop.dask._manifest import State
    from otprop.files import check_output
    from otprop.files._formats import check_page_ending

    if options.corrections:
        raise UsageError("--corrections is for one file: its rows are counted in it; put the labels into the files.")
    if options.votes_file:
        raise UsageError(
            "--votes-file is for one file: its rows are counted in it. Put the votes into columns of the files, and "
            "name these with --votes."
        )
    if options.method != "otp":
        raise UsageError(f"--method {options.method} labels one file; a folder is labelled by otp.")
    landmarks = LANDMARKS if options.landmarks is None else options.landmarks
    if landmarks < 2:
        raise UsageError(f"--landmarks {landmarks}: give a number of rows, at least 2.")
    folder = _folder(options, fill=options.fill)
    resumed = not options.force and State(Path(options.output)).manifest.exists()
    inputs = [path for path, _ in find_files(options.file, options.format)[0]]
    for path in (options.report, options.save):
        if path is not None and not resumed:
            check_output(path, options.force, inputs)
    if options.report is not None:
        check_page_ending(options.report)
    with bar(quiet=options.quiet) as progress:
        if options.dry_run:
            n_files, n_rows = plan_folder(folder, request, progress)
        else:
            with _client(options) as client:
                result = label_folder(
                    folder,
                    request,
                    client,
                    landmarks=landmarks,
                    jobs=None if options.scheduler else (options.jobs or os.cpu_count()),
                    report=None if options.report is None else os.path.abspath(options.report),
                    map=options.map or "pca",
                    call=shlex.join(["otprop", *arguments]),
                    progress=progress,
                )
    if options.dry_run:
        if not options.quiet:
            write_error(f"{options.file}: {n_files} files, {n_rows} rows; the results would go to {options.output}.")
        if options.json:
            write_json({"input": options.file, "output": options.output, "files": n_files, "rows": n_rows})
        return 0
    if options.save is not None:
        _copy_model(result, options)
    return _report(result, options, notes)


def run_predict(options: argparse.Namespace) -> int:
    """Label the files of a folder by a saved model; returns the exit status."""
    if options.jobs == 0:
        raise UsageError("--jobs 0: give the number of processes, at least 1; or -1 for all.")
    from otprop.dask._folder import predict_folder

    folder = _folder(options)
    with bar(quiet=options.quiet) as progress, _client(options) as client:
        models = {"text_model": options.text_model, "image_model": options.image_model}
        result = predict_folder(folder, str(options.model), client, **models, progress=progress)
    return _report(result, options)


def _folder(options: argparse.Namespace, fill: bool = False) -> FolderRequest:
    from otprop.dask._folder import FolderRequest
    from otprop.labelling.output_columns import OutputColumns

    options.interrupted = INTERRUPTED
    output = OutputColumns(options.prefix, fill, options.probabilities)
    return FolderRequest(
        options.file, options.output, output, options.excel_safe, options.force, reading_options(options), error_text
    )


@contextmanager
def _client(options: argparse.Namespace) -> Iterator[Any]:
    """A client of the cluster that was named, or of a new one of this machine's processes, which ends with it."""
    from otprop.dask import require_dask

    require_dask()
    from otprop.dask._cluster import close_client, connect, local_client

    if options.scheduler is not None:
        with connect(options.scheduler) as client:
            yield client
        return
    jobs = getattr(options, "jobs", None)
    client = local_client(jobs if jobs is not None and jobs > 0 else None)
    try:
        yield client
    finally:
        close_client(client)


def _copy_model(result: FolderResult, options: argparse.Namespace) -> None:
    from otprop.files import write_atomic

    content = result.state.model.read_bytes()
    if not (options.save.is_file() and options.save.read_bytes() == content):  # an earlier run may have kept it
        write_atomic(options.save, content, options.force, mode_like=result.state.model)


def _report(result: FolderResult, options: argparse.Namespace, notes: Sequence[str] = ()) -> int:
    """Say what was done; the exit status."""
    from otprop.cli.console import Messages

    messages = Messages(quiet=options.quiet)
    notes = [hint_text(note) for note in (*notes, *result.notes)]
    messages.notes(notes)
    more = [getattr(options, name, None) for name in ("report", "save")]
    messages.folder(result, options.output, [str(path) for path in more if path is not None])
    if options.json:
        write_json({**_summary(result, options), "notes": notes, "seconds": round(result.seconds, 3)})
    for name, reason in result.failures.items():
        write_error(f"otprop {options.command}: {name} was not labelled: {reason}.")
    return FAILED if result.failures else 0


def _summary(result: FolderResult, options: argparse.Namespace) -> dict[str, Any]:
    from otprop.cli.console import coverage_list

    tally = result.tally
    each = zip(result.classes, tally.given, tally.labeled, strict=True)
    return {
        "input": options.file,
        "output": options.output,
        "model": str(result.state.model) if result.summary else str(options.model),
        "report": None if (page := getattr(options, "report", None)) is None else os.fspath(page),
        "files": result.n_files,
        "files_done_before": result.n_before,
        "failed": result.failures,
        "rows": tally.n_rows,
        "given": sum(tally.given),
        "labelled": sum(tally.labeled),
        "abstained": tally.abstained,
        "landmarks": result.summary.get("landmarks"),
        "expected_error": result.expected_error,
        "expected_error_range": result.error_range,
        "classes": {name: {"given": given, "labelled": found} for name, given, found in each},
        "coverage": coverage_list(result.coverage() if result.error is not None else []),
    }
