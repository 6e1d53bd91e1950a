"""How much each source counts: the weights under which the hidden labels are most probable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

PULL = 2.0  # what it costs, in log-likelihood, to move a weight by one from where it starts


def weigh(hidden: Sequence[np.ndarray], codes: np.ndarray, start: Sequence[float], pull: float = PULL) -> np.ndarray:
    """Weights of the sources, not negative.

    The class probabilities are proportional to the product of the sources' own, each raised to its weight. The
    weights maximise the likelihood of the hidden labels, less `pull` times the squared distance from `start`, which
    decides where labels are few.

    Parameters
    ----------
    hidden : sequence of ndarrays of shape (n_hidden, n_classes), what each source says, as logarithms
    codes : ndarray of int of shape (n_hidden,), the true classes
    start : sequence of float, one a source
    pull : float

    Returns
    -------
    ndarray of shape (n_sources,)
    """
    origin = np.asarray(start, dtype=np.float64)
    if len(codes) == 0:
        return origin
    logs = np.stack(hidden)
    lines = np.arange(len(codes))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total = np.tensordot(weights, logs, 1)
        total -= total.max(axis=1, keepdims=True)
        shares = np.exp(total)
        norm = shares.sum(axis=1, keepdims=True)
        shares /= norm
        value = (np.log(norm[:, 0]) - total[lines, codes]).sum() + pull * ((weights - origin) ** 2).sum()
        slope = (shares * logs).sum(axis=(1, 2)) - logs[:, lines, codes].sum(axis=1) + 2 * pull * (weights - origin)
        return float(value), slope

    found = minimize(loss, origin, jac=True, bounds=[(0.0, None)] * len(origin), method="L-BFGS-B")
    return np.asarray(found.x)


def relative(weights: np.ndarray) -> np.ndarray:
    """Weights of any size with a mean of one over those above zero, without a sum that could overflow."""
    weights = weights / weights.max()
    return np.asarray(weights / weights[weights > 0].mean())
