"""The interface of a source of evidence, and the description of those named in `OTP(evidence=...)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput
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
