"""What label propagation and label spreading share around their kernels: parameters, sigma and new rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_choice, check_count, check_number
from otprop.baselines._frame import Frame, blocks
from otprop.baselines.graph import SMALLEST_SIGMA, auto_sigma, matrix_dtype, squared_distances


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
        """Squared distances of the placed rows, and sigma in their frame."""
        sq = squared_distances(self._rows, dtype=dtype or matrix_dtype(self._rows.shape[0]))
        sigma = auto_sigma(sq) if self.sigma == "auto" else float(self.sigma) / self._frame.extent
        sigma = min(max(sigma, SMALLEST_SIGMA), 1e12)
        self.sigma_ = sigma * self._frame.extent if self.sigma == "auto" else float(self.sigma)
        self._sigma = sigma
        return sq, sigma

    def _place(self, X: Any) -> None:
        self._frame = Frame.fit(X)
        self._rows = self._frame.transform(X)

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
        placed = self._frame.transform(X)
        if self.kernel == "knn":
            k = min(self.n_neighbors, self._rows.shape[0])
            neighbors = NearestNeighbors(n_neighbors=k).fit(self._rows).kneighbors(placed, return_distance=False)
            return self.label_distributions_[neighbors].mean(axis=1)
        out = np.empty((X.shape[0], len(self.classes_)))
        for rows in blocks(X.shape[0], self._rows.shape[0]):
            weights = euclidean_distances(placed[rows], self._rows, squared=True) * (-0.5 / self._sigma**2)
            weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            out[rows] = weights @ self.label_distributions_
        return out / out.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
