"""The model that workers label rows with: an `OTP` fitted on the landmarks, and which rows those are."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from otprop._labels import Labels
from otprop._otp import OTP
from otprop.dask._cluster import keep_freed_memory
from otprop.geometry.parallel import row_blocks
from otprop.labelling.outcome import RowLabels
from otprop.propagation.pseudo_labels import take_rows
from otprop.propagation.rounds import certainty

ROWS_AT_ONCE = 2**17  # rows predicted at once: bounds the memory, and has no effect on the result


@dataclass(frozen=True)
class LandmarkModel:
    """An estimator fitted on landmarks, and their numbers among all rows.

    Attributes
    ----------
    estimator : OTP, fitted and frozen
    numbers : ndarray of int64, ascending, of the rows it was fitted on
    n_unlabeled : int, unlabelled rows of the whole table
    marker : what stood for "unlabelled" in y
    """

    estimator: OTP
    numbers: np.ndarray
    n_unlabeled: int = 0
    marker: Any = None

    @cached_property
    def _codes(self) -> np.ndarray:
        """The class numbers of the landmarks, -1 where the estimator abstains."""
        fitted = self.estimator
        codes = fitted.decide(fitted.label_distributions_, fitted._best_confidence)[0]
        return self._without_abstentions(codes, fitted.confidence_, fitted.round_ == 0)

    @property
    def label_type(self) -> np.dtype[Any]:
        """Of an array of labels, which holds the marker, too, where the estimator may abstain."""
        classes = self.estimator.classes_
        if self.estimator.abstain_below is None:
            return classes.dtype
        return Labels(self._codes, classes, self.marker).dtype

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels for class numbers, the marker for -1; of one type, whether rows are left unlabelled or not."""
        labels = Labels(codes, self.estimator.classes_, self.marker).decode(codes)
        return np.asarray(labels, dtype=self.label_type)

    def label(self, X: Any, given_codes: np.ndarray | None, first_row: int | None) -> RowLabels:
        """Label the rows of a partition.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_rows, n_features)
        given_codes : ndarray of int, the class number of each row, -1 where it is unlabelled; None for rows that come
            later, all of which get a label
        first_row : int or None, the number of its first row; None for rows that no landmark is among

        Landmarks keep what the fit gave them, and given labels stay. The others are predicted, each alone: how rows
        are cut into partitions has no effect.
        """
        keep_freed_memory()
        fitted, n_rows, n_classes = self.estimator, X.shape[0], len(self.estimator.classes_)
        distributions = np.zeros((n_rows, n_classes))
        row_certainty, confidence = np.ones(n_rows), np.ones(n_rows)
        codes = np.full(n_rows, -1) if given_codes is None else np.array(given_codes, dtype=np.intp)
        given, todo = codes >= 0, codes < 0
        distributions[np.flatnonzero(given), codes[given]] = 1.0
        if first_row is not None:
            start, stop = np.searchsorted(self.numbers, [first_row, first_row + n_rows])
            places = self.numbers[start:stop] - first_row
            if ((fitted.round_[start:stop] == 0) != given[places]).any():
                raise ValueError("rows that the fit saw have changed since: others are labelled now. Fit again.")
            distributions[places] = fitted.label_distributions_[start:stop]
            row_certainty[places] = fitted.certainty_[start:stop]
            confidence[places] = fitted.confidence_[start:stop]
            codes[places], todo[places] = self._codes[start:stop], False
        others = np.flatnonzero(todo)
        for block in row_blocks(len(others), ROWS_AT_ONCE):
            rows = others[block]
            codes[rows], distributions[rows], found = fitted.predict_all(take_rows(X, rows))
            confidence[rows], row_certainty[rows] = found, certainty(distributions[rows])
        if given_codes is not None:
            codes = self._without_abstentions(codes, confidence, given)
        return RowLabels(
            codes=codes,
            given=None if given_codes is None else given,
            distributions=distributions,
            certainty=row_certainty,
            confidence=confidence,
        )

    def _without_abstentions(self, codes: np.ndarray, confidence: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The class numbers, -1 where a row that was not given is less confident than ``abstain_below``."""
        least = self.estimator.abstain_below
        return codes if least is None else np.where((confidence < least) & ~given, -1, codes)


def slim(estimator: OTP, n_rows: float) -> OTP:
    """Fix how new rows are predicted, and drop what only fitting needs, the records of the rounds among it."""
    estimator.freeze(n_rows, n_jobs=1)  # a worker runs as many tasks as it has threads
    estimator.rounds_ = []
    return deepcopy(estimator)  # boosted trees change their form when copied: all workers should have the same
