"""Time and memory of `OTP()` against the number of rows: Covertype, and clusters made for the purpose.

    python benchmarks/scale.py                 both, from 10 000 rows to all there are
    python benchmarks/scale.py --most 100000   no more than so many

Each fit runs in a process of its own, so that its peak memory can be told, with 0.1 % of the labels (at least 10 a
class). Label spreading on the exact neighbour graph is run beside it up to 50 000 rows. A line a fit goes to
benchmarks/results/scale.csv, the exponents fitted through them are printed, and the plot is scale.png beside it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from common import RESULTS, commit, read_csv, write_csv
from otprop import OTP, datasets
from otprop.geometry.diffusion import DiffusionGraph
from otprop.geometry.neighbors import NeighborIndex

FILE = "scale.csv"
SIZES = (10_000, 30_000, 100_000, 300_000, 581_012, 1_000_000)
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
    """Fit once; peak memory is that of this process."""
    X, y = table(name, n_rows)
    codes = labelled(y)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = OTP().fit(X, codes)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hidden = codes == -1
    line: dict[str, object] = {
        "data": name,
        "rows": n_rows,
        "features": X.shape[1],
        "labels": int((~hidden).sum()),
        "seconds": f"{seconds:.1f}",
        "gigabytes": f"{peak / 2**20:.2f}",
        "gigabytes_before": f"{before / 2**20:.2f}",
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
    from sklearn.neighbors import NearestNeighbors

    distances, indices = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(X).kneighbors(X)
    exact = NeighborIndex(X).graph(10)
    exact = type(exact)(
        indices[:, 1:].astype(exact.indices.dtype), distances[:, 1:].astype(exact.distances.dtype), True, 1.0
    )
    masses = np.zeros((len(y), int(y.max()) + 1))
    given = np.flatnonzero(codes >= 0)
    masses[given, codes[given]] = 1.0
    found = DiffusionGraph.from_neighbors(exact, 10).solve(masses, 0.95).values.argmax(axis=1)
    return float((found == y)[codes < 0].mean())


def report(lines: list[dict[str, str]]) -> None:
    """Exponents of time and memory, and the plot."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for name in dict.fromkeys(line["data"] for line in lines):
        of = sorted((line for line in lines if line["data"] == name), key=lambda line: int(line["rows"]))
        rows = np.array([int(line["rows"]) for line in of])
        for axes, key in ((left, "seconds"), (right, "gigabytes")):
            values = np.array([float(line[key]) for line in of])
            slope = np.polyfit(np.log(rows), np.log(values), 1)[0] if len(rows) > 1 else np.nan
            axes.loglog(rows, values, "o-", label=f"{name}, exponent {slope:.2f}")
            axes.set(xlabel="rows", ylabel=key)
            axes.legend()
            print(f"{name}: {key} grow with the power {slope:.2f} of the rows")
    figure.savefig(RESULTS / "scale.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["covtype", "clusters"], choices=["covtype", "clusters"])
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--one", nargs=2, metavar=("DATA", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]))))
        return
    lines: list[dict[str, object]] = list(read_csv(FILE))
    done = {(line["data"], int(str(line["rows"]))) for line in lines}
    for name in options.data:
        for n_rows in SIZES:
            whole = n_rows == 581_012
            if n_rows > options.most or (name, n_rows) in done:
                continue
            if (name == "covtype" and n_rows > 581_012) or (name == "clusters" and whole):
                continue
            command = [sys.executable, str(Path(__file__)), "--one", name, str(n_rows)]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            if found.returncode:
                sys.exit(f"{name}, {n_rows} rows:\n{found.stderr}")
            lines.append(json.loads(found.stdout.splitlines()[-1]))
            write_csv(FILE, lines)
            print(lines[-1], flush=True)
    report([{key: str(value) for key, value in line.items()} for line in lines])


if __name__ == "__main__":
    main()
