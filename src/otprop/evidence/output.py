"""What a source says: class probabilities, as logarithms, that are never quite 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FLOOR = 1e-3  # of the probability of any class: no source is believed to exclude one
TIE = 1e-9  # probabilities this near to each other differ by rounding alone
MOST_FLOORED = 0.05  # what the floors of all classes may take together


@dataclass(frozen=True)
class SourceOutput:
    """What a source says of all rows, and of the hidden ones without their labels.

    Attributes
    ----------
    rows : ndarray of float32 of shape (n_rows, n_classes), logarithms of class probabilities
    held_out : ndarray of float64 of shape (n_hidden, n_classes), the same for the hidden rows, in their order
    """

    rows: np.ndarray
    held_out: np.ndarray


def powered(values: np.ndarray, power: float, floor: float = FLOOR) -> np.ndarray:
    """Class probabilities from values of any scale: raised to a power, normalised, and floored.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_classes), not negative
    power : float, above 1 sharpens, below 1 flattens
    floor : float

    Returns
    -------
    ndarray of shape (n_rows, n_classes); the same for all classes where all values are 0
    """
    top = values.max(axis=1, keepdims=True)
    shares = np.where(top > 0, values, 1.0) / np.where(top > 0, top, 1.0)
    np.power(shares, power, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    floor = _bounded(floor, shares.shape[1])
    shares += floor
    shares /= 1.0 + floor * shares.shape[1]
    return shares


def log_floored(probabilities: np.ndarray, floor: float = FLOOR) -> np.ndarray:
    """Logarithms of class probabilities, floored."""
    floor = _bounded(floor, probabilities.shape[1])
    return np.asarray(np.log((probabilities + floor) / (1.0 + floor * probabilities.shape[1])))


def _bounded(floor: float, n_classes: int) -> float:
    """With many classes less a class, so that together they take no more than `MOST_FLOORED`."""
    return min(floor, MOST_FLOORED / n_classes)


def log_likelihood(log_probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Of the true classes, summed over the rows."""
    return float(log_probabilities[np.arange(len(codes)), codes].sum())


def hits(log_probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """1 where the true class is the most probable, 1/n where it is one of n such classes, else 0."""
    best = log_probabilities >= log_probabilities.max(axis=1, keepdims=True, initial=-np.inf) - TIE
    return np.asarray(best[np.arange(len(codes)), codes] / np.maximum(best.sum(axis=1), 1))
