"""Methods without propagation: a classifier trained on the labelled rows, or self-trained."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._labels import Labels
from otprop._validation import check_choice, check_count, check_number

NAMED = ("logistic", "extra_trees")


def make_classifier(classifier: Any, random_state: Any = None, *, sparse_rows: bool = False) -> Any:
    """An unfitted classifier from a name or a clone of a scikit-learn classifier; sparse rows are scaled only."""
    if isinstance(classifier, str):
        check_choice("classifier", classifier, NAMED)
        if classifier == "extra_trees":
            return ExtraTreesClassifier(n_estimators=200, random_state=random_state)
        return make_pipeline(StandardScaler(with_mean=not sparse_rows), LogisticRegression(max_iter=1000))
    if isinstance(classifier, type) or not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
        raise TypeError(
            f"classifier must be one of {', '.join(map(repr, NAMED))} or a scikit-learn classifier with fit and "
            f"predict, not a class; got {classifier!r} of type {type(classifier).__name__}."
        )
    return clone(classifier)


def class_shares(model: Any, X: Any, n_classes: int) -> np.ndarray:
    """Class probabilities by a classifier fitted on class numbers; one-hot where it has only `predict`."""
    if not hasattr(model, "predict_proba"):
        return np.eye(n_classes)[np.asarray(model.predict(X), dtype=np.intp)]
    out = np.zeros((X.shape[0], n_classes))
    out[:, np.asarray(model.classes_, dtype=np.intp)] = model.predict_proba(X)
    sums = out.sum(axis=1, keepdims=True)
    proper = np.isfinite(sums) & (sums > 0)
    return np.where(proper, out / np.where(proper, sums, 1.0), 1.0 / n_classes)


class Supervised(Propagator):
    """A classifier trained on the labelled rows alone.

    Parameters
    ----------
    classifier : "logistic", "extra_trees" or a scikit-learn classifier, default="logistic"
        Logistic regression on standardised features, 200 extremely randomised trees, or any classifier.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.
    random_state : int, RandomState or None, default=None
        For the named classifiers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), rows sum to 1
    classifier_ : the fitted classifier, on class numbers; None if only one class is labelled

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import Supervised
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> Supervised().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(self, classifier: Any = "logistic", *, unlabeled: Any = "auto", random_state: Any = None) -> None:
        self.classifier = classifier
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on the labelled rows and label every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), labels, and the marker where unlabelled

        Returns
        -------
        self
        """
        model = make_classifier(self.classifier, check_random_state(self.random_state), sparse_rows=sparse.issparse(X))
        X, labels = self._read(X, y, accept_sparse="csr")
        self.classes_ = labels.classes
        self.classifier_ = self._train(model, X, labels) if len(labels.classes) > 1 else None
        shares = self._class_shares(X)
        return self._set_labels(labels, shares.argmax(axis=1), shares)

    def _train(self, model: Any, X: Any, labels: Labels) -> Any:
        return model.fit(X[labels.labeled], labels.codes[labels.labeled])

    def _class_shares(self, X: Any) -> np.ndarray:
        if self.classifier_ is None:
            return np.ones((X.shape[0], 1))
        return class_shares(self.classifier_, X, len(self.classes_))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; one-hot if the classifier has none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        return self._class_shares(self._read_rows(X, accept_sparse="csr", reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SelfTraining(Supervised):
    """A classifier trained again on its confident predictions, by scikit-learn's ``SelfTrainingClassifier``.

    Parameters
    ----------
    classifier : "logistic", "extra_trees" or a scikit-learn classifier with `predict_proba`, default="logistic"
    threshold : float, default=0.75
        Predictions at least this probable are used as labels, in [0, 1).
    max_iter : int, default=10
        Most rounds.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.
    random_state : int, RandomState or None, default=None
        For the named classifiers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), rows sum to 1
    classifier_ : the fitted classifier, on class numbers; None if only one class is labelled
    n_iter_ : int, number of times the classifier was trained

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import SelfTraining
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> SelfTraining().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(
        self,
        classifier: Any = "logistic",
        *,
        threshold: float = 0.75,
        max_iter: int = 10,
        unlabeled: Any = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(classifier, unlabeled=unlabeled, random_state=random_state)
        self.threshold = threshold
        self.max_iter = max_iter

    def check_parameters(self) -> None:
        check_number("threshold", self.threshold, least=0, below=1)
        check_count("max_iter", self.max_iter)

    def fit(self, X: Any, y: Any) -> Self:
        """Train on the labelled rows, then on confident predictions too, and label every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), labels, and the marker where unlabelled

        Returns
        -------
        self
        """
        self.check_parameters()
        self.n_iter_ = 1
        return super().fit(X, y)

    def _train(self, model: Any, X: Any, labels: Labels) -> Any:
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"classifier must have predict_proba for self-training; got {model!r}. Wrap it in scikit-learn's "
                "CalibratedClassifierCV, or use one that has."
            )
        if labels.unlabeled.size == 0:  # scikit-learn would warn
            return super()._train(model, X, labels)
        trainer = SelfTrainingClassifier(model, threshold=self.threshold, max_iter=self.max_iter)
        trainer.fit(X, labels.codes)
        self.n_iter_ = trainer.n_iter_ + 1
        return trainer
