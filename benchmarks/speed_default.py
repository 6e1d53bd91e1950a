"""How long `OTP()` takes, everything automatic, all sources included: Iris, Digits, small made-up tables, and MNIST.

All methods may use all processors. The made-up tables have 3 000 and 10 000 rows of 20 numbers; MNIST is its first
20 000 and all 70 000 images with 1 % of the labels. Scikit-learn's ``LabelSpreading(kernel="knn")`` labels the same in
the same run, and GraphLearning's graph and Laplace learning label MNIST too where it is installed. Each time is the
best of three, that of MNIST is one run. Writes benchmarks/results/speed_default.csv. Machines are noisy: read the
column "times".
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from common import argument_parser, partly_labelled, write_csv
from otprop import OTP
from otprop_paper import datasets


def timed(fit: Callable[[np.ndarray, np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray, percent: float) -> dict:
    codes = partly_labelled(y, percent, seed=0)
    start = time.perf_counter()
    found = fit(X, codes)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "accuracy": float((found == y)[codes < 0].mean())}


def otp(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return OTP(n_jobs=-1).fit(X, codes).transduction_


def spreading(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.asarray(LabelSpreading(kernel="knn", n_jobs=-1).fit(X, codes).transduction_)


def graph_learning(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    import graphlearning

    known = np.flatnonzero(codes >= 0)
    graph = graphlearning.weightmatrix.knn(X, 10)
    return np.asarray(graphlearning.ssl.laplace(graph).fit_predict(known, codes[known]))


def best_of_three(fit: Callable[[np.ndarray, np.ndarray], np.ndarray], *data: Any) -> dict:
    return min((timed(fit, *data) for _ in range(3)), key=lambda line: line["seconds"])


def made_up(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty numbers per row; three classes of two overlapping clusters each."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 6, n_rows)
    return rng.normal(size=(6, 20))[cluster] + rng.normal(size=(n_rows, 20)), cluster % 3


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--small", action="store_true", help="without MNIST")
    options = parser.parse_args()
    lines = []
    for name in ("iris", "digits"):
        data = datasets.prepare(datasets.load(name))
        for percent in (5, 35):
            line = best_of_three(otp, data.X, data.y, percent)
            lines.append({"data": name, "percent": percent, "method": "OTP()"} | line)
    methods = {"OTP()": otp, "LabelSpreading(kernel='knn')": spreading}
    for n_rows, percent in ((3000, 3), (10_000, 1)):
        for method, fit in methods.items():
            line = best_of_three(fit, *made_up(n_rows), percent)
            lines.append({"data": f"made up {n_rows}", "percent": percent, "method": method} | line)
    if not options.small:
        data = datasets.prepare(datasets.load("mnist70k"))
        if all(map(importlib.util.find_spec, ("graphlearning", "annoy"))):  # the second finds its neighbours
            methods["GraphLearning, graph and Laplace"] = graph_learning
        for name, n_rows in (("mnist20k", 20_000), ("mnist70k", 70_000)):
            for method, fit in methods.items():
                X, y = data.X[:n_rows], data.y[:n_rows]
                lines.append({"data": name, "percent": 1, "method": method} | timed(fit, X, y, 1))
                print(lines[-1], flush=True)
    ours = {(line["data"], line["percent"]): line["seconds"] for line in lines if line["method"] == "OTP()"}
    for line in lines:
        line["times"] = f"{line['seconds'] / ours[line['data'], line['percent']]:.2f}"
        line["seconds"], line["accuracy"] = f"{line['seconds']:.2f}", f"{line['accuracy']:.4f}"
        print(line)
    write_csv("speed_default.csv", lines)


if __name__ == "__main__":
    main()
