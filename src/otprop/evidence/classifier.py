"""Classifiers trained on the labelled rows, asked about the others: they know which features matter."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from otprop._saving import saved_as
from otprop.evidence.held_out import FOLDS, HeldOut
from otprop.evidence.output import SourceOutput, log_floored
from otprop.evidence.weights import relative

N_TREES = 100
MOST_OUT_OF_BAG = 5000  # labelled rows that the out-of-bag forest is grown from
MOST_LINEAR = 5000  # labelled rows that the linear classifier is trained on
LINEAR_PENALTY = 10.0  # C times the mean squared length of a row
ROWS_AT_ONCE = 100_000
THREADS_PAY = 200_000  # entries of X from which on threads are worth their start
PROBABILITY_FLOOR = 0.005
MANY_CLASSES = "The number of unique classes"  # scikit-learn doubts them where each has one label or two
FARTHEST = 1e18  # standard deviations, where single precision still has squares


class Source(Protocol):
    """A source that learns once, from the given labels."""

    name: str

    def fit(self, codes: np.ndarray, weights: np.ndarray, hidden: HeldOut) -> SourceOutput:
        """Train on the labelled rows; say what is thought of all of them, and of the hidden ones unseen."""
        ...

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Logarithms of the class probabilities of new rows."""
        ...


@saved_as("evidence.features")
class Features:
    """Columns with mean 0 and variance 1 in single precision, whatever their units; sparse ones keep their zeros."""

    def __init__(self, X: Any) -> None:
        if sp.issparse(X):
            largest = abs(X).max()
            self._centre: np.ndarray | None = None
            self._scale: Any = float(largest) if largest > 0 else 1.0
            return
        largest = np.abs(X).max(axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        self._largest = largest
        with np.errstate(under="ignore"):
            mean = np.mean(X / largest, axis=0)
            spread = np.sqrt(np.mean((X / largest - mean) ** 2, axis=0))
        varies = spread > 64 * np.finfo(np.float64).eps
        self._centre, self._scale = mean, np.where(varies, spread, np.inf)

    def __call__(self, X: Any) -> Any:
        if self._centre is None:
            scaled = sp.csr_array(X, dtype=np.float64, copy=True)
            with np.errstate(under="ignore", over="ignore"):
                scaled.data = np.clip(scaled.data / self._scale, -FARTHEST, FARTHEST)
            return scaled.astype(np.float32)
        with np.errstate(under="ignore", over="ignore"):
            scaled = (np.clip(X / self._largest, -1e300, 1e300) - self._centre) / self._scale
        return np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)


