"""Time and memory of `OTP()` against the number of rows: Covertype, and clusters made for the purpose.

    python benchmarks/scale.py                       both, from 10 000 rows to all there are
    python benchmarks/scale.py --rows 10000 20000    these numbers of rows
    python benchmarks/scale.py --out FOLDER          not to benchmarks/results

Each fit runs in a process of its own, so that its peak memory can be told, with 0.1 % of the labels (at least 10 a
class). Label spreading on the exact neighbour graph is run beside it up to 50 000 rows. Covertype is left out where it
is not on this machine. A line a fit goes to scale.csv as soon as it is done; run again, it goes on with what is
missing. The exponents fitted through the lines are printed, and the plot is scale.png beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors

from common import RESULTS, argument_parser, commit, peak_megabytes, read_csv, reset_peak_memory, write_csv
from otprop import OTP
from otprop.geometry.diffusion import DiffusionGraph
from otprop.geometry.neighbors import Neighbors
from otprop_paper import datasets

FILE = "scale.csv"
SIZES = {
    "covtype": (10_000, 30_000, 100_000, 300_000, 581_012),
    "clusters": (10_000, 30_000, 100_000, 300_000, 1_000_000),
}
FEATURES, CENTRES, CLASSES = 64, 40, 8
EXACT_UP_TO = 50_000


def table(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The first rows of a random order of Covertype, or as many made in clusters, several to a class."""
    if name == "clusters":
        X, centre = make_blobs(n_rows, FEATURES, centers=CENTRES, cluster_std=4.0, random_state=0)
        return X.astype(np.float64), centre % CLASSES
    data = datasets.prepare(datasets.load("covtype"))
    chosen = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
    return data.X[chosen], data.y[chosen]


def labelled(y: np.ndarray) -> np.ndarray:
    """Labels of one row in a thousand, at least 10 a class on average and one of each."""
    rng = np.random.default_rng(0)
    n_labels = max(len(y) // 1000, 10 * (int(y.max()) + 1))
    order = rng.permutation(len(y))
    _, first = np.unique(y[order], return_index=True)
    chosen = np.unique(np.concatenate([order[first], order[:n_labels]]))
    codes = np.full(len(y), -1)
    codes[chosen] = y[chosen]
    return codes


def one(name: str, n_rows: int) -> dict[str, object]:
    """Fit once, progress shown; peak memory is that of this process from where the table is loaded."""
    X, y = table(name, n_rows)
    codes = labelled(y)
    before = reset_peak_memory()
    start = time.perf_counter()
    model = OTP(verbose=1).fit(X, codes)
    seconds = time.perf_counter() - start
    peak = peak_megabytes()
    hidden = codes == -1
    line: dict[str, object] = {
        "data": name,
        "rows": n_rows,
        "features": X.shape[1],
        "labels": int((~hidden).sum()),
        "seconds": f"{seconds:.1f}",
        "gigabytes": f"{peak / 1024:.3f}",
        "gigabytes_before": f"{before / 1024:.3f}",
        "accuracy": f"{(model.transduction_ == y)[hidden].mean():.4f}",
        "rounds": len(model.rounds_),
        "exact_spreading": "",
    }
    if n_rows <= EXACT_UP_TO:
        line["exact_spreading"] = f"{exact_spreading(X, y, codes):.4f}"
    line["commit"] = commit()
    return line


def exact_spreading(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> float:
    """Accuracy of label spreading over the exact graph of 10 neighbours, strength 0.95."""
    distances, indices = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X).kneighbors()
    masses = np.zeros((len(y), int(y.max()) + 1))
    given = np.flatnonzero(codes >= 0)
    masses[given, codes[given]] = 1.0
    found = (
        DiffusionGraph.from_neighbors(Neighbors(indices.astype(np.int32), distances), 10)
        .solve(masses, 0.95)
        .values.argmax(axis=1)
    )
    return float((found == y)[codes < 0].mean())


def report(lines: list[dict[str, str]], folder: Path) -> None:
    """Exponents of time and memory, and the plot."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for name in dict.fromkeys(line["data"] for line in lines):
        of = sorted((line for line in lines if line["data"] == name), key=lambda line: int(line["rows"]))
        rows = np.array([int(line["rows"]) for line in of])
        for axes, key in ((left, "seconds"), (right, "gigabytes")):
            values = np.array([float(line[key]) for line in of])
            label = name
            if len(rows) > 1:
                slope = np.polyfit(np.log(rows), np.log(values), 1)[0]
                label = f"{name}, exponent {slope:.2f}"
                print(f"{name}: {key} grow with the power {slope:.2f} of the rows")
            axes.loglog(rows, values, "o-", label=label)
            axes.set(xlabel="rows", ylabel=key)
            axes.legend()
    figure.savefig(folder / "scale.png", dpi=110)


def in_its_own_process(name: str, n_rows: int) -> dict[str, object]:
    """A line; progress and warnings of the fit go to the terminal."""
    command = [sys.executable, str(Path(__file__)), "--one", name, str(n_rows)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        sys.exit(f"{name}, {n_rows} rows: ended with the code {found.returncode}, see above.")
    return json.loads(found.stdout.splitlines()[-1])


def is_there(name: str) -> bool:
    """Whether a table can be had; a word where it cannot."""
    try:
        datasets.load("covtype") if name == "covtype" else None
    except FileNotFoundError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--rows", nargs="+", type=int, help="default: 10 000 to all, or to a million")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", nargs=2, metavar=("DATA", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]))))
        return
    lines: list[dict[str, object]] = list(read_csv(FILE, options.out))
    done = {(line["data"], int(str(line["rows"]))) for line in lines}
    for name in filter(is_there, options.data):
        for n_rows in options.rows or SIZES[name]:
            if (name, n_rows) not in done:
                lines.append(in_its_own_process(name, n_rows))
                write_csv(FILE, lines, options.out)
                print(lines[-1], flush=True)
    if lines:
        report([{key: str(value) for key, value in line.items()} for line in lines], options.out)


if __name__ == "__main__":
    main()
