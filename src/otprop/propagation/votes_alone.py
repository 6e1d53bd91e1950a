"""Labels from votes alone: no row has a label, and what the features say is one more voter."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from otprop._labels import UNLABELED, Labels
from otprop._progress import ProgressCallback
from otprop._votes import SILENT, Votes, dawid_skene
from otprop.propagation.class_level import ClassLevelFit
from otprop.propagation.config import ClassLevelConfig
from otprop.propagation.geometry import Geometry

N_LEVELS = 3  # of how sure the features are
MIN_WEIGHT = 1e-3  # of a label
MAX_TAUGHT = 2000  # rows of a half whose voted label the features learn from


class VotesAloneFit:
    """Class probabilities of all rows from votes and features.

    Dawid and Skene's model of the votes gives each row a label. The features learn those of one half of the rows and
    say what they think of the other half; they then are one more voter of the model.

    Parameters
    ----------
    config : ClassLevelConfig
    progress : callable(done, total, step)

    Attributes
    ----------
    distributions : ndarray of shape (n_rows, n_classes)
    last : ClassLevelFit, that of the labels found, for predicting new rows
    """

    def __init__(self, config: ClassLevelConfig, progress: ProgressCallback) -> None:
        self._config, self._progress = config, progress
        self._geometry: Geometry | None = None

    def fit(self, X: Any, votes: Votes, classes: np.ndarray, geometry: Geometry | None) -> Self:
        """Find the class probabilities of every row."""
        n_classes, rng = len(classes), np.random.default_rng(self._config.seed)
        self._geometry = geometry
        outcomes = _outcomes(votes)
        voted = dawid_skene(outcomes, n_classes)
        spoken = np.flatnonzero(votes.spoken.any(axis=1))
        half = rng.permutation(len(spoken)) % 2
        said = np.full(voted.shape, 1e-9)
        for here in (0, 1):
            taught = rng.permutation(spoken[half == here])[:MAX_TAUGHT]
            if len(taught):
                others = np.setdiff1d(np.arange(len(voted)), spoken[half == here])
                fit, present = self._taught(X, voted, taught, voted[taught].argmax(axis=1), classes)
                said[np.ix_(others, present)] += fit.rounds.distributions[others]
        self.distributions = dawid_skene(np.column_stack([outcomes, _as_votes(said)]), n_classes)
        rows = rng.permutation(len(voted))[:MAX_TAUGHT]
        codes = self.distributions[rows].argmax(axis=1)
        for code in np.setdiff1d(np.arange(n_classes), codes):  # new rows may have any class: one row teaches it
            codes[self.distributions[rows, code].argmax()] = code
        self.last, _ = self._taught(X, self.distributions, rows, codes, classes)
        return self

    def _taught(
        self, X: Any, probabilities: np.ndarray, rows: np.ndarray, codes: np.ndarray, classes: np.ndarray
    ) -> tuple[ClassLevelFit, np.ndarray]:
        """A fit to labels of some rows, weighted by their probability, and the numbers of the classes it knows."""
        shown = np.full(len(probabilities), UNLABELED)
        present, shown[rows] = np.unique(codes, return_inverse=True)
        weights = np.ones(len(probabilities))
        weights[rows] = np.maximum(probabilities[rows, codes], MIN_WEIGHT)
        fit = ClassLevelFit(self._config, self._progress)
        fit.fit(X, Labels(shown, classes[present], None), weights, lambda round_: False, geometry=self._geometry)
        self._geometry = fit.geometry
        return fit, present


def _outcomes(votes: Votes) -> np.ndarray:
    """The votes as class numbers; those of voters that give probabilities say how sure they are, too."""
    found = votes.codes.copy()
    for voter, probabilities in votes.probabilities.items():
        spoken = found[:, voter] != SILENT
        found[spoken, voter] = _as_votes(probabilities[spoken])
    return found


def _as_votes(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities as votes of several levels of how sure they are; see `dawid_skene`."""
    n_classes, sure = probabilities.shape[1], probabilities.max(axis=1)
    level = np.searchsorted(np.quantile(sure, np.arange(1, N_LEVELS) / N_LEVELS), sure, side="right")
    return np.asarray(probabilities.argmax(axis=1) + n_classes * level)
