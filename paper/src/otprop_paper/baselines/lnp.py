"""Linear neighbourhood propagation (Wang & Zhang 2007): labels follow the weights that reconstruct each row."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_count, check_number
from otprop_paper.baselines._frame import Frame, blocks
from otprop_paper.baselines._qp import simplex_programs
from otprop_paper.baselines.graph import distributions, iterate, one_hot

RIDGE = 0.1  # of the trace, where neighbours outnumber features
LEAST_RIDGE = 1e-9  # of the trace, always: repeated neighbours make the Gram matrix singular


def local_grams(X: np.ndarray, targets: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Gram matrices G_jl = (t - x_j).(t - x_l) over the neighbours of each target, with the ridge added.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    targets : ndarray of shape (n_targets, n_features)
    neighbors : ndarray of int of shape (n_targets, k), row numbers of `X`

    Returns
    -------
    ndarray of shape (n_targets, k, k)
    """
    differences = targets[:, None, :] - X[neighbors]
    G = differences @ differences.transpose(0, 2, 1)
    k = neighbors.shape[1]
    trace = np.trace(G, axis1=1, axis2=2)
    G[:, np.arange(k), np.arange(k)] += (trace * (RIDGE if k > X.shape[1] else LEAST_RIDGE))[:, None]
    return G


def reconstruction_weights(X: np.ndarray, targets: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """The convex weights with which each target's neighbours come nearest to it.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    targets : ndarray of shape (n_targets, n_features)
    neighbors : ndarray of int of shape (n_targets, k), row numbers of `X`

    Returns
    -------
    ndarray of shape (n_targets, k), non-negative, rows summing to one
    """
    entries = neighbors.shape[1] * max(X.shape[1], neighbors.shape[1])
    parts = [simplex_programs(local_grams(X, targets[rows], neighbors[rows])) for rows in blocks(len(targets), entries)]
    return np.concatenate(parts)


def neighborhood_graph(X: np.ndarray, n_neighbors: int) -> sparse.csr_array:
    """The sparse, row-stochastic matrix of reconstruction weights; no row is its own neighbour.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    n_neighbors : int, at most all other rows are used

    Returns
    -------
    csr_array of shape (n_rows, n_rows)
    """
    n_rows = len(X)
    k = min(n_neighbors, n_rows - 1)
    neighbors = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    weights = reconstruction_weights(X, X, neighbors)
    starts = np.arange(0, n_rows * k + 1, k)
    graph = sparse.csr_array((weights.reshape(-1), neighbors.reshape(-1), starts), shape=(n_rows, n_rows))
    graph.eliminate_zeros()
    return graph


class LNP(Propagator):
    """Linear neighbourhood propagation.

    Every row is written as a convex combination of its nearest rows, the weights being the exact solution of a
    small quadratic program; labels then flow along those weights. When neighbours outnumber features a tenth of the
    Gram matrix's trace is added to its diagonal.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of a row, itself not among them; at most all other rows.
    alpha : float, default=0.99
        The weight of the neighbours of a row against its own label, in (0, 1). The graph is directed: near 1, a class
        from whose rows few paths lead out can spread over the others; 0.9 stays local.
    max_iter : int, default=10000
    tol : float, default=1e-4
        The iteration ends when no probability can change by about more.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), rows sum to 1
        A row that no label reaches has the shares of the labelled classes.
    n_iter_ : int

    References
    ----------
    F. Wang and C. Zhang, "Label propagation through linear neighborhoods", IEEE TKDE 20(1), 2008 (online 2007).

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import LNP
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> LNP(n_neighbors=2).fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        alpha: float = 0.99,
        max_iter: int = 10_000,
        tol: float = 1e-4,
        unlabeled: Any = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled = unlabeled

    def check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_number("alpha", self.alpha, above=0, below=1)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, above=0)

    def fit(self, X: Any, y: Any) -> Self:
        """Label every row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), labels, and the marker where unlabelled

        Returns
        -------
        self
        """
        self.check_parameters()
        X, labels = self._read(X, y)
        self._frame = Frame.fit(X)
        self._rows = self._frame.transform(X)
        Y = one_hot(labels.codes, len(labels.classes))
        graph = neighborhood_graph(self._rows, self.n_neighbors)
        solution = iterate(graph, Y, alpha=self.alpha, tol=self.tol, max_iter=self.max_iter)
        solution.warn(type(self).__name__, self.max_iter, self.tol)
        self.n_iter_ = solution.n_iter
        shares = distributions(solution.scores, Y)
        return self._set_labels(labels, shares.argmax(axis=1), shares)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows: the distributions of the training rows that rebuild them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        targets = self._frame.transform(self._read_rows(X, reset=False))
        k = min(self.n_neighbors, len(self._rows))
        neighbors = NearestNeighbors(n_neighbors=k).fit(self._rows).kneighbors(targets, return_distance=False)
        weights = reconstruction_weights(self._rows, targets, neighbors)
        shares = np.einsum("nk,nkc->nc", weights, self.label_distributions_[neighbors])
        return shares / shares.sum(axis=1, keepdims=True)
