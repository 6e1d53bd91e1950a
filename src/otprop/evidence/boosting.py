"""Boosting source: histogram gradient boosting with small trees, for enough labels and few classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils.extmath import softmax

from otprop._saving import saved_as
from otprop.evidence.base import NamedSource
from otprop.evidence.classifier import ScaledModel, ScaledSource
from otprop.evidence.held_out import MANY_LABELS, n_trainings
from otprop.evidence.scaling import ScaledRows
from otprop.geometry.parallel import row_blocks

MAX_CLASSES = 9  # each iteration grows one tree per class; with more, boosting takes longer than all other sources
MAX_CLASSES_TIMES_COLUMNS = 2000
ROWS_PER_BLOCK = 4096  # predicted at once: they stay in the cache while hundreds of trees read them
MAX_TRAINED = 5000  # labelled rows that the trees are grown on
PARAMETERS = {
    "learning_rate": 0.28,
    "max_iter": 15,  # as good as 25 with a rate of 0.18
    "max_leaf_nodes": 4,
    "min_samples_leaf": 3,
    "max_bins": 63,
    "max_features": 0.5,
    "l2_regularization": 1.0,
    "early_stopping": False,
}


def boosting_pays(n_labels: int, n_classes: int, X: Any) -> bool:
    """Whether there are enough labels for boosting, and few enough classes and columns for its cost.

    With few labels it adds nothing to a forest of which half of the trees try every column.
    """
    if sp.issparse(X) or n_classes > MAX_CLASSES or n_classes * X.shape[1] > MAX_CLASSES_TIMES_COLUMNS:
        return False
    return n_labels > MANY_LABELS


@saved_as("evidence.boosting")
class BoostingSource(ScaledSource):
    """Class probabilities of boosted trees."""

    def __init__(self, scaled: ScaledRows, n_classes: int, seed: int) -> None:
        super().__init__("boosting", _ScaledBoosting(seed), scaled, n_classes, seed, MAX_TRAINED)

    def _n_trainings(self, n_labels: int) -> int:
        return n_trainings(n_labels)


@saved_as("evidence.scaled_boosting")
class _ScaledBoosting(ScaledModel):
    """Boosted trees on scaled rows, which single precision can represent."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __sklearn_clone__(self) -> _ScaledBoosting:
        return _ScaledBoosting(self._seed)

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

        self._model = HistGradientBoostingClassifier(random_state=self._seed, **PARAMETERS)
        self._model.fit(X, y, sample_weight=sample_weight)
        self.classes_ = self._model.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        trees: Any = vars(self).get("_model") or vars(self)["_trees"]
        rows = X if self._scaler is None else self._scaler.transform(X)
        blocks = row_blocks(rows.shape[0], ROWS_PER_BLOCK) or [slice(0)]
        return np.concatenate([np.asarray(trees.predict_proba(rows[block])) for block in blocks])

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        model = state.pop("_model", None)
        return state if model is None else {**state, "_trees": _BoostedTrees(model)}


@saved_as("evidence.boosted_trees")
class _BoostedTrees:
    """The trees of a fitted HistGradientBoostingClassifier as plain arrays, for models that are saved."""

    def __init__(self, model: Any) -> None:
        trees = [[predictor.nodes for predictor in iteration] for iteration in model._predictors]
        size = max(len(nodes) for iteration in trees for nodes in iteration)
        shape = (len(trees), len(trees[0]), size)
        self.feature, self.left, self.right = (np.zeros(shape, dtype=np.int32) for _ in range(3))
        self.threshold, self.value = np.zeros(shape), np.zeros(shape)
        self.baseline = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(1, -1)
        for place in np.ndindex(shape[:2]):
            nodes = trees[place[0]][place[1]]
            here, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
            self.left[place][here] = np.where(leaf, here, nodes["left"])
            self.right[place][here] = np.where(leaf, here, nodes["right"])
            self.feature[place][here] = np.where(leaf, 0, nodes["feature_idx"])
            self.threshold[place][here] = np.where(leaf, 0.0, nodes["num_threshold"])
            self.value[place][here] = nodes["value"]

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The splitting nodes of each tree, and the value of a row by its decisions there, one bit per node.

        Trees are small: evaluating all nodes for all rows is faster than following each row.
        """
        n_splits = self.value.shape[2] // 2
        inner = self.left != np.arange(self.value.shape[2])
        splits = np.argsort(~inner, axis=2, kind="stable")[:, :, :n_splits]
        bit_of = np.zeros(self.value.shape, dtype=np.intp)
        np.put_along_axis(bit_of, splits, np.broadcast_to(np.arange(n_splits), splits.shape), axis=2)
        answers = np.broadcast_to(np.arange(2**n_splits), (*self.value.shape[:2], 2**n_splits))
        node = np.zeros(answers.shape, dtype=np.intp)
        for _ in range(n_splits):  # the largest depth of a tree with this many nodes
            goes_left = (answers >> np.take_along_axis(bit_of, node, axis=2)) & 1
            left, right = (np.take_along_axis(side, node, axis=2) for side in (self.left, self.right))
            node = np.where(goes_left == 1, left, right)
        return splits, np.take_along_axis(self.value, node, axis=2)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        raw = np.repeat(self.baseline, len(X), axis=0)
        columns, splits, leaf_values = np.ascontiguousarray(X.T), *self._tables()
        for place in np.ndindex(self.value.shape[:2]):
            answers = np.zeros(len(X), dtype=np.intp)
            for bit, node in enumerate(splits[place]):
                if self.left[place][node] != node:
                    goes_left = columns[self.feature[place][node]] <= self.threshold[place][node]
                    answers |= goes_left.astype(np.intp) << bit
            raw[:, place[1]] += leaf_values[place][answers]
        if raw.shape[1] == 1:
            right = expit(raw[:, 0])
            return np.stack([1 - right, right], axis=1)
        return np.asarray(softmax(raw))


BOOSTING = NamedSource(
    "boosting",
    lambda scaled, n_classes, seed, n_jobs: BoostingSource(scaled, n_classes, seed),
    start_weight=0.5,
    pays=boosting_pays,
    takes_sparse=False,
)
