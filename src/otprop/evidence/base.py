"""A source of evidence: its interface, what it returns, and the description of those in `OTP(evidence=...)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from otprop.evidence.held_out import HeldOut
from otprop.evidence.scaling import ScaledRows


class Source(Protocol):
    """A source of class probabilities, fitted once on the labelled rows."""

    name: str

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Fit on the labelled rows; return log-probabilities of all rows and, without their label, of held-out rows."""
        ...

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        ...


class IterativeSource(Source, Protocol):
    """A source that is updated with the rows labelled in each round.

    Attributes
    ----------
    converged : bool
    held_out_reached : ndarray of bool, which held-out rows are reached by a label other than those held out with them
    """

    converged: bool
    held_out_reached: np.ndarray

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Log-probabilities of all rows from the current labels."""
        ...

    def end_rounds(self) -> None:
        """Prepare for the prediction of new rows, once all rows are labelled."""
        ...

    def reached(self) -> np.ndarray:
        """Which rows are reached by some label."""
        ...


@runtime_checkable
class ThreadedSource(Protocol):
    """A source whose predictions can use threads."""

    def use_threads(self, n_jobs: int | None) -> None: ...


@dataclass(frozen=True)
class NamedSource:
    """A static source that users select by name in `OTP(evidence=[name])`; `evidence/registry.py` lists them.

    Attributes
    ----------
    name : str, the name of the source
    make : callable of (scaled, n_classes, seed, n_jobs), returns the source
    start_weight : float, its weight before any held-out label is seen
    pays : callable of (n_labels, n_classes, X), whether ``evidence="auto"`` uses it
    takes_sparse : bool, whether X may be sparse
    """

    name: str
    make: Callable[[ScaledRows, int, int, int | None], Source]
    start_weight: float
    pays: Callable[[int, int, Any], bool]
    takes_sparse: bool = True


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
