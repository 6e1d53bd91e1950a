"""The command `otprop-paper`: the paper's experiment, run here."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from otprop import __version__
from otprop.cli._streams import bar
from otprop_paper import datasets
from otprop_paper._print import print_tables
from otprop_paper.benchmark.estimate import estimate
from otprop_paper.benchmark.methods import METHODS, find_method
from otprop_paper.benchmark.output import Origin, csv_text, markdown_text, write_files
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import LABEL_DRAWS, N_SPLITS, PERCENTS
from otprop_paper.benchmark.run import BenchmarkResult, check_plan, load_datasets, run
from otprop_paper.benchmark.store import Store, StoreError
from otprop_paper.benchmark.tasks import Plan
from otprop_paper.report.page import make_benchmark_page

PROG = "otprop-paper"

QUICK_DATASETS = ("iris", "wine")
QUICK_METHODS = tuple(name for name in METHODS if name not in ("self-logistic", "self-trees"))
QUICK_PERCENTS = (5.0, 25.0)
QUICK_SPLITS = 2

_EXAMPLE = """\
example:
  otprop-paper --quick                          two minutes, on what scikit-learn carries
  otprop-paper --tuning honest oracle --jobs 2  the paper's whole experiment, hours
  otprop-paper --datasets my.csv --methods otp ls trees --percent 5 20

A killed run goes on where it stopped: give the same command again.
"""


class _UsageError(ValueError):
    """The command cannot be run as given; nothing was run."""


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog=PROG,
        usage=f"{PROG} [--quick] [options]",
        description=_EXAMPLE,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=110),
    )
    add = parser.add_argument
    add("--version", action="version", version=f"otprop {__version__}")
    add("--datasets", nargs="+", metavar="NAME", help="names or files (CSV, Parquet, NPZ); default: the paper's seven")
    add("--target", metavar="COLUMN", help="the classes of a file; default: target, label, class or y, else the last")
    add("--methods", nargs="+", metavar="NAME", help=f"default: all of {', '.join(METHODS)}")
    add("--percent", nargs="+", type=float, metavar="P", help="shares of labels; default: 5 15 25 35")
    add("--splits", type=int, metavar="N", help="draws of labels per share; default: 10")
    add("--labels", choices=LABEL_DRAWS, default="stratified", help="how labels are drawn; default: stratified")
    add("--tuning", nargs="+", choices=("honest", "oracle"), default=["honest"], help="one or both; default: honest")
    add("--jobs", type=int, default=2, metavar="N", help="processes; default: 2")
    add("--out", type=Path, default=Path("benchmark-results"), metavar="DIR", help="default: benchmark-results")
    add("--quick", action="store_true", help="small data sets, two shares, two splits, no self-training")
    add("--full", action="store_true", help="never thin a method's splits or grid on large data sets")
    add("--download", action="store_true", help="fetch data sets that are not on this machine")
    add("--estimate", action="store_true", help="estimate the run time from a timed sample; runs nothing else")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process.

    Returns 0 when done, 1 where a result could not be saved, 2 where nothing could be run, 130 when interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return run_command(make_parser().parse_args(given), given)
    except SystemExit as stop:  # argparse has printed its message
        return int(stop.code or 0)
    except KeyboardInterrupt:
        sentence, status = "interrupted. Finished results are saved: the same command goes on from here.", 130
    except _UsageError as error:
        sentence, status = str(error), 2
    except OSError as error:
        sentence, status = str(error), 1
    sys.stderr.write(f"{PROG}: {sentence}\n")
    return status


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Check everything, run what is missing, print the tables and write the files."""
    plan, data = _prepare(options)
    with _open(options.out) as store:
        if options.estimate:
            sys.stdout.write(estimate(plan, data, store, options.jobs))
            return 0
        with bar() as show:
            result = run(plan, data, store, n_jobs=options.jobs, progress=show)
        origin = Origin(
            f"{PROG} {shlex.join(arguments)}",
            __version__,
            _commit(),
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            _effort(result),
        )
        paths = [path for tuning in plan.tunings for path in _write(options.out, result, tuning, origin)]
    for tuning in plan.tunings:
        sys.stdout.write(f"\n{_heading(plan, tuning)}\n\n")
        sys.stdout.flush()
        print_tables(result.rows[tuning])
    sys.stdout.write("\n" + "".join(f"written: {path}\n" for path in paths))
    return 0


def _open(folder: Path) -> Store:
    try:
        return Store(folder)
    except StoreError as error:
        raise _UsageError(str(error)) from error


def _prepare(options: argparse.Namespace) -> tuple[Plan, list[PreparedData]]:
    """The plan and its data; a _UsageError where they cannot be run."""
    quick = options.quick
    names = options.datasets or (QUICK_DATASETS if quick else datasets.names("paper"))
    percents = tuple(options.percent or (QUICK_PERCENTS if quick else PERCENTS))
    n_splits = options.splits if options.splits is not None else (QUICK_SPLITS if quick else N_SPLITS)
    try:
        names_of_methods = options.methods or (QUICK_METHODS if quick else METHODS)
        methods = tuple(dict.fromkeys(find_method(name).name for name in names_of_methods))
        if options.jobs < 1:
            raise ValueError(f"--jobs must be at least 1, got {options.jobs}.")
        tunings = tuple(dict.fromkeys(options.tuning))
        plan = Plan(
            methods, tuple(map(float, dict.fromkeys(percents))), n_splits, options.labels, tunings, options.full
        )
        check_plan(plan)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            data = load_datasets(dict.fromkeys(names), plan, options.download, options.target)
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise _UsageError(str(error)) from error
    for warning in caught:
        sys.stderr.write(f"{PROG}: {warning.message}\n")
    return plan, data


def _effort(result: BenchmarkResult) -> str:
    """Number of labelled tables and time of a run, resumed runs included."""
    hours = result.seconds / 3600
    took = f"{hours:.1f} hours" if hours >= 1 else f"{result.seconds / 60:.1f} minutes"
    return f"{result.labelings:,} tables labelled in {took} of one core, for all ways of tuning together"


def _write(folder: Path, result: BenchmarkResult, tuning: str, origin: Origin) -> list[Path]:
    rows, heading = result.rows[tuning], _heading(result.plan, tuning)
    texts = {
        "csv": csv_text(rows, origin),
        "md": markdown_text(rows, origin, heading),
        "html": make_benchmark_page(rows, origin, heading, _about(result.plan, tuning)),
    }
    return write_files(folder, f"{result.plan.labels}-{tuning}", texts)


def _heading(plan: Plan, tuning: str) -> str:
    return f"Label propagation compared: {tuning} tuning, {plan.labels} labels"


def _about(plan: Plan, tuning: str) -> str:
    chosen = {
        "honest": "Parameters were chosen by hiding part of the given labels; the true classes of the other rows were "
        "not looked at.",
        "oracle": "Parameters were chosen by the true classes, one choice per data set and percentage on the mean NMI: "
        "an upper bound that no user can reach, and what the paper did for sigma.",
    }[tuning]
    drawn = {
        "stratified": "with the class shares of the data",
        "random": "at random, at least one of each class",
        "equal": "with the same number of each class",
    }[plan.labels]
    return f"{chosen} Labels were drawn {drawn}, {plan.n_splits} times per share, the same for every method."


def _commit() -> str:
    """The commit of the source checkout; empty where there is none."""
    here = Path(__file__).resolve().parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip() if found.returncode == 0 and (here.parents[2] / ".git").exists() else ""
