"""The paper's figures beside what its equations give: its numbers, its released loop, the plan solved, no plan.

For Iris and Digits at the authors' settings: the NMI the paper prints; their released loop, which asks POT's plain
Sinkhorn for a plan it cannot give; Algorithm 1 with every plan solved to 1e-6; and the Gibbs kernel without any
transport. Ten stratified splits a cell. Writes benchmarks/results/published_method.csv.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import ot
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import minmax_scale

from common import PERCENTAGES, argument_parser, load, partly_labelled, write_csv
from otprop import PaperOTP
from otprop_paper.benchmark.paper import published_score
from otprop_paper.benchmark.released_code import algorithm1_rounds, as_printed, plain_sinkhorn

ALPHA = 0.9
SETTINGS = {"iris": 0.016, "digits1797": 0.01}  # the authors' epsilons; their Digits are the 1797 rows, min-max scaled
METHODS = ("authors_loop", "solved_plan", "kernel_vote")
PAPER_NAME = {"digits1797": "digits"}


def rounds_over(plan_of: Callable[[np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    """Algorithm 1 with `plan_of(cost)` for the plan; labels and NaN rows met."""
    y = y.copy()
    steps = list(
        algorithm1_rounds(plan_of, lambda a, b: ot.dist(X[a], X[b]), y, lambda found: as_printed(found, ALPHA))
    )
    return y, sum(step.n_nan for step in steps)


def authors_loop(X: np.ndarray, y: np.ndarray, epsilon: float) -> tuple[np.ndarray, int]:
    return rounds_over(lambda cost: plain_sinkhorn(cost, epsilon), X, y)


def kernel_vote(X: np.ndarray, y: np.ndarray, epsilon: float) -> tuple[np.ndarray, int]:
    """The same rounds with the Gibbs kernel in the place of the plan, its columns scaled against underflow."""
    return rounds_over(lambda cost: np.exp((cost.min(axis=0) - cost) / epsilon), X, y)


def solved_plan(X: np.ndarray, y: np.ndarray, epsilon: float) -> tuple[np.ndarray, int]:
    model = PaperOTP(epsilon=epsilon, alpha=ALPHA).fit(X, y)
    assert all(round_.converged for round_ in model.rounds_)
    return model.transduction_, 0


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    rows = []
    for name, epsilon in SETTINGS.items():
        X, truth = load(name)
        X = minmax_scale(X) if name == "digits1797" else X
        for percent in PERCENTAGES:
            row: dict[str, object] = {"dataset": name, "percent": percent, "epsilon": epsilon, "splits": options.splits}
            for metric in ("nmi", "ari"):
                row[f"{metric}_printed"] = published_score(metric, PAPER_NAME.get(name, name), percent, "OTP")
            for method in METHODS:
                scores, n_nan = [], 0
                for seed in range(options.splits):
                    y = partly_labelled(truth, percent, seed)
                    found, broken = globals()[method](X, y, epsilon)
                    hidden = y == -1
                    scores.append(
                        [
                            normalized_mutual_info_score(truth[hidden], found[hidden]),
                            adjusted_rand_score(truth[hidden], found[hidden]),
                        ]
                    )
                    n_nan += broken
                nmi, ari = np.mean(scores, axis=0)
                row |= {f"nmi_{method}": f"{nmi:.4f}", f"ari_{method}": f"{ari:.4f}"}
                if method == "authors_loop":
                    row["nan_rows_authors_loop"] = n_nan
            rows.append(row)
            print(row, flush=True)
    write_csv("published_method.csv", rows)


if __name__ == "__main__":
    main()
