"""Methods that use the labelled rows only: the nearest one, and a vote weighted by the Gibbs kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_number
from otprop_paper.baselines._frame import Frame, blocks, typical_distance


def class_potentials(sq: np.ndarray, codes: np.ndarray, n_classes: int, epsilon: float) -> np.ndarray:
    """Log of the sum of exp(-d^2 / epsilon) over the labelled rows of each class.

    The largest term is taken out of each sum, so that nothing underflows however small `epsilon` is.

    Parameters
    ----------
    sq : ndarray of shape (n_rows, n_labelled), squared distances
    codes : ndarray of int of shape (n_labelled,), class numbers; every class occurs
    n_classes : int
    epsilon : float

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
    """
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n_classes))
    exponents = sq[:, order] / -epsilon
    top = np.maximum.reduceat(exponents, starts, axis=1)
    exponents -= np.repeat(top, np.diff(np.append(starts, len(codes))), axis=1)
    return top + np.log(np.add.reduceat(np.exp(exponents), starts, axis=1))


class LabeledRowsPropagator(Propagator):
    """Base of the methods that predict training rows and new rows from the labelled rows."""

    def fit(self, X: Any, y: Any) -> Self:
        """Label every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), labels, and the marker where unlabelled

        Returns
        -------
        self
        """
        self.check_parameters()
        X, labels = self._read(X, y, accept_sparse="csr")
        self._frame = Frame.fit(X)
        rows = self._frame.transform(X)
        self._labeled = rows[labels.labeled]
        self._codes = labels.codes[labels.labeled]
        self.classes_ = labels.classes
        self._set_width(rows)
        shares = self._shares(rows)
        return self._set_labels(labels, shares.argmax(axis=1), shares)

    def _set_width(self, rows: Any) -> None:
        """Set the width of the kernel, where there is one."""

    def _shares(self, rows: Any) -> np.ndarray:
        """Class probabilities of scaled rows."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows, from the labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        X = self._read_rows(X, accept_sparse="csr", reset=False)
        return self._shares(self._frame.transform(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NearestNeighbor(LabeledRowsPropagator):
    """The class of the nearest labelled row.

    Parameters
    ----------
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), one-hot

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import NearestNeighbor
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> NearestNeighbor().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(self, *, unlabeled: Any = "auto") -> None:
        self.unlabeled = unlabeled

    def _shares(self, rows: Any) -> np.ndarray:
        nearest = NearestNeighbors(n_neighbors=1).fit(self._labeled).kneighbors(rows, return_distance=False)[:, 0]
        return np.eye(len(self.classes_))[self._codes[nearest]]


class KernelVote(LabeledRowsPropagator):
    """All labelled rows vote with the weight exp(-d^2 / epsilon): optimal transport without the transport.

    The votes are summed per class in log space, so no `epsilon` leaves a row without a vote.

    Parameters
    ----------
    epsilon : float or "auto", default="auto"
        Width of the kernel, in units of squared distance; "auto" is twice the squared median distance of a row to
        its nearest other row.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), rows sum to 1
    epsilon_ : float, the width used

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import KernelVote
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> KernelVote(epsilon=0.001).fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(self, epsilon: float | str = "auto", *, unlabeled: Any = "auto") -> None:
        self.epsilon = epsilon
        self.unlabeled = unlabeled

    def check_parameters(self) -> None:
        check_number("epsilon", self.epsilon, above=0, words=("auto",))

    def _set_width(self, rows: Any) -> None:
        extent = self._frame.extent
        if self.epsilon == "auto":
            nearest = NearestNeighbors(n_neighbors=1).fit(rows).kneighbors()[0][:, 0]
            epsilon = 2.0 * typical_distance(nearest, 1.0) ** 2
            self.epsilon_ = epsilon * extent * extent
        else:
            epsilon = float(self.epsilon) / extent / extent
            self.epsilon_ = float(self.epsilon)
        self._epsilon = min(max(epsilon, 1e-50), 1e50)

    def _shares(self, rows: Any) -> np.ndarray:
        n_classes = len(self.classes_)
        out = np.empty((rows.shape[0], n_classes))
        for part in blocks(rows.shape[0], self._labeled.shape[0]):
            sq = euclidean_distances(rows[part], self._labeled, squared=True)
            potentials = class_potentials(sq, self._codes, n_classes, self._epsilon)
            potentials -= potentials.max(axis=1, keepdims=True)
            out[part] = np.exp(potentials)
        return out / out.sum(axis=1, keepdims=True)
