"""What a source of evidence is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput


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
        """Log-probabilities of all rows from the labels as they are now."""
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
