"""Mixtures of settings: the values of each setting are raised to a power and weighted by held-out labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from otprop.evidence.base import powered
from otprop.evidence.held_out import HeldOut

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
