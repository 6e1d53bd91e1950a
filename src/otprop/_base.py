"""Base class of all methods: an interface like that of scikit-learn's semi-supervised estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from otprop._labels import Labels, encode_labels, find_unlabeled
from otprop._validation import InputError, ParameterError
from otprop.geometry.scaling import narrow_indices


class Propagator(ClassifierMixin, BaseEstimator):
    """Base of all estimators: fit on partly labelled rows and label every row.

    A subclass has a parameter `unlabeled`, calls `_read` and `_set_labels` in `fit` and defines
    `predict_proba`.
    """

    unlabeled: Any

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used; `fit` calls it."""

    def _read(self, X: Any, y: Any, **checks: Any) -> tuple[Any, Labels]:
        """Validate both inputs; labels of any type become class numbers."""
        if y is None:
            raise InputError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        X = self._read_rows(X, ensure_min_samples=2, **checks)
        labels = encode_labels(y, self.unlabeled)
        if len(labels.codes) != X.shape[0]:
            raise InputError(
                f"X and y have inconsistent numbers of samples: X has {X.shape[0]} rows and y {len(labels.codes)}. "
                "Give y one entry per row, with a marker such as -1 or None where a row is unlabelled."
            )
        return X, labels

    def _read_rows(self, X: Any, **checks: Any) -> Any:
        """Validate X; name the column of a cell that is not a number."""
        if isinstance(X, (list, tuple)) and not X:
            raise InputError(f"X is an empty {type(X).__name__}: give at least one row.")
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums X to see whether it is finite
                return narrow_indices(validate_data(self, X, dtype=np.float64, **checks))
        except (ValueError, TypeError) as error:
            found = _first_text(X)
            if found is None:
                raise InputError(_refused(X, str(error))) from error
            raise InputError(
                f"X must be numbers; {found}. Turn it into numbers (OneHotEncoder, or skrub's TableVectorizer for a "
                "whole table), remove it, or pass the table to otprop.label, which does so itself."
            ) from error

    def _set_labels(self, labels: Labels, codes: np.ndarray, distributions: np.ndarray) -> Self:
        """Set the attributes that all methods have; given labels are kept. `distributions` are not copied."""
        given = labels.labeled
        codes = np.array(codes)
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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`; every row needs its true label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), without a marker of unlabelled rows
        sample_weight : array-like of shape (n_rows,) or None

        Returns
        -------
        float
        """
        missing = find_unlabeled(y, self.unlabeled)[1]
        if missing.any():
            raise ParameterError(
                "y",
                f"holds {missing.sum()} of {len(missing)} rows without a label, which no prediction can be compared "
                "with. Score labelled rows only: cross_val_score(..., cv=HiddenLabelSplit()) and HiddenLabelSearch of "
                "otprop.model_selection do.",
            )
        return float(super().score(X, y, sample_weight))


def _refused(X: Any, reason: str) -> str:
    """Why scikit-learn refuses X, with what to do about it where it does not say so in one line."""
    if reason.startswith("Input X contains NaN"):
        return (
            "Input X contains NaN. Fill missing values first, as SimpleImputer does, or give the table to "
            "otprop.label, which takes them as they are."
        )
    if reason.startswith("Input X contains infinity"):
        cells = np.empty((0, 0)) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        infinite = np.argwhere(np.isinf(cells))
        where = ", first in row {}, column {}".format(*infinite[0]) if len(infinite) else ""
        return (
            f"Input X contains infinity or a value that is too large for a float{where}. Replace it, or drop the row."
        )
    if X is None:
        return "X is None: pass the table of features, one row per row to label."
    if reason.startswith("Found array with 0 sample(s)"):
        return f"X has no rows: its shape is {np.shape(X)}. Pass one row per row to label."
    if reason.startswith("Expected 2D array"):
        advice = "Reshape your data: X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a single row."
        return f"Expected 2D array, got X of shape {np.shape(X)}. {advice}"
    if reason.startswith("Complex data not supported"):
        return "Complex data not supported: give X as real numbers."
    return reason


def _first_text(X: Any) -> str | None:
    """A description of the first cell of X that is not a number; None if all are numbers."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        columns = [(f"the column {name!r}", X[name]) for name in X.columns]
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        columns = [(f"column {number}", X[:, number]) for number in range(X.shape[1])]
    else:
        return None
    for name, column in columns:
        values = np.asarray(column)
        if values.dtype.kind in "mM":
            return f"{name} holds dates or durations ({values.dtype})"
        for value in values if values.dtype.kind in "OUS" else ():
            if isinstance(value, str) and not _is_number(value):
                return f"{name} holds {value[:40]!r}"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
