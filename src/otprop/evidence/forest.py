"""Forest source: extra trees on the labelled rows; an out-of-bag twin predicts the held-out labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from otprop.evidence.classifier import MANY_CLASSES_WARNING, PROBABILITY_FLOOR, predict_in_blocks, spread_over_classes
from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, log_floored
from otprop.evidence.scaling import ColumnScaler
from otprop.evidence.weights import scale_to_mean_one

N_TREES = 100
MAX_OUT_OF_BAG = 5000  # labelled rows that the out-of-bag forest is grown on
MIN_ENTRIES_FOR_THREADS = 200_000  # entries of X from which on starting threads pays off


class ForestSource:
    """Class probabilities of an extra-trees forest grown on the labelled rows."""

    name = "forest"

    def __init__(self, scaler: ColumnScaler, X: Any, n_classes: int, seed: int, n_jobs: int | None) -> None:
        self._scaler, self._X, self._n_classes, self._seed = scaler, X, n_classes, seed
        self._n_jobs = n_jobs if X.shape[0] * X.shape[1] >= MIN_ENTRIES_FOR_THREADS else 1

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the forest; the out-of-bag twin gives the probabilities of the held-out rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        self._forest = ExtraTreesClassifier(N_TREES, random_state=self._seed, n_jobs=self._n_jobs)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MANY_CLASSES_WARNING, UserWarning)
            rows = self._scaler.transform(self._X[labeled])
            self._forest.fit(rows, codes[labeled], sample_weight=scale_to_mean_one(weights[labeled]))
        out_of_bag = self._out_of_bag(codes, weights, labeled, held_out)
        return SourceOutput(predict_in_blocks(self.predict_log_proba, self._X, self._n_classes), out_of_bag)

    def _out_of_bag(self, codes: np.ndarray, weights: np.ndarray, labeled: np.ndarray, held_out: HeldOut) -> np.ndarray:
        if len(held_out) == 0:
            return np.empty((0, self._n_classes))
        rng = np.random.default_rng(self._seed)
        others = np.setdiff1d(labeled, held_out.rows)
        room = max(MAX_OUT_OF_BAG - len(held_out), 0)
        if len(others) > room:
            others = np.sort(rng.choice(others, room, replace=False))
        rows = np.concatenate([held_out.rows, others])
        twin = ExtraTreesClassifier(
            N_TREES, bootstrap=True, oob_score=True, random_state=self._seed, n_jobs=self._n_jobs
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a row in the bag of every tree has no estimate
            with np.errstate(invalid="ignore", divide="ignore"):
                X = self._scaler.transform(self._X[rows])
                twin.fit(X, codes[rows], sample_weight=scale_to_mean_one(weights[rows]))
        shares = np.nan_to_num(np.atleast_2d(twin.oob_decision_function_)[: len(held_out)])
        shares = spread_over_classes(shares, twin.classes_, self._n_classes) * held_out.leave_one_out_correction()
        total = shares.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / self._n_classes)
        return log_floored(shares, PROBABILITY_FLOOR)

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        shares = self._forest.predict_proba(self._scaler.transform(rows))
        return log_floored(spread_over_classes(shares, self._forest.classes_, self._n_classes), PROBABILITY_FLOOR)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_X"}  # only fitting needs the rows
