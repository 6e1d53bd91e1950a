"""Classifier sources: scikit-learn classifiers trained on the labelled rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from otprop._saving import saved_as
from otprop._validation import InputError
from otprop.evidence.base import SourceOutput, log_floored
from otprop.evidence.held_out import N_FOLDS, HeldOut
from otprop.evidence.scaling import ColumnScaler, ScaledRows
from otprop.evidence.weights import scale_to_mean_one
from otprop.geometry.parallel import row_blocks, rows_per_block, single_threaded

BLOCK_ENTRIES = 2**22  # class probabilities computed at once
PROBABILITY_FLOOR = 0.005
MANY_CLASSES_WARNING = "The number of unique classes"  # scikit-learn's warning if each class has one or two labels


@saved_as("evidence.classifier")
class ClassifierSource:
    """Any scikit-learn classifier; held-out rows are predicted by clones trained without their fold.

    Parameters
    ----------
    name : str
    classifier : with ``fit``, ``predict_proba`` and ``classes_``
    X : rows
    classes : ndarray of shape (n_classes,), the labels that the classifier is trained on, by class number
    metadata : mapping of str to values, passed to its ``fit``; arrays of one entry per row are cut to labelled rows
    """

    def __init__(
        self, name: str, classifier: Any, X: Any, classes: np.ndarray, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.name, self._classifier, self._X, self._classes = name, classifier, X, classes
        self._n_classes, self._metadata = len(classes), dict(metadata or {})
        self._takes_weights = has_fit_parameter(classifier, "sample_weight")

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Train one clone per fold for the held-out rows, and one on all labelled rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        group = held_out.fold % self._n_trainings(len(labeled))
        found = np.zeros((len(held_out), self._n_classes))
        for fold in range(N_FOLDS):
            here = np.flatnonzero(group == fold)
            if len(here) == 0:
                continue
            model = self._train(np.setdiff1d(labeled, held_out.hidden_with(here)), codes, weights)
            found[here] = self._predict(model, self._X[held_out.rows[here]])
        self._model = self._train(labeled, codes, weights)
        rows = predict_in_blocks(self._log_proba, self._X, self._n_classes)
        return SourceOutput(rows, log_floored(found, PROBABILITY_FLOOR))

    def _n_trainings(self, n_labels: int) -> int:
        """Number of groups of held-out rows; one clone predicts each group."""
        return N_FOLDS

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        return self._log_proba(rows)

    def _log_proba(self, rows: Any) -> np.ndarray:
        return log_floored(self._predict(self._model, rows), PROBABILITY_FLOOR)

    def _train(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
        if len(np.unique(codes[rows])) < 2:  # one class, or none if the fold holds all other labels
            return _ClassShares(codes[rows], self._classes)
        metadata = {name: _take(value, rows, len(codes)) for name, value in self._metadata.items()}
        if self._takes_weights and "sample_weight" not in metadata and not (weights[rows] == weights[rows[0]]).all():
            metadata["sample_weight"] = scale_to_mean_one(weights[rows])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MANY_CLASSES_WARNING, UserWarning)
            with self._named_errors():
                model = clone(self._classifier)
                model.fit(self._X[rows], self._classes[codes[rows]], **metadata)
        return model

    def _predict(self, model: Any, X: Any) -> np.ndarray:
        with self._named_errors():
            found, theirs = np.asarray(model.predict_proba(X), dtype=np.float64), np.asarray(model.classes_).tolist()
        known = {label: code for code, label in enumerate(self._classes.tolist())}
        unknown = [label for label in theirs if label not in known]
        if unknown:
            raise InputError(
                f"{self.name}, a classifier in evidence, knows the class {unknown[0]!r}, which y does not have; "
                f"the classes of y are {self._classes.tolist()}."
            )
        if found.shape != (X.shape[0], len(theirs)):
            raise InputError(
                f"{self.name}, a classifier in evidence, gave probabilities of shape {found.shape} for {X.shape[0]} "
                f"rows and its {len(theirs)} classes; expected one row per row of X and one column per class."
            )
        if not (np.isfinite(found).all() and (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0, atol=1e-3)):
            raise InputError(
                f"{self.name}, a classifier in evidence, gave values that are not probabilities: predict_proba must "
                f"be finite, 0 or more, and sum to 1 in every row; got values from {found.min()} to {found.max()}."
            )
        return spread_over_classes(found, np.array([known[label] for label in theirs]), self._n_classes)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Put the name of the classifier before its errors."""
        try:
            yield
        except Exception as error:
            raise InputError(f"{self.name}, a classifier in evidence, failed: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_X", "_metadata")}


class ScaledSource(ClassifierSource):
    """A built-in classifier on scaled rows: trained in one thread, on a sample if there are many labelled rows.

    Parameters
    ----------
    name : str
    model : ScaledModel
    scaled : ScaledRows
    n_classes, seed : int
    max_labels : int, the largest number of labelled rows to train on
    """

    def __init__(
        self, name: str, model: ScaledModel, scaled: ScaledRows, n_classes: int, seed: int, max_labels: int
    ) -> None:
        super().__init__(name, model, scaled.rows, np.arange(n_classes))
        self._scaler, self._seed, self._max_labels = scaled.scaler, seed, max_labels

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Fit in one thread: it is faster for small matrices and trees, and its products always round the same."""
        with single_threaded(), sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
            output = super().fit(codes, weights, held_out)
        if isinstance(self._model, ScaledModel):
            self._model.set_scaler(self._scaler)
        return output

    def _train(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
        if len(rows) > self._max_labels:
            rows = np.sort(np.random.default_rng(self._seed).choice(rows, self._max_labels, replace=False))
        return super()._train(rows, codes, weights)


class ScaledModel(ABC):
    """A classifier trained on scaled rows; with a scaler, it scales new rows itself."""

    _scaler: ColumnScaler | None = None
    _model: Any
    classes_: np.ndarray

    def set_scaler(self, scaler: ColumnScaler) -> None:
        """Set the scaler, so that later calls take unscaled rows."""
        self._scaler = scaler

    @abstractmethod
    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        """Train on scaled rows."""

    @abstractmethod
    def __sklearn_clone__(self) -> ScaledModel: ...

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self._model.predict_proba(X if self._scaler is None else self._scaler.transform(X)))


@saved_as("evidence.class_shares")
class _ClassShares:
    """Predicts the class shares of the labels for every row; used if only one class is labelled."""

    def __init__(self, codes: np.ndarray, classes: np.ndarray) -> None:
        counts = np.bincount(codes, minlength=len(classes)) + 1.0
        self.classes_, self._shares = classes, counts / counts.sum()

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile(self._shares, (X.shape[0], 1))


def _take(value: Any, rows: np.ndarray, n_rows: int) -> Any:
    """The entries of these rows, if the value has one entry per row; otherwise the value."""
    return np.asarray(value)[rows] if np.ndim(value) >= 1 and len(value) == n_rows else value


def predict_in_blocks(predict: Callable[[Any], np.ndarray], X: Any, n_classes: int) -> np.ndarray:
    """Predictions for all rows in single precision, computed block by block to bound the memory."""
    found = np.empty((X.shape[0], n_classes), dtype=np.float32)
    for block in row_blocks(X.shape[0], rows_per_block(n_classes, BLOCK_ENTRIES)):
        found[block] = predict(X[block])
    return found


def spread_over_classes(found: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """One column per class; zero for classes that the classifier has not seen."""
    whole = np.zeros((len(found), n_classes))
    whole[:, np.asarray(classes, dtype=np.intp)] = found
    return whole
