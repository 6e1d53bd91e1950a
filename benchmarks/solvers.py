"""The plan of the first round by every solver: ours, those of POT, and RegOT where it is installed.

    pip install --no-deps regot
    python benchmarks/solvers.py [--datasets digits] [--limit 15]

The problems are those of speed.py. The tolerance is 1e-6 for the L1 error of both marginals; a solver that does not
reach it gets the iterations that should take `--limit` seconds, and its error is in the table. Writes
benchmarks/results/solvers.csv.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import ot

from common import argument_parser, load, nearest_neighbor_cost, partly_labelled, write_csv
from otprop.transport import sinkhorn
from speed import POT_SOLVERS, TOL, Outcome, pot_plan

REGOT_SOLVERS = ("ssns", "splr", "lbfgs_dual")
PROBE = 5  # iterations by which the time of one is measured


def our_plan(cost: np.ndarray, epsilon: float) -> Outcome:
    a, b = np.full(len(cost), 1 / len(cost)), np.full(cost.shape[1], 1 / cost.shape[1])
    start = time.perf_counter()
    result = sinkhorn(cost, a, b, epsilon, tol=TOL)
    plan = result.plan()
    return outcome(plan, time.perf_counter() - start)


def outcome(plan: np.ndarray, seconds: float) -> Outcome:
    rows, columns = plan.shape
    error = max(np.abs(plan.sum(axis=1) - 1 / rows).sum(), np.abs(plan.sum(axis=0) - 1 / columns).sum())
    return Outcome(plan, seconds, error if np.isfinite(error) else np.inf)


def regot_plan(cost: np.ndarray, epsilon: float, method: str, limit: float) -> Outcome:
    """A run of a RegOT solver to the tolerance, or what it has after about `limit` seconds."""
    import regot

    solve = getattr(regot, f"sinkhorn_{method}")
    a, b = np.full(len(cost), 1 / len(cost)), np.full(cost.shape[1], 1 / cost.shape[1])
    matrix = np.asfortranarray(cost)

    def run(threshold: float, max_iter: int) -> Outcome:
        start = time.perf_counter()
        plan = np.asarray(solve(matrix, a, b, epsilon, tol=threshold, max_iter=max_iter).plan)
        return outcome(plan, time.perf_counter() - start)

    probe = run(TOL, PROBE)
    if probe.reached:
        return probe
    max_iter = int(np.clip(PROBE * limit / max(probe.seconds, 1e-3), PROBE, 100_000))
    found = run(TOL / np.sqrt(len(a)), max_iter)  # it stops by a norm of the gradient
    if not found.reached and found.seconds < 0.5 * limit:
        found = run(0.1 * TOL / np.sqrt(len(a)), max_iter)
    return found


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["digits", "mnist10k"])
    parser.add_argument("--limit", type=float, default=15.0, help="seconds after which a solver is stopped")
    options = parser.parse_args()
    solvers: dict[str, Callable[[np.ndarray, float], Outcome]] = {"otprop": our_plan}
    for name in POT_SOLVERS:
        solvers[f"POT {name}"] = partial(pot_plan, method=name, limit=options.limit)
    if importlib.util.find_spec("regot"):
        for name in REGOT_SOLVERS:
            solvers[f"RegOT {name}"] = partial(regot_plan, method=name, limit=options.limit)
    rows = []
    for dataset in options.datasets:
        X, truth = load(dataset)
        near = nearest_neighbor_cost(X)
        for percent in (5, 35):
            y = partly_labelled(truth, percent, seed=0)
            cost = ot.dist(X[y != -1], X[y == -1])
            for factor in (0.1, 1.0):
                for name, solve in solvers.items():
                    found = solve(cost, factor * near)
                    rows.append(
                        {
                            "dataset": dataset,
                            "percent": percent,
                            "epsilon_over_nn": factor,
                            "solver": name,
                            "seconds": f"{found.seconds:.3f}",
                            "error": f"{found.error:.1e}",
                            "reached": bool(found.reached),
                        }
                    )
                    print(rows[-1], flush=True)
                    write_csv("solvers.csv", rows)


if __name__ == "__main__":
    main()
