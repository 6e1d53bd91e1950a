"""Boosting source: histogram gradient boosting with small trees, where labels are enough and classes few."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from otprop.evidence.classifier import ScaledModel, ScaledSource
from otprop.evidence.scaling import ScaledRows

MIN_LABELS = 40  # with fewer, boosted trees add little to a forest
MIN_LABELS_PER_CLASS = 5
MAX_CLASSES = 9  # one tree a class in every iteration: with more, boosting takes longer than all other sources
MAX_CLASSES_TIMES_COLUMNS = 2000
MANY_LABELS, FEW_TRAININGS = 200, 3  # with more labels, two thirds of them are enough to judge it by
MAX_TRAINED = 5000  # labelled rows that the trees are grown on
PARAMETERS = {
    "learning_rate": 0.12,
    "max_iter": 40,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 3,
    "max_bins": 63,
    "max_features": 0.5,
    "l2_regularization": 1.0,
    "early_stopping": False,
}


def boosting_pays(n_labels: int, n_classes: int, X: Any) -> bool:
    """Whether labels are enough for boosting, and classes and columns few enough for its cost."""
    if sp.issparse(X) or n_classes > MAX_CLASSES or n_classes * X.shape[1] > MAX_CLASSES_TIMES_COLUMNS:
        return False
    return n_labels >= max(MIN_LABELS, MIN_LABELS_PER_CLASS * n_classes)


class BoostingSource(ScaledSource):
    """Class probabilities of boosted trees."""

    def __init__(self, scaled: ScaledRows, n_classes: int, seed: int) -> None:
        super().__init__("boosting", _ScaledBoosting(seed), scaled, n_classes, seed, MAX_TRAINED)

    def _n_trainings(self, n_labels: int) -> int:
        return super()._n_trainings(n_labels) if n_labels <= MANY_LABELS else FEW_TRAININGS


class _ScaledBoosting(ScaledModel):
    """Boosted trees on scaled rows, since single precision has a range."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __sklearn_clone__(self) -> _ScaledBoosting:
        return _ScaledBoosting(self._seed)

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        self._model = HistGradientBoostingClassifier(random_state=self._seed, **PARAMETERS)
        self._model.fit(X, y, sample_weight=sample_weight)
        self.classes_ = self._model.classes_