@saved_as("evidence.forest", drops=("_X",))
class ForestSource:
    """Extra trees: the forest answers for the unlabelled rows, a bootstrapped twin for the hidden ones (out of bag)."""

    name = "forest"

    def __init__(self, features: Features, X: Any, n_classes: int, seed: int, n_jobs: int | None) -> None:
        self._features, self._X, self._n_classes = features, X, n_classes
        self._seed, self._n_jobs = seed, n_jobs if X.shape[0] * X.shape[1] >= THREADS_PAY else 1

    def fit(self, codes: np.ndarray, weights: np.ndarray, hidden: HeldOut) -> SourceOutput:
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        rows = self._features(self._X[labeled])
        self._forest = ExtraTreesClassifier(N_TREES, random_state=self._seed, n_jobs=self._n_jobs)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
            self._forest.fit(rows, codes[labeled], sample_weight=relative(weights[labeled]))
        unseen = self._out_of_bag(codes, weights, labeled, hidden)
        return SourceOutput(_in_blocks(self.predict_log_proba, self._X, self._n_classes), unseen)

    def _out_of_bag(self, codes: np.ndarray, weights: np.ndarray, labeled: np.ndarray, hidden: HeldOut) -> np.ndarray:
        if len(hidden) == 0:
            return np.empty((0, self._n_classes))
        rng = np.random.default_rng(self._seed)
        others = np.setdiff1d(labeled, hidden.rows)
        room = max(MOST_OUT_OF_BAG - len(hidden), 0)
        if len(others) > room:
            others = np.sort(rng.choice(others, room, replace=False))
        rows = np.concatenate([hidden.rows, others])
        twin = ExtraTreesClassifier(
            N_TREES, bootstrap=True, oob_score=True, random_state=self._seed, n_jobs=self._n_jobs
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a row that no tree left out has no estimate
            with np.errstate(invalid="ignore", divide="ignore"):
                twin.fit(self._features(self._X[rows]), codes[rows], sample_weight=relative(weights[rows]))
        found = np.nan_to_num(np.atleast_2d(twin.oob_decision_function_)[: len(hidden)])
        found = _all_classes(found, twin.classes_, self._n_classes) * hidden.own_lift()
        return log_floored(_normalised(found), PROBABILITY_FLOOR)

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        found = self._forest.predict_proba(self._features(rows))
        return log_floored(_all_classes(found, self._forest.classes_, self._n_classes), PROBABILITY_FLOOR)


@saved_as("evidence.classifier", drops=("_X",))
class ClassifierSource:
    """Any classifier of scikit-learn's: the hidden rows are answered for by copies trained without their fold.

    Parameters
    ----------
    name : str
    classifier : with ``fit``, ``predict_proba`` and ``classes_``
    X : rows
    classes : ndarray of shape (n_classes,), what it is shown for each class number
    """

    def __init__(self, name: str, classifier: Any, X: Any, classes: np.ndarray) -> None:
        self.name, self._classifier, self._X, self._classes = name, classifier, X, classes
        self._n_classes = len(classes)
        self._takes_weights = has_fit_parameter(classifier, "sample_weight")

    def fit(self, codes: np.ndarray, weights: np.ndarray, hidden: HeldOut) -> SourceOutput:
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        group = hidden.fold % FOLDS
        unseen = np.zeros((len(hidden), self._n_classes))
        for fold in range(FOLDS):
            here = np.flatnonzero(group == fold)
            shown = np.setdiff1d(labeled, hidden.rows[here])
            if len(here) == 0:
                continue
            unseen[here] = self._ask(self._train(shown, codes, weights), self._X[hidden.rows[here]])
        self._model = self._train(labeled, codes, weights)
        return SourceOutput(
            _in_blocks(self.predict_log_proba, self._X, self._n_classes), log_floored(unseen, PROBABILITY_FLOOR)
        )

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        return log_floored(self._ask(self._model, rows), PROBABILITY_FLOOR)

    def _train(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
        if len(np.unique(codes[rows])) < 2:  # nothing to tell apart
            return _Shares(codes[rows], self._classes)
        same = (weights[rows] == weights[rows[0]]).all()
        kept = {} if same or not self._takes_weights else {"sample_weight": relative(weights[rows])}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
            with self._named():
                model = clone(self._classifier)
                model.fit(self._X[rows], self._classes[codes[rows]], **kept)
        return model

    def _ask(self, model: Any, X: Any) -> np.ndarray:
        with self._named():
            found, theirs = np.asarray(model.predict_proba(X), dtype=np.float64), np.asarray(model.classes_).tolist()
        known = {label: code for code, label in enumerate(self._classes.tolist())}
        strange = [label for label in theirs if label not in known]
        if strange:
            raise ValueError(
                f"{self.name}, a classifier in evidence, knows the class {strange[0]!r}, which y does not have; "
                f"the classes of y are {self._classes.tolist()}."
            )
        if found.shape != (X.shape[0], len(theirs)):
            raise ValueError(
                f"{self.name}, a classifier in evidence, gave probabilities of shape {found.shape} for {X.shape[0]} "
                f"rows and its {len(theirs)} classes; one line a row and one column a class are needed."
            )
        if not (np.isfinite(found).all() and (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0, atol=1e-3)):
            raise ValueError(
                f"{self.name}, a classifier in evidence, gave what are no probabilities: its predict_proba must be "
                f"finite, 0 or more, and sum to 1 in every line; got values from {found.min()} to {found.max()}."
            )
        return _all_classes(found, np.array([known[label] for label in theirs]), self._n_classes)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """An error of the classifier says whose it is."""
        try:
            yield
        except Exception as error:
            raise ValueError(f"{self.name}, a classifier in evidence, failed: {error}") from error


@saved_as("evidence.linear", drops=("_X",))
class LinearSource(ClassifierSource):
    """Logistic regression on standardised columns, of some of the labelled rows where they are many."""

    def __init__(self, features: Features, X: Any, n_classes: int, seed: int) -> None:
        self._seed = seed
        super().__init__("linear", _ScaledLogistic(features), X, np.arange(n_classes))

    def _train(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
        if len(rows) > MOST_LINEAR:
            rows = np.sort(np.random.default_rng(self._seed).choice(rows, MOST_LINEAR, replace=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a source need not be trained to the last digit
            return super()._train(rows, codes, weights)


@saved_as("evidence.shares")
class _Shares:
    """SourceOutput of every row what share of the labels each class has."""

    def __init__(self, codes: np.ndarray, classes: np.ndarray) -> None:
        counts = np.bincount(codes, minlength=len(classes)) + 1.0
        self.classes_, self._shares = classes, counts / counts.sum()

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile(self._shares, (X.shape[0], 1))


@saved_as("evidence.scaled_logistic")
class _ScaledLogistic:
    """Logistic regression behind `Features`, penalised by how long the rows are."""

    def __init__(self, features: Features) -> None:
        self._features = features

    def __sklearn_clone__(self) -> _ScaledLogistic:
        return _ScaledLogistic(self._features)

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        rows = self._features(X)
        length = float((rows.multiply(rows) if sp.issparse(rows) else rows * rows).sum()) / rows.shape[0]
        penalty = min(LINEAR_PENALTY / length, 1.0 if not sp.issparse(rows) else np.inf) if length > 0 else 1.0
        self._model = LogisticRegression(C=penalty, max_iter=200, tol=1e-3)
        self._model.fit(rows, y, sample_weight=sample_weight)
        self.classes_ = self._model.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self._model.predict_proba(self._features(X)))


def _in_blocks(answer: Any, X: Any, n_classes: int) -> np.ndarray:
    found = np.empty((X.shape[0], n_classes), dtype=np.float32)
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        found[start : start + ROWS_AT_ONCE] = answer(X[start : start + ROWS_AT_ONCE])
    return found


def _all_classes(found: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    whole = np.zeros((len(found), n_classes))
    whole[:, np.asarray(classes, dtype=np.intp)] = found
    return whole


def _normalised(shares: np.ndarray) -> np.ndarray:
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / shares.shape[1])
