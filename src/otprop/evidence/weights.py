"""Weights of the sources: those under which the held-out labels are most probable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from otprop.geometry.parallel import single_threaded_blas

PENALTY = 2.0  # in log-likelihood, for moving a weight by one from its start


def fit_weights(
    log_probabilities: Sequence[np.ndarray],
    codes: np.ndarray,
    start: Sequence[float],
    penalty: float = PENALTY,
    label_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Non-negative weights of the sources.

    The combined class probabilities are proportional to the product of the sources' probabilities, each raised to its
    weight. The weights maximise the likelihood of the held-out labels minus `penalty` times the squared distance from
    `start`, which dominates if labels are few.

    Parameters
    ----------
    log_probabilities : sequence of ndarrays of shape (n_held_out, n_classes), one per source
    codes : ndarray of int of shape (n_held_out,), the true classes
    start : sequence of float, one per source
    penalty : float
    label_weights : ndarray of shape (n_held_out,) or None, how much each label counts; None: all alike

    Returns
    -------
    ndarray of shape (n_sources,)
    """
    origin = np.asarray(start, dtype=np.float64)
    if len(codes) == 0:
        return origin
    logs = np.stack(log_probabilities)
    rows = np.arange(len(codes))
    counted = np.ones(len(codes)) if label_weights is None else label_weights

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total = np.tensordot(weights, logs, 1)
        total -= total.max(axis=1, keepdims=True)
        shares = np.exp(total)
        norm = shares.sum(axis=1, keepdims=True)
        shares /= norm
        value = counted @ (np.log(norm[:, 0]) - total[rows, codes]) + penalty * ((weights - origin) ** 2).sum()
        slopes = (shares * logs).sum(axis=2) - logs[:, rows, codes]
        return float(value), slopes @ counted + 2 * penalty * (weights - origin)

    with single_threaded_blas():  # for a few numbers, waking threads takes most of the time
        return np.asarray(minimize(loss, origin, jac=True, bounds=[(0.0, None)] * len(origin), method="L-BFGS-B").x)


def cross_fitted_sum(
    log_probabilities: Sequence[np.ndarray],
    codes: np.ndarray,
    group: np.ndarray,
    start: Sequence[float],
    weighting: np.ndarray,
    label_weights: np.ndarray,
    penalty: float = PENALTY,
) -> np.ndarray:
    """The weighted sum of the sources for each held-out label, with weights fitted without the labels of its group.

    Parameters
    ----------
    log_probabilities, codes, start : as in `fit_weights`
    group : ndarray of int of shape (n_held_out,)
    weighting : ndarray of bool of shape (n_held_out,), the labels that weights are fitted on
    label_weights : ndarray of shape (n_held_out,), how much each label counts
    penalty : float

    Returns
    -------
    ndarray of shape (n_held_out, n_classes)
    """
    found = np.empty(log_probabilities[0].shape)
    for one in np.unique(group):
        here = group == one
        others = ~here & weighting
        shown = [logs[others] for logs in log_probabilities]
        weights = fit_weights(shown, codes[others], start, penalty, label_weights[others])
        found[here] = sum(weight * logs[here] for weight, logs in zip(weights, log_probabilities, strict=True))
    return found


def scale_to_mean_one(weights: np.ndarray) -> np.ndarray:
    """Weights scaled to a mean of one over the positive ones, without a sum that could overflow."""
    weights = weights / weights.max()
    return np.asarray(weights / weights[weights > 0].mean())
