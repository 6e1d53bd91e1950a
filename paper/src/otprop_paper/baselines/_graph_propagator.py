"""The base of label propagation and label spreading: parameters, graph, fit and prediction."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_choice, check_count, check_number
from otprop_paper.baselines._frame import Frame, blocks
from otprop_paper.baselines.graph import (
    SMALLEST_SIGMA,
    Solution,
    auto_sigma,
    distributions,
    matrix_dtype,
    one_hot,
    squared_distances,
)


class GraphPropagator(Propagator):
    """Base of the two methods on an "rbf" or a "knn" graph."""

    kernel: str
    sigma: Any
    n_neighbors: int
    max_iter: int
    tol: float

    KERNELS: ClassVar = ("rbf", "knn")

    def check_parameters(self) -> None:
        check_choice("kernel", self.kernel, self.KERNELS)
        check_number("sigma", self.sigma, above=0, words=("auto",))
        check_count("n_neighbors", self.n_neighbors)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, above=0)

    def _squared_distances(self, dtype: Any = None) -> tuple[np.ndarray, float]:
        """Squared distances of the scaled rows, and sigma in the same units."""
        sq = squared_distances(self._rows, dtype=dtype or matrix_dtype(self._rows.shape[0]))
        sigma = auto_sigma(sq) if self.sigma == "auto" else float(self.sigma) / self._frame.extent
        sigma = min(max(sigma, SMALLEST_SIGMA), 1e12)
        self.sigma_ = sigma * self._frame.extent if self.sigma == "auto" else float(self.sigma)
        self._sigma = sigma
        return sq, sigma

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
        self._rows = self._frame.transform(X)
        Y = one_hot(labels.codes, len(labels.classes))
        solution = self._solve_rbf(Y) if self.kernel == "rbf" else self._solve_knn(Y)
        solution.warn(type(self).__name__, self.max_iter, self.tol)
        self.n_iter_ = solution.n_iter
        shares = distributions(solution.scores, Y)
        return self._set_labels(labels, shares.argmax(axis=1), shares)

    def _solve_rbf(self, Y: np.ndarray) -> Solution:
        """The scores on the Gaussian graph."""
        raise NotImplementedError

    def _solve_knn(self, Y: np.ndarray) -> Solution:
        """The scores on the graph of nearest neighbours."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows: the average of the training rows' distributions, weighted by the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        X = self._read_rows(X, accept_sparse="csr", reset=False)
        scaled = self._frame.transform(X)
        if self.kernel == "knn":
            k = min(self.n_neighbors, self._rows.shape[0])
            neighbors = NearestNeighbors(n_neighbors=k).fit(self._rows).kneighbors(scaled, return_distance=False)
            return self.label_distributions_[neighbors].mean(axis=1)
        out = np.empty((X.shape[0], len(self.classes_)))
        for rows in blocks(X.shape[0], self._rows.shape[0]):
            weights = euclidean_distances(scaled[rows], self._rows, squared=True) * (-0.5 / self._sigma**2)
            weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            out[rows] = weights @ self.label_distributions_
        return out / out.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
