"""Linear source: logistic regression on standardised columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from otprop._saving import saved_as
from otprop.evidence.classifier import ClassifierSource
from otprop.evidence.scaling import ColumnScaler

MAX_LABELS = 5000  # labelled rows that it is trained on
PENALTY = 10.0  # C times the mean squared norm of a row


@saved_as("evidence.linear")
class LinearSource(ClassifierSource):
    """Class probabilities of a logistic regression, trained on a sample where labelled rows are many."""

    def __init__(self, scaler: ColumnScaler, X: Any, n_classes: int, seed: int) -> None:
        self._seed = seed
        super().__init__("linear", _ScaledLogistic(scaler), X, np.arange(n_classes))

    def _train(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
        if len(rows) > MAX_LABELS:
            rows = np.sort(np.random.default_rng(self._seed).choice(rows, MAX_LABELS, replace=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a source need not be trained to the last digit
            return super()._train(rows, codes, weights)


@saved_as("evidence.scaled_logistic")
class _ScaledLogistic:
    """Logistic regression behind a ColumnScaler, with a penalty that depends on the norm of the rows."""

    def __init__(self, scaler: ColumnScaler) -> None:
        self._scaler = scaler

    def __sklearn_clone__(self) -> _ScaledLogistic:
        return _ScaledLogistic(self._scaler)

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        rows = self._scaler.transform(X)
        length = float((rows.multiply(rows) if sp.issparse(rows) else rows * rows).sum()) / rows.shape[0]
        C = min(PENALTY / length, 1.0 if not sp.issparse(rows) else np.inf) if length > 0 else 1.0
        self._model = LogisticRegression(C=C, max_iter=200, tol=1e-3)
        self._model.fit(rows, y, sample_weight=sample_weight)
        self.classes_ = self._model.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self._model.predict_proba(self._scaler.transform(X)))
