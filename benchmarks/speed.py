"""Time and memory of the paper's rounds beside the same rounds over POT, in one run.

For Digits and MNIST at 5 and 35 % labels and two epsilons: the first five rounds by `PaperOTP` and by the same loop
over the fastest of POT's solvers that reaches the tolerance in all of them, with the threshold of POT's own that
corresponds to it; the search for the fastest is not charged. A solver that needs longer than the limit is cut off and
its time and error stand as a lower bound. Then Iris, and the import. Writes benchmarks/results/speed*.csv.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import ot
from sklearn.datasets import load_iris

from common import (
    argument_parser,
    load,
    nearest_neighbor_cost,
    partly_labelled,
    peak_megabytes,
    reset_peak_memory,
    write_csv,
)
from otprop import OTP, PaperOTP
from otprop.propagation.row_rounds import RowLevelRounds
from otprop_paper.benchmark.released_code import algorithm1_rounds, as_printed

TOL, ALPHA, N_ROUNDS = 1e-6, 0.9, 5
POT_SOLVERS = ("sinkhorn", "sinkhorn_stabilized", "sinkhorn_log")


@dataclass
class Outcome:
    """A plan by POT: how long it took, its error, and whether that is within the tolerance."""

    plan: np.ndarray
    seconds: float
    error: float

    @property
    def reached(self) -> bool:
        return self.error <= TOL


def pot_plan(cost: np.ndarray, epsilon: float, method: str, limit: float) -> Outcome:
    """A run of a POT solver to the tolerance, or what it has after about `limit` seconds."""
    a, b = np.full(len(cost), 1 / len(cost)), np.full(cost.shape[1], 1 / cost.shape[1])

    def run(threshold: float, max_iter: int) -> Outcome:
        start = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            plan = ot.sinkhorn(a, b, cost, epsilon, method=method, stopThr=threshold, numItermax=max_iter)
        seconds = time.perf_counter() - start
        error = max(np.abs(plan.sum(axis=1) - a).sum(), np.abs(plan.sum(axis=0) - b).sum())
        return Outcome(plan, seconds, error if np.isfinite(error) else np.inf)

    probe = run(TOL, 20)
    if probe.reached:
        return probe
    max_iter = int(np.clip(20 * limit / max(probe.seconds, 1e-3), 20, 100_000))
    outcome = run(TOL / np.sqrt(len(b)), max_iter)  # POT stops by the L2 norm of one marginal
    if not outcome.reached and outcome.seconds < 0.5 * limit:
        outcome = run(0.1 * TOL / np.sqrt(len(b)), max_iter)
    return outcome


def pot_rounds(X: np.ndarray, y: np.ndarray, epsilon: float, method: str, limit: float) -> dict[str, object]:
    """The first rounds of Algorithm 1 over a POT solver, the cost computed in each as the authors do."""
    outcomes: list[Outcome] = []
    sizes: list[int] = []
    searching = 0.0

    def plan_of(cost: np.ndarray) -> np.ndarray:
        nonlocal searching
        start = time.perf_counter()
        outcomes.append(pot_plan(cost, epsilon, method, limit))
        searching += time.perf_counter() - start
        return outcomes[-1].plan

    start = time.perf_counter()
    steps = algorithm1_rounds(
        plan_of, lambda a, b: ot.dist(X[a], X[b]), y.copy(), lambda found: as_printed(found, ALPHA)
    )
    for step in islice(steps, N_ROUNDS):
        sizes.append(len(step.rows))
        if not outcomes[-1].reached:
            break
    rest = time.perf_counter() - start - searching  # runs that only look for POT's settings are not charged
    solving = sum(outcome.seconds for outcome in outcomes)
    errors = [outcome.error for outcome in outcomes]
    return {"solving": solving, "all": solving + rest, "error": max(errors), "labelled": sizes}


def fastest_rounds(X: np.ndarray, y: np.ndarray, epsilon: float, methods: list[str], limit: float) -> tuple[str, dict]:
    """The first of POT's solvers that gets through all rounds; the one with the most rounds if none does."""
    found: dict[str, dict] = {}
    for method in methods:
        found[method] = pot_rounds(X, y, epsilon, method, limit)
        if len(found[method]["labelled"]) == N_ROUNDS and found[method]["error"] <= TOL:
            return method, found[method]
    best = max(methods, key=lambda method: len(found[method]["labelled"]))
    return best, found[best]


def our_rounds(X: np.ndarray, y: np.ndarray, epsilon: float) -> dict[str, object]:
    model = PaperOTP(epsilon=epsilon, alpha=ALPHA).set_params(callback=lambda round_: round_.number >= N_ROUNDS)
    solving = 0.0

    def timed_solve(*args, **kwargs):
        nonlocal solving
        start = time.perf_counter()
        result = solve(*args, **kwargs)
        solving += time.perf_counter() - start
        return result

    solve, RowLevelRounds._solve = RowLevelRounds._solve, timed_solve
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    RowLevelRounds._solve = solve
    return {
        "solving": solving,
        "all": seconds,
        "error": max(max(round_.source_error, round_.target_error) for round_ in model.rounds_),
        "labelled": [len(round_.rows) for round_ in model.rounds_],
    }


