"""Log-probabilities of a source with a floor, and their scores on held-out labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FLOOR = 1e-3  # of the probability of any class: no source may exclude one
TIE = 1e-9  # probabilities closer than this differ by rounding only
MAX_TOTAL_FLOOR = 0.05  # sum of the floors of all classes


@dataclass(frozen=True)
class SourceOutput:
    """Log-probabilities of the classes from one source.

    Attributes
    ----------
    rows : ndarray of float32 of shape (n_rows, n_classes), for all rows
    held_out : ndarray of float64 of shape (n_held_out, n_classes), for the held-out rows, without their own labels
    cross_fitted : ndarray of the same shape or None
        The same, with the choices that the source makes on held-out labels made without those of the row's group
        (`HeldOut.group`); None for sources that make no such choices.
    """

    rows: np.ndarray
    held_out: np.ndarray
    cross_fitted: np.ndarray | None = None


def powered(values: np.ndarray, power: float, floor: float = FLOOR) -> np.ndarray:
    """Class probabilities proportional to `values ** power`, floored; uniform where all values of a row are 0."""
    top = values.max(axis=1, keepdims=True)
    shares = np.where(top > 0, values, 1.0) / np.where(top > 0, top, 1.0)
    np.power(shares, power, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    floor = _bounded_floor(floor, shares.shape[1])
    shares += floor
    shares /= 1.0 + floor * shares.shape[1]
    return shares


def log_floored(probabilities: np.ndarray, floor: float = FLOOR) -> np.ndarray:
    """Logarithms of class probabilities with a floor."""
    floor = _bounded_floor(floor, probabilities.shape[1])
    return np.asarray(np.log((probabilities + floor) / (1.0 + floor * probabilities.shape[1])))


def _bounded_floor(floor: float, n_classes: int) -> float:
    return min(floor, MAX_TOTAL_FLOOR / n_classes)


def log_likelihood(log_probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Log-likelihood of the true classes, summed over the rows."""
    return float(log_probabilities[np.arange(len(codes)), codes].sum())


def hits(log_probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """1 where the true class is the most probable one, 1/n where n classes tie for it, else 0."""
    best = log_probabilities >= log_probabilities.max(axis=1, keepdims=True, initial=-np.inf) - TIE
    return np.asarray(best[np.arange(len(codes)), codes] / np.maximum(best.sum(axis=1), 1))
