"""Forest sources: extra trees and a random forest on the labelled rows, out of bag for the held-out ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from otprop._saving import saved_as
from otprop.evidence.classifier import MANY_CLASSES_WARNING, PROBABILITY_FLOOR, predict_in_blocks, spread_over_classes
from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, log_floored
from otprop.evidence.scaling import ColumnScaler
from otprop.evidence.weights import scale_to_mean_one

N_TREES = 100
MAX_LABELS = 20_000  # labelled rows that a random forest is grown on
MAX_OUT_OF_BAG = 5000  # labelled rows that the out-of-bag twin of the extra trees is grown on
MIN_LEAF = 2  # rows in a leaf of the random forest
MIN_ENTRIES_FOR_THREADS = 200_000  # entries of X from which on starting threads pays off
SPLIT_SHARE = (
    0.4  # of the columns tried at a split: most columns of a mixed table, such as rare categories, do not matter
)
MAX_SPLIT_COLUMNS = 40  # where there are hundreds of columns, as in images, neighbouring ones hold the same


@saved_as("evidence.forest")
class ForestSource:
    """Class probabilities of extra trees grown on all labelled rows; a bootstrapped twin predicts held-out rows."""

    name = "forest"

    def __init__(self, scaler: ColumnScaler, X: Any, n_classes: int, seed: int, n_jobs: int | None) -> None:
        self._scaler, self._X, self._n_classes, self._seed = scaler, X, n_classes, seed
        self._n_jobs = n_jobs if X.shape[0] * X.shape[1] >= MIN_ENTRIES_FOR_THREADS else 1

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the trees; return log-probabilities of all rows and, out of bag, of the held-out rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        self._forest = self._grow(labeled, codes, weights, out_of_bag=False)
        out_of_bag = np.empty((0, self._n_classes))
        if len(held_out):
            rows = self._sample(labeled, held_out, MAX_OUT_OF_BAG)
            out_of_bag = self._out_of_bag(self._grow(rows, codes, weights, out_of_bag=True), rows, held_out)
        return SourceOutput(predict_in_blocks(self.predict_log_proba, self._X, self._n_classes), out_of_bag)

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        shares = self._forest.predict_proba(self._scaler.transform(rows))
        return log_floored(spread_over_classes(shares, self._forest.classes_, self._n_classes), PROBABILITY_FLOOR)

    def _make_forest(self, out_of_bag: bool) -> Any:
        return ExtraTreesClassifier(N_TREES, bootstrap=out_of_bag, oob_score=out_of_bag)

    def _grow(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray, *, out_of_bag: bool) -> Any:
        forest = self._make_forest(out_of_bag).set_params(
            max_features=columns_per_split(self._X.shape[1]), random_state=self._seed, n_jobs=self._n_jobs
        )
        with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
            warnings.filterwarnings("ignore", MANY_CLASSES_WARNING, UserWarning)
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
            X = self._scaler.transform(self._X[rows])
            return forest.fit(X, codes[rows], sample_weight=scale_to_mean_one(weights[rows]))

    def _sample(self, labeled: np.ndarray, held_out: HeldOut, size: int) -> np.ndarray:
        """At most `size` labelled rows in order, the held-out ones among them."""
        others = np.setdiff1d(labeled, held_out.rows)
        room = max(size - len(held_out), 0)
        if len(others) > room:
            others = np.random.default_rng(self._seed).choice(others, room, replace=False)
        return np.sort(np.concatenate([held_out.rows, others]))

    def _out_of_bag(self, forest: Any, rows: np.ndarray, held_out: HeldOut) -> np.ndarray:
        """Log-probabilities of the held-out rows by the trees that did not see them; uniform where all did."""
        shares = np.nan_to_num(np.atleast_2d(forest.oob_decision_function_)[np.searchsorted(rows, held_out.rows)])
        shares = spread_over_classes(shares, forest.classes_, self._n_classes) * held_out.leave_one_out_correction()
        total = shares.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / self._n_classes)
        return log_floored(shares, PROBABILITY_FLOOR)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_X"}  # only fitting needs the rows


@saved_as("evidence.random_forest")
class RandomForestSource(ForestSource):
    """Class probabilities of a random forest, which finds the sharp thresholds that extra trees miss."""

    name = "random_forest"

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the forest; its own out-of-bag predictions serve the held-out rows."""
        rows = self._sample(np.flatnonzero((codes >= 0) & (weights > 0)), held_out, MAX_LABELS)
        self._forest = self._grow(rows, codes, weights, out_of_bag=len(held_out) > 0)
        out_of_bag = self._out_of_bag(self._forest, rows, held_out) if len(held_out) else np.empty((0, self._n_classes))
        return SourceOutput(predict_in_blocks(self.predict_log_proba, self._X, self._n_classes), out_of_bag)

    def _make_forest(self, out_of_bag: bool) -> Any:
        return RandomForestClassifier(N_TREES, min_samples_leaf=MIN_LEAF, oob_score=out_of_bag)


def columns_per_split(n_columns: int) -> int:
    """Columns that a tree tries at each split: two in five up to a maximum, but not fewer than their square root."""
    return max(1, int(np.sqrt(n_columns)), min(int(SPLIT_SHARE * n_columns), MAX_SPLIT_COLUMNS))
