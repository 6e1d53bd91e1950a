"""Many classes: CPU seconds, peak memory and accuracy of `OTP()` as the number of classes grows.

    python benchmarks/many_classes.py                                all sizes, each in a process of its own
    python benchmarks/many_classes.py --rows 10000 --classes 100     one size

Blobs with 20 features, well separated, 5 labels a class. Writes benchmarks/results/many_classes.csv. Doubling the
classes should at most double the time and the memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from common import argument_parser, peak_megabytes, reset_peak_memory, write_csv
from otprop import OTP

SIZES = ((10_000, 100), (10_000, 300), (10_000, 600), (100_000, 1000))
N_FEATURES = 20
LABELS_PER_CLASS = 5
CENTRE_SPREAD = 3.0  # standard deviation of the centres, in those of a blob


def blobs(n_rows: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their classes, and the same with -1 for all but a few labels of each class."""
    rng = np.random.default_rng(seed)
    centres = CENTRE_SPREAD * rng.normal(size=(n_classes, N_FEATURES))
    y = rng.permutation(np.arange(n_rows) % n_classes)
    X = centres[y] + rng.normal(size=(n_rows, N_FEATURES))
    codes = np.full(n_rows, -1)
    for code in range(n_classes):
        rows = np.flatnonzero(y == code)[:LABELS_PER_CLASS]
        codes[rows] = code
    return X, y, codes


def run(n_rows: int, n_classes: int) -> dict[str, object]:
    """One fit."""
    X, y, codes = blobs(n_rows, n_classes)
    before = reset_peak_memory()
    start, cpu = time.perf_counter(), time.process_time()
    model = OTP().fit(X, codes)
    return {
        "rows": n_rows,
        "classes": n_classes,
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "megabytes": round(peak_megabytes() - before),
        "rounds": len(model.rounds_),
        "accuracy": round(float((model.transduction_ == y)[codes < 0].mean()), 4),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--classes", type=int)
    options = parser.parse_args()
    if options.rows and options.classes:
        print(json.dumps(run(options.rows, options.classes)))
        return
    lines = []
    for n_rows, n_classes in SIZES:
        command = [sys.executable, __file__, "--rows", str(n_rows), "--classes", str(n_classes)]
        lines.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(lines[-1], flush=True)
        write_csv("many_classes.csv", lines)


if __name__ == "__main__":
    main()
