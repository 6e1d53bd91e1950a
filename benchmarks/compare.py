"""Whether the present code gives the committed results: a sample of cells is run again and compared.

    python benchmarks/compare.py                          a few minutes on one core
    python benchmarks/compare.py --datasets iris --splits 1

The cells are from default.csv (`OTP()` and its limit) and paper/stratified-honest.csv (methods with the parameters
chosen there, scored by the truth and by hidden labels) in benchmarks/results. Figures that differ by more than the
tolerance are printed, and the exit status is then 1. Other versions of NumPy, SciPy or scikit-learn may need a larger
tolerance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import default
from common import RESULTS, argument_parser, read_csv
from otprop_paper import datasets
from otprop_paper.benchmark.methods import find_method
from otprop_paper.benchmark.output import read_csv as read_results
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import Cell
from otprop_paper.benchmark.tasks import HIDDEN, TRUTH, CellTask, run_task

DATASETS = ("iris", "heart", "dermatology")
PERCENTAGES = (5, 15)
METHODS = ("otp", "otp-paper", "ls", "trees")
SCORES = tuple(f"{score}_{where}" for score in ("nmi", "ari", "accuracy") for where in ("unlabelled", "all"))
NOT_COMPARED = ("dataset", "labels", "percent", "split", "weights", "seconds", "commit")

Difference = tuple[str, str, float, float]  # cell, column, committed, present


def is_close(committed: float, present: float, tolerance: float) -> bool:
    """Equal within the tolerance; two missing figures are equal."""
    return abs(committed - present) <= tolerance or (math.isnan(committed) and math.isnan(present))


def compare_default(name: str, percent: int, split: int) -> Iterator[Difference]:
    """The figures of a cell of default.csv, committed and present; the file has four decimals."""
    [row] = [
        row
        for row in read_csv(default.FILE)
        if (row["dataset"], row["labels"], row["percent"], row["split"])
        == (name, "stratified", str(percent), str(split))
    ]
    present = default.run(name, "stratified", percent, split)
    for column in row:
        if column not in NOT_COMPARED:
            values = (float(str(value) or "nan") for value in (row[column], present[column]))
            yield f"default {name} {percent} % split {split}", column, *values


def compare_method(name: str, percent: int, split: int, method: str) -> Iterator[Difference]:
    """The scores of a method in a cell of stratified-honest.csv, committed and present."""
    data = PreparedData.from_dataset(datasets.load(name))
    [row] = [
        row
        for row in read_results(RESULTS / "paper" / "stratified-honest.csv")
        if (row["dataset"], row["method"], row["percent"], row["split"]) == (name, method, percent, split)
    ]
    kinds = (TRUTH, HIDDEN) if row["chosen_by"] == "hidden labels" else (TRUTH,)
    draws = find_method(method).setting(name, len(data.y)).draws
    task = CellTask(method, (row["params"],), (Cell(float(percent), split),), kinds, draws, data)
    found = {key["kind"]: value for key, value in run_task(task)}
    present = {score: found[TRUTH][score] for score in SCORES}
    present["ece"] = found[TRUTH].get("reliability", {}).get("ece", math.nan)
    present["hidden_score"] = found[HIDDEN]["accuracy"] if HIDDEN in kinds else math.nan
    for column, value in present.items():
        yield f"{method} {name} {percent} % split {split}", column, row[column], value


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--percent", nargs="+", type=int, default=PERCENTAGES)
    parser.add_argument("--splits", type=int, default=2, help="the first N; default: 2")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    options = parser.parse_args()
    n_figures = n_different = 0
    for name in options.datasets:
        for percent in options.percent:
            for split in range(options.splits):
                cells = [compare_default(name, percent, split)]
                cells += [compare_method(name, percent, split, method) for method in options.methods]
                for where, column, committed, present in (figure for cell in cells for figure in cell):
                    n_figures += 1
                    if not is_close(committed, present, options.tolerance):
                        n_different += 1
                        print(f"{where}, {column}: committed {committed:.10g}, present {present:.10g}", flush=True)
            print(f"{name} {percent} %: compared", flush=True)
    print(f"{n_different} of {n_figures} figures differ by more than {options.tolerance:g}")
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
