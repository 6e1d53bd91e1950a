"""Whether the solver reaches its tolerance in every round of `PaperOTP` on the paper's seven data sets.

Writes a line a cell to benchmarks/results/convergence.csv as soon as it is done; run again, it goes on with the
cells that are missing. Digits and MNIST are followed for 20 rounds, the others to the end.
"""

from __future__ import annotations

import time
import warnings

from sklearn.exceptions import ConvergenceWarning

from common import (
    PAPER_DATASETS,
    PERCENTAGES,
    argument_parser,
    commit,
    load,
    nearest_neighbor_cost,
    partly_labelled,
    read_csv,
    write_csv,
)
from otprop import PaperOTP

FACTORS = (0.01, 0.1, 1.0, 10.0)
ROUND_LIMIT = {"digits": 20, "mnist10k": 20}
FILE = "convergence.csv"


def cell(name: str, percent: int, factor: float) -> dict[str, object]:
    X, y = load(name)
    epsilon = factor * nearest_neighbor_cost(X)
    limit = ROUND_LIMIT.get(name)
    model = PaperOTP(epsilon=epsilon, alpha=0.9)
    if limit is not None:
        model.set_params(callback=lambda round_: round_.number >= limit)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted below
        model.fit(X, partly_labelled(y, percent, seed=0))
    rounds = model.rounds_
    return {
        "dataset": name,
        "percent": percent,
        "epsilon_over_nn": factor,
        "epsilon": f"{epsilon:.6g}",
        "rounds": len(rounds),
        "finished": bool((model.round_ >= 0).all()),
        "rounds_converged": sum(round_.converged for round_ in rounds),
        "largest_source_error": f"{max(round_.source_error for round_ in rounds):.2e}",
        "largest_target_error": f"{max(round_.target_error for round_ in rounds):.2e}",
        "iterations": sum(round_.iterations for round_ in rounds),
        "most_iterations": max(round_.iterations for round_ in rounds),
        "seconds": f"{time.perf_counter() - start:.2f}",
        "commit": commit(),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=PAPER_DATASETS, choices=PAPER_DATASETS)
    parser.add_argument("--fresh", action="store_true", help="forget the cells of an earlier run")
    options = parser.parse_args()
    rows: list[dict[str, object]] = [] if options.fresh else list(read_csv(FILE))
    done = {(row["dataset"], str(row["percent"]), str(row["epsilon_over_nn"])) for row in rows}
    for name in options.datasets:
        for percent in PERCENTAGES:
            for factor in FACTORS:
                if (name, str(percent), str(factor)) in done:
                    continue
                rows.append(cell(name, percent, factor))
                write_csv(FILE, rows)
                print(*rows[-1].values(), flush=True)
    missed = [row for row in rows if str(row["rounds"]) != str(row["rounds_converged"])]
    print(f"{len(rows)} cells, {len(rows) - len(missed)} of them converged in every round")


if __name__ == "__main__":
    main()
