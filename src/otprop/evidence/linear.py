"""Linear source: logistic regression on standardised columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from otprop._saving import saved_as
from otprop.evidence.base import NamedSource
from otprop.evidence.classifier import ScaledModel, ScaledSource
from otprop.evidence.scaling import ScaledRows
from otprop.geometry.parallel import in_fixed_blocks

MAX_LABELS = 5000  # labelled rows that it is trained on
FIXED_ROWS = 512  # rows in a matrix product
PENALTY = 10.0  # C times the mean squared norm of a row


@saved_as("evidence.linear")
class LinearSource(ScaledSource):
    """Class probabilities of a logistic regression."""

    def __init__(self, scaled: ScaledRows, n_classes: int, seed: int) -> None:
        super().__init__("linear", _ScaledLogistic(), scaled, n_classes, seed, MAX_LABELS)


@saved_as("evidence.scaled_logistic")
class _ScaledLogistic(ScaledModel):
    """Logistic regression with a penalty that depends on the norm of the rows."""

    def __sklearn_clone__(self) -> _ScaledLogistic:
        return _ScaledLogistic()

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        from sklearn.linear_model import LogisticRegression  # slow to import

        length = float((X.multiply(X) if sp.issparse(X) else X * X).sum()) / X.shape[0]
        C = min(PENALTY / length, 1.0 if not sp.issparse(X) else np.inf) if length > 0 else 1.0
        self._model = LogisticRegression(C=C, max_iter=200, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a source need not be trained to the last digit
            self._model.fit(X, y, sample_weight=sample_weight)
        self.classes_ = self._model.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities; those of a row do not depend on the other rows."""
        if self._scaler is None or sp.issparse(X):
            return super().predict_proba(X)
        return in_fixed_blocks(self._model.predict_proba, self._scaler.transform(X), FIXED_ROWS)


LINEAR = NamedSource(
    "linear",
    lambda scaled, n_classes, seed, n_jobs: LinearSource(scaled, n_classes, seed),
    start_weight=0.2,
    pays=lambda n_labels, n_classes, X: True,
)