def best_of(times: int, run: Callable[[], dict[str, object]]) -> dict[str, object]:
    return min((run() for _ in range(times)), key=lambda result: result["all"])


def peak_memory(name: str, percent: int, epsilon: float) -> dict[str, float]:
    """Peak memory of our rounds, in a process of its own: MB above what was there with X loaded."""
    command = [sys.executable, __file__, "--memory", name, str(percent), repr(epsilon)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_memory(name: str, percent: int, epsilon: float) -> None:
    X, y = load(name)
    y = partly_labelled(y, percent, seed=0)
    our_rounds(X[:200], np.where(np.arange(200) < 100, np.arange(200) % 2, -1), 1.0)
    before = reset_peak_memory()
    sizes: list[int] = []

    def watch(round_: object) -> bool:
        sizes.append(round_.n_labeled * round_.n_unlabeled)
        return round_.number >= N_ROUNDS

    PaperOTP(epsilon=epsilon, alpha=ALPHA).set_params(callback=watch).fit(X, y)
    above = peak_megabytes() - before - X.nbytes / 2**20  # a working copy of X is what X needs
    largest = 8 * max(sizes) / 2**20
    print(json.dumps({"above_X": above, "largest_cost": largest, "ratio": above / largest}))


def compare(options: argparse.Namespace) -> list[dict[str, object]]:
    rows = []
    for name in options.datasets:
        X, truth = load(name)
        near = nearest_neighbor_cost(X)
        for percent in (5, 35):
            y = partly_labelled(truth, percent, seed=0)
            sources, targets = np.flatnonzero(y != -1), np.flatnonzero(y == -1)
            for factor in (0.1, 1.0):
                epsilon = factor * near
                ours = best_of(2, lambda y=y, epsilon=epsilon, X=X: our_rounds(X, y, epsilon))
                cost = ot.dist(X[sources], X[targets])
                first = {m: pot_plan(cost, epsilon, m, options.limit) for m in POT_SOLVERS}
                there = [m for m in POT_SOLVERS if first[m].reached] or list(POT_SOLVERS)
                there.sort(key=lambda m: first[m].seconds if first[m].reached else first[m].error)
                first.clear()
                method, pot = fastest_rounds(X, y, epsilon, there, options.limit)
                same = len(pot["labelled"]) == N_ROUNDS and pot["labelled"] == ours["labelled"]
                rows.append(
                    {
                        "dataset": name,
                        "percent": percent,
                        "epsilon_over_nn": factor,
                        "otprop_seconds": f"{ours['all']:.2f}",
                        "otprop_solver_seconds": f"{ours['solving']:.2f}",
                        "otprop_error": f"{ours['error']:.1e}",
                        "pot_solver": method,
                        "pot_reached_tol": bool(len(pot["labelled"]) == N_ROUNDS and pot["error"] <= TOL),
                        "pot_rounds": len(pot["labelled"]),
                        "pot_seconds": f"{pot['all']:.2f}",
                        "pot_solver_seconds": f"{pot['solving']:.2f}",
                        "pot_error": f"{pot['error']:.1e}",
                        "same_rows_labelled": same,
                        "ratio_all": f"{pot['all'] / ours['all']:.1f}",
                        "ratio_solver": f"{pot['solving'] / ours['solving']:.1f}",
                    }
                    | {f"memory_{k}": f"{v:.2f}" for k, v in peak_memory(name, percent, epsilon).items()}
                )
                print(rows[-1], flush=True)
    return rows


def small_things() -> list[dict[str, object]]:
    iris = load_iris()
    y = partly_labelled(iris.target, 5, seed=0)
    fits = []
    for _ in range(20):
        start = time.perf_counter()
        OTP().fit(iris.data, y)
        fits.append(time.perf_counter() - start)
    rows: list[dict[str, object]] = [{"what": "OTP().fit on Iris, 5 % labelled", "seconds": f"{min(fits):.4f}"}]
    for statement in ("import otprop", "from otprop import OTP", "import sklearn.base"):
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
        rows.append({"what": statement, "seconds": f"{min(runs):.3f}"})
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["digits", "mnist10k"])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a POT solver is cut off")
    parser.add_argument("--memory", nargs=3, metavar=("DATASET", "PERCENT", "EPSILON"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        name, percent, epsilon = options.memory
        measure_memory(name, int(percent), float(epsilon))
        return
    small = small_things()
    for row in small:
        print(*row.values())
    write_csv("speed_small.csv", small)
    write_csv("speed.csv", compare(options))


if __name__ == "__main__":
    main()
