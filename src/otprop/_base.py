"""What every method of this package shares: a face like scikit-learn's semi-supervised estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from otprop._labels import Labels, encode_labels


class Propagator(ClassifierMixin, BaseEstimator):
    """Base of all estimators here: fit on rows of which some are unlabelled, label every one.

    A subclass has a parameter `unlabeled`, calls `_read` and `_set_labels` in `fit` and defines
    `predict_proba`.
    """

    unlabeled: Any

    def _read(self, X: Any, y: Any, **checks: Any) -> tuple[Any, Labels]:
        """Validate both inputs; labels of any type become class numbers."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        checks = {"dtype": np.float64, "ensure_min_samples": 2} | checks
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums X to see whether it is finite
            X = validate_data(self, X, **checks)
        labels = encode_labels(y, self.unlabeled)
        check_consistent_length(X, labels.codes)
        return X, labels

    def _set_labels(self, labels: Labels, codes: np.ndarray, distributions: np.ndarray) -> Self:
        """Set the attributes that all methods have; rows given a label keep it with certainty."""
        given = labels.labeled
        codes, distributions = np.array(codes), np.array(distributions, dtype=np.float64)
        codes[given] = labels.codes[given]
        distributions[given] = np.eye(len(labels.classes))[labels.codes[given]]
        self.classes_ = labels.classes
        self.transduction_ = labels.decode(codes)
        self.label_distributions_ = distributions
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows, in the order of ``classes_``."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), with labels from ``classes_``
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
