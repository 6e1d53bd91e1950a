"""The loop that the paper's authors released, on the same solver: POT's plain Sinkhorn.

With their epsilons the solver underflows and returns its initial scalings: the normalised plan is then the Gibbs
kernel. This is reproduced here, without the warnings, to show what the released code computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import entropy
from sklearn.metrics.pairwise import euclidean_distances

from otprop._labels import UNLABELED

RELEASED_EPSILON = {"iris": 0.016, "digits": 0.01, "digits1797": 0.01}  # in the notebook's units, squared distances


def squared_costs(X: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances between all rows, once for all rounds and splits."""
    return euclidean_distances(X, squared=True)


def algorithm1_rounds(
    plan_of: Callable[[np.ndarray], np.ndarray],
    cost_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    codes: np.ndarray,
    choose: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Iterator[Step]:
    """Algorithm 1 as printed, over any solver, round by round.

    `plan_of` gives the plan of a cost matrix, `cost_of` the costs from labelled to unlabelled row numbers, `choose`
    from the certainties which rows are labelled now and which stay in the loop. `codes` is filled in place.
    """
    n_classes = int(codes.max()) + 1
    labeled = np.flatnonzero(codes != UNLABELED)
    left = np.flatnonzero(codes == UNLABELED)
    while len(left):
        plan = plan_of(cost_of(labeled, left))
        with np.errstate(all="ignore"):
            plan /= plan.sum(axis=0, keepdims=True)
            shares = plan.T @ np.eye(n_classes)[codes[labeled]]
            certainty = 1 - entropy(shares, axis=1) / np.log(n_classes)
        chosen, remaining = choose(certainty)
        rows = left[chosen]
        codes[rows] = shares[chosen].argmax(axis=1)
        labeled, left = np.concatenate([labeled, rows]), left[remaining]
        yield Step(rows, int(np.isnan(certainty).sum()))


class Step(NamedTuple):
    """A round: the rows that were labelled, and how many rows came out NaN."""

    rows: np.ndarray
    n_nan: int


def as_released(certainty: np.ndarray, alpha: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The notebook's choice; a row with a NaN certainty is neither labelled nor kept in the loop."""
    threshold = min(alpha, max(certainty.tolist()))  # Python's min and max treat NaN as the released code does
    return certainty >= threshold, certainty < threshold


def as_printed(certainty: np.ndarray, alpha: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The paper's choice: above alpha, else the most certain (Eq. 15). A NaN counts as 0."""
    certainty = np.nan_to_num(certainty, nan=0.0)
    chosen = certainty > alpha
    if not chosen.any():
        chosen = certainty >= certainty.max() - 1e-9
    return chosen, ~chosen


def released_loop(cost: np.ndarray, codes: np.ndarray, epsilon: float) -> np.ndarray:
    """Labels for all rows by the released notebook; -1 for rows whose class probabilities became NaN."""
    codes = codes.copy()
    steps = algorithm1_rounds(
        lambda part: plain_sinkhorn(part, epsilon), lambda a, b: cost[np.ix_(a, b)], codes, as_released
    )
    for _ in steps:
        pass
    return codes


def plain_sinkhorn(cost: np.ndarray, epsilon: float) -> np.ndarray:
    """The plan of POT's plain Sinkhorn between uniform masses, which stops early where it underflows."""
    import ot  # takes seconds where PyTorch is installed

    a, b = (np.full(size, 1 / size) for size in cost.shape)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(ot.bregman.sinkhorn_knopp(a, b, cost, epsilon))
