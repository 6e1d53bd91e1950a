"""The loop that the paper's authors released, on the same solver: POT's plain Sinkhorn and what it returns.

With the epsilons they use the solver underflows and hands back its starting scalings, so that the normalised plan
is the Gibbs kernel. That is kept here, warnings aside: the point is to see what the released code does.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

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


def released_loop(cost: np.ndarray, codes: np.ndarray, epsilon: float, alpha: float = 0.9) -> np.ndarray:
    """Labels for all rows, as the released notebook finds them.

    Parameters
    ----------
    cost : ndarray of shape (n_rows, n_rows)
    codes : ndarray of int, class numbers, -1 where unlabelled
    epsilon : float
    alpha : float

    Returns
    -------
    ndarray of int
        -1 for rows whose class probabilities came out NaN: the notebook drops them without a label.
    """
    sinkhorn = import_pot().bregman.sinkhorn_knopp
    codes = codes.copy()
    n_classes = int(codes.max()) + 1
    labeled = np.flatnonzero(codes != UNLABELED)
    left = np.flatnonzero(codes == UNLABELED)
    while len(left):
        plan = _plan(sinkhorn, cost[np.ix_(labeled, left)], epsilon)
        with np.errstate(all="ignore"):
            plan /= plan.sum(axis=0, keepdims=True)
            shares = plan.T @ np.eye(n_classes)[codes[labeled]]
            certainty = 1 - entropy(shares, axis=1) / np.log(n_classes)
        threshold = min(alpha, max(certainty.tolist()))  # Python's min and max, NaN and all, as released
        chosen = certainty >= threshold
        codes[left[chosen]] = shares[chosen].argmax(axis=1)
        labeled = np.concatenate([labeled, left[chosen]])
        left = left[certainty < threshold]  # a NaN is neither: such a row is gone
    return codes


def _plan(sinkhorn: Any, cost: np.ndarray, epsilon: float) -> np.ndarray:
    a, b = (np.full(size, 1 / size) for size in cost.shape)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(sinkhorn(a, b, cost, epsilon))
