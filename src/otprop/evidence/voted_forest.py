"""A forest that learns the class from the votes: many rows have one, where few have a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.evidence.base import SourceOutput, log_floored
from otprop.evidence.classifier import PROBABILITY_FLOOR, spread_over_classes
from otprop.evidence.forest import (
    MAX_CLASSES,
    N_TREES,
    RandomForestSource,
    columns_per_split,
    draw_seeds,
    group_bags,
    unseen_means,
)
from otprop.evidence.held_out import HeldOut
from otprop.evidence.scaling import ScaledRows
from otprop.evidence.votes import VotesSource

NAME = "voted_forest"
START_WEIGHT = 0.6  # that of the forest of the labels
MAX_ROWS = 5000  # that it is grown on
MIN_ROWS = 20
MIN_LEAF = 3  # more rows than with labels, since votes err
MIN_SURE = 0.02  # of the voted class beyond guessing; with less, a row teaches nothing
PREDICTABLE = 2.0  # standard errors beyond chance from which on the columns are said to predict the votes


@saved_as("evidence.voted_forest")
class VotedForestSource(RandomForestSource):
    """Class probabilities of a random forest grown on the class that the votes make most probable for each row.

    Predictions for a row are out of bag: they do not use the votes on that row. They therefore show whether the columns
    predict the votes at all; random votes cannot be predicted.

    Parameters
    ----------
    scaled : ScaledRows
    votes : VotesSource, fitted before this source
    n_classes, seed : int
    n_jobs : int or None

    Attributes
    ----------
    start_weight : float, 0 if the votes are too few to learn from
    predictability : float, agreement with the votes beyond chance in standard errors; NaN if it cannot be told
    """

    name = NAME

    def __init__(self, scaled: ScaledRows, votes: VotesSource, n_classes: int, seed: int, n_jobs: int | None) -> None:
        super().__init__(scaled, n_classes, seed, n_jobs)
        self._votes = votes
        self.start_weight, self.predictability = START_WEIGHT, float("nan")

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the forest on voted classes; return its prediction for each row without the votes on it."""
        voted = self._votes.probabilities
        classes, sure = voted.argmax(axis=1), voted.max(axis=1) - 1.0 / self._n_classes
        rows = np.flatnonzero(self._votes.spoken & (sure > MIN_SURE))
        rows = np.sort(np.random.default_rng(self._seed).permutation(rows)[:MAX_ROWS])
        if len(rows) < MIN_ROWS or len(np.unique(classes[rows])) < 2 or self._n_classes > MAX_CLASSES:
            self._forest, self.start_weight = None, 0.0
            nothing = np.zeros(voted.shape, dtype=np.float32)
            return SourceOutput(nothing, np.zeros((len(held_out), self._n_classes)))
        seeds, _ = self._seeds(len(rows))
        grown = self._grow(rows, classes, sure, seeds, self._make_tree, group_bags(held_out, rows))
        self._forest = self._forest_of(grown, classes[rows])
        found = self._predict_all()
        shares = spread_over_classes(unseen_means(grown, self._X[rows]), self._forest.classes_, self._n_classes)
        found[rows] = log_floored(shares, PROBABILITY_FLOOR)
        unlabeled = rows[codes[rows] < 0]
        self.predictability = beyond_chance(found[unlabeled].argmax(axis=1), classes[unlabeled], self._n_classes)
        return SourceOutput(found, found[held_out.rows].astype(np.float64))

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        if self._forest is None:
            return np.zeros((rows.shape[0], self._n_classes))
        return super().predict_log_proba(rows)

    def _seeds(self, n_labels: int) -> tuple[list[int], list[int]]:
        return draw_seeds(self._seed, N_TREES), []  # its out-of-bag predictions are used for all voted rows

    def _make_tree(self, seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier  # slow to import

        return DecisionTreeClassifier(
            max_features=columns_per_split(self._X.shape[1]), min_samples_leaf=MIN_LEAF, random_state=seed
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().__getstate__().items() if name not in ("_votes", "predictability")
        }


def beyond_chance(one: np.ndarray, other: np.ndarray, n_classes: int) -> float:
    """Agreement of two labellings beyond chance in standard errors; NaN without rows."""
    if len(one) == 0:
        return float("nan")
    shares = [np.bincount(codes, minlength=n_classes) / len(one) for codes in (one, other)]
    chance = float(shares[0] @ shares[1])
    error = np.sqrt(max(chance * (1.0 - chance), 1e-12) / len(one))
    return float((np.mean(one == other) - chance) / error)
