"""Weights of the sources, and of the settings of a source, by the likelihood of held-out labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from otprop.evidence.base import powered
from otprop.evidence.held_out import HeldOut
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


LIKELIHOOD_POWER = 0.3  # the weight of a setting is its likelihood to this power
MIN_WEIGHT = 0.1  # settings with less weight are dropped


@dataclass(frozen=True)
class Powers:
    """The powers to choose from, and how strongly one of them is preferred.

    Attributes
    ----------
    values : tuple of float
    start : float, the preferred one
    penalty : float, in log-likelihood, for a power that differs from `start` by a factor of e
    """

    values: tuple[float, ...]
    start: float
    penalty: float


@dataclass(frozen=True)
class Mixture:
    """Settings mixed by their likelihood.

    Attributes
    ----------
    powers, weights, likelihoods : ndarrays, one entry per setting: its power, its weight (0: dropped), and its
        log-likelihood per held-out label
    held_out : ndarray of shape (n_held_out, n_classes), class probabilities of the held-out rows
    cross_fitted : ndarray of the same shape, with powers and weights chosen without the labels of the row's group
    """

    powers: np.ndarray
    weights: np.ndarray
    likelihoods: np.ndarray
    held_out: np.ndarray
    cross_fitted: np.ndarray


def fit_mixture(values: list[np.ndarray], held_out: HeldOut, powers: Powers) -> Mixture:
    """Choose a power and a weight for each setting.

    Parameters
    ----------
    values : list of ndarrays of shape (n_held_out, n_classes), one per setting: the values of each class
        for the held-out rows, without their labels
    held_out : HeldOut
    powers : Powers

    Returns
    -------
    Mixture
    """
    likelihoods = held_out.weights * _log_likelihoods(values, held_out.codes, powers)
    group, weighting = held_out.group, held_out.weighting
    best, weights = _choose(likelihoods[:, :, weighting], powers)
    chosen = np.array(powers.values)[best]
    mixed = mix(values, chosen, weights)
    cross_fitted = np.empty_like(mixed)
    for one in np.unique(group):
        here = group == one
        others, shares = _choose(likelihoods[:, :, ~here & weighting], powers)
        cross_fitted[here] = mix([found[here] for found in values], np.array(powers.values)[others], shares)
    per_label = likelihoods[np.arange(len(values)), best].sum(axis=1) / max(len(held_out), 1)
    return Mixture(chosen, weights, per_label, mixed, cross_fitted)


def mix(values: list[np.ndarray], powers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Class probabilities of the mixture."""
    parts = zip(values, powers, weights, strict=True)
    return np.asarray(sum(weight * powered(found, float(power)) for found, power, weight in parts))


def _log_likelihoods(values: list[np.ndarray], codes: np.ndarray, powers: Powers) -> np.ndarray:
    """Log-likelihood of every held-out label per setting and power, of shape (n_settings, n_powers, n_held_out)."""
    rows = np.arange(len(codes))
    return np.array([[np.log(powered(found, power)[rows, codes]) for power in powers.values] for found in values])


def _choose(likelihoods: np.ndarray, powers: Powers) -> tuple[np.ndarray, np.ndarray]:
    """Number of the best power of each setting, penalised, and each setting's weight in the mixture."""
    distance = np.log(np.array(powers.values) / powers.start)
    scores = likelihoods.sum(axis=2) - powers.penalty * distance**2
    best = scores.max(axis=1)
    weights = np.exp(LIKELIHOOD_POWER * (best - best.max()))
    weights[weights < MIN_WEIGHT * weights.sum()] = 0.0
    return scores.argmax(axis=1), weights / weights.sum()
