"""A fit again with ten more labels, everything else kept, beside a fresh fit: `make refit`.

    python benchmarks/refit.py [--only NAME ...]

For each table: a fit with `warm_start=True`, ten more labels, the fit again, and a fresh fit with the same labels, on
two threads. CPU seconds of all threads and wall seconds; both fits must agree exactly.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from common import argument_parser, load, read_csv, write_csv
from otprop import OTP
from otprop.table.features import Features

N_LABELS, N_MORE = 100, 10
FLOORS = {"mixed 3 000": 0.5, "20 000 x 50": 2.0, "MNIST 70 000": 8.0}  # seconds on two cores


def mixed() -> tuple[Any, np.ndarray]:
    """Features of a table of numbers, words and dates, as `otprop label` makes them."""
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    frame = pd.DataFrame({f"number{place}": y % (place + 2) + rng.normal(size=3000) for place in range(6)})
    for place in range(3):
        noise = np.where(rng.random(3000) < 0.6, y, rng.integers(0, 8, 3000))
        frame[f"word{place}"] = np.array(list("abcdefgh"))[noise]
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(30 * y + rng.integers(0, 60, 3000), unit="D")
    colours = ("red", "green", "blue", "grey")
    frame["note"] = [f"lot of {colours[code]} fruit {number % 50}" for number, code in enumerate(y)]
    return Features(list(frame)).fit_transform(frame), y


def classification() -> tuple[np.ndarray, np.ndarray]:
    """A table of numbers only."""
    X, y = make_classification(20_000, 50, n_informative=20, n_classes=5, n_clusters_per_class=2, random_state=0)
    return X, y


TABLES = {"mixed 3 000": mixed, "20 000 x 50": classification, "MNIST 70 000": lambda: load("mnist70k")}


def timed(model: OTP, X: Any, y: np.ndarray) -> tuple[float, float]:
    """CPU and wall seconds of a fit."""
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(X, y)
    return time.process_time() - cpu, time.perf_counter() - wall


def run(name: str) -> dict[str, Any]:
    """All fits of one table."""
    X, y = TABLES[name]()
    rows = np.random.default_rng(0).permutation(len(y))
    shown = np.full(len(y), -1)
    shown[rows[:N_LABELS]] = y[rows[:N_LABELS]]
    model = OTP(warm_start=True, n_jobs=2)
    timed(model, X, shown)
    more = rows[N_LABELS : N_LABELS + N_MORE]
    shown[more] = y[more]
    cpu, wall = timed(model, X, shown)
    fresh = OTP(n_jobs=2)
    fresh_cpu, fresh_wall = timed(fresh, X, shown)
    start = time.process_time()
    model.suggest(N_MORE)
    suggesting = time.process_time() - start
    numbers = {"refit_cpu": cpu, "fresh_cpu": fresh_cpu, "ratio": cpu / fresh_cpu, "refit": wall, "fresh": fresh_wall}
    return {
        "table": name,
        "rows": len(y),
        **{key: f"{value:.2f}" for key, value in numbers.items()},
        "floor": FLOORS[name],
        "suggest_cpu": f"{suggesting:.2f}",
        "equal": bool(np.array_equal(model.label_distributions_, fresh.label_distributions_)),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES))
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {row["table"]: dict(row) for row in read_csv("refit.csv")}
    for name in options.only:
        found[name] = run(name)
        print(found[name], flush=True)
        write_csv("refit.csv", [found[one] for one in TABLES if one in found])


if __name__ == "__main__":
    main()
