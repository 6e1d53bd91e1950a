"""The loop that the paper's authors released, on the same solver: POT's plain Sinkhorn and what it returns.

With the epsilons they use the solver underflows and hands back its starting scalings, so that the normalised plan
is the Gibbs kernel. That is kept here, warnings aside: the point is to see what the released code does.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import entropy
from sklearn.metrics.pairwise import euclidean_distances

from otprop._labels import UNLABELED

RELEASED_EPSILON = {"iris": 0.016, "digits": 0.01, "digits1797": 0.01}  # in the notebook's units, squared distances


def import_pot() -> Any:
    """The module `ot`.

    Returns
    -------
    module
    """
    try:
        return importlib.import_module("ot")
    except ImportError:
        raise ImportError(
            "the method 'released' runs the authors' loop on POT, which is not installed: pip install 'otprop[pot]', "
            "or leave it out with --methods."
        ) from None


def squared_costs(X: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances between all rows, once for all rounds and splits.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows, n_rows)
    """
    return euclidean_distances(X, squared=True)


def rounds(
    plan_of: Callable[[np.ndarray], np.ndarray],
    cost_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    codes: np.ndarray,
    choose: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Iterator[Step]:
    """Algorithm 1 as plainly as it is printed, over any solver, one round at a time.

    Parameters
    ----------
    plan_of : callable, the plan for a matrix of costs
    cost_of : callable, the costs from labelled rows to unlabelled ones, both given by their numbers
    codes : ndarray of int, class numbers, -1 where unlabelled; filled in round by round
    choose : callable, from the certainties which rows are labelled now and which are asked again (`as_released`,
        `as_printed`)

    Yields
    ------
    Step
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
        chosen, asked_again = choose(certainty)
        rows = left[chosen]
        codes[rows] = shares[chosen].argmax(axis=1)
        labeled, left = np.concatenate([labeled, rows]), left[asked_again]
        yield Step(rows, int(np.isnan(certainty).sum()))


class Step(NamedTuple):
    """A round: the rows that were labelled, and how many rows came out NaN."""

    rows: np.ndarray
    n_nan: int


def as_released(certainty: np.ndarray, alpha: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The notebook's choice. A NaN is neither labelled nor asked again: such a row is gone.

    Parameters
    ----------
    certainty : ndarray
    alpha : float

    Returns
    -------
    labelled, asked_again : ndarray of bool
    """
    threshold = min(alpha, max(certainty.tolist()))  # Python's min and max, NaN and all, as released
    return certainty >= threshold, certainty < threshold


def as_printed(certainty: np.ndarray, alpha: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The paper's choice: above alpha, else the most certain (Eq. 15). A NaN is no certainty at all.

    Parameters
    ----------
    certainty : ndarray
    alpha : float

    Returns
    -------
    labelled, asked_again : ndarray of bool
    """
    certainty = np.nan_to_num(certainty, nan=0.0)
    chosen = certainty > alpha
    if not chosen.any():
        chosen = certainty >= certainty.max() - 1e-9
    return chosen, ~chosen


def released_loop(cost: np.ndarray, codes: np.ndarray, epsilon: float) -> np.ndarray:
    """Labels for all rows, as the released notebook finds them.

    Parameters
    ----------
    cost : ndarray of shape (n_rows, n_rows)
    codes : ndarray of int, class numbers, -1 where unlabelled
    epsilon : float

    Returns
    -------
    ndarray of int
        -1 for rows whose class probabilities came out NaN: the notebook drops them without a label.
    """
    codes = codes.copy()
    steps = rounds(lambda part: plain_sinkhorn(part, epsilon), lambda a, b: cost[np.ix_(a, b)], codes, as_released)
    for _ in steps:
        pass
    return codes


def plain_sinkhorn(cost: np.ndarray, epsilon: float) -> np.ndarray:
    """POT's plain Sinkhorn between uniform masses, as it comes: where it underflows, what it had before.

    Parameters
    ----------
    cost : ndarray
    epsilon : float

    Returns
    -------
    ndarray, the plan
    """
    a, b = (np.full(size, 1 / size) for size in cost.shape)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(import_pot().bregman.sinkhorn_knopp(a, b, cost, epsilon))
