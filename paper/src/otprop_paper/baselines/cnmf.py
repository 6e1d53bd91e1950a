"""Constrained non-negative matrix factorisation (Liu, Wu, Cai & Huang 2010): labelled rows of a class share a code."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_count, check_number
from otprop_paper.baselines._cluster_labels import match_clusters_to_classes
from otprop_paper.baselines._qp import nonnegative_programs

TINY = 1e-300  # keeps a division finite where numerator and denominator vanish together


@dataclass(frozen=True)
class Factors:
    """The factorisation X = V U' with V = Z[groups].

    Attributes
    ----------
    U : ndarray of shape (n_features, n_components)
    Z : ndarray of shape (n_groups, n_components), one code a group
    objective : ndarray, |X - V U'|^2 at the start and after each iteration
    converged : bool
    """

    U: np.ndarray
    Z: np.ndarray
    objective: np.ndarray
    converged: bool


def code_groups(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The number of the code of each row: its class where labelled, a code of its own where unlabelled (-1)."""
    groups = codes.copy()
    free = np.flatnonzero(codes < 0)
    groups[free] = n_classes + np.arange(free.size)
    return groups


def factorize(
    X: np.ndarray, groups: np.ndarray, U: np.ndarray, Z: np.ndarray, *, tol: float = 1e-5, max_iter: int = 1000
) -> Factors:
    """Multiplicative updates that lower |X - Z[groups] U'|^2 and never raise it.

    With A the matrix that repeats codes, V = A Z: U <- U * (X'A Z) / (U Z'A'A Z), then
    Z <- Z * (A'X U) / (A'A Z U'U). A'X is a sum over groups and A'A their sizes, so A is never formed.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), non-negative
    groups : ndarray of int of shape (n_rows,), the code that each row uses
    U : ndarray of shape (n_features, n_components), the start, positive
    Z : ndarray of shape (n_groups, n_components), the start, positive
    tol : float
        End when an iteration lowers the objective by less than this share of the start's.
    max_iter : int

    Returns
    -------
    Factors
    """
    U, Z = U.copy(), Z.copy()
    sizes = np.bincount(groups, minlength=len(Z)).astype(np.float64)[:, None]
    sums = np.zeros((len(Z), X.shape[1]))
    np.add.at(sums, groups, X)
    total = float(np.einsum("ij,ij->", X, X))
    gram = U.T @ U
    objective = [_objective(total, sums @ U, Z, sizes, gram)]
    converged = False
    for _ in range(max_iter):
        U *= (sums.T @ Z) / np.maximum(U @ (Z.T @ (sizes * Z)), TINY)
        gram = U.T @ U
        projected = sums @ U
        Z *= projected / np.maximum(sizes * (Z @ gram), TINY)
        objective.append(_objective(total, projected, Z, sizes, gram))
        if objective[-2] - objective[-1] <= tol * objective[0]:
            converged = True
            break
    return Factors(U, Z, np.array(objective), converged)


def _objective(total: float, projected: np.ndarray, Z: np.ndarray, sizes: np.ndarray, gram: np.ndarray) -> float:
    """|X|^2 - 2 <A'X U, Z> + tr(U'U Z'A'A Z), without a matrix of the size of X."""
    cross = float(np.einsum("ij,ij->", projected, Z))
    return max(total - 2.0 * cross + float(np.einsum("ij,ij->", gram, Z.T @ (sizes * Z))), 0.0)


class CNMF(Propagator):
    """Constrained non-negative matrix factorisation, then k-means on the codes.

    The features are scaled to [0, 1]; rows of one class share one code. Clusters are named after classes by the
    one-to-one map that fits the labelled rows best. Each row gets one class: distributions are
    one-hot. The factorisation has many local optima and its labels can differ much between random starts: judge it by
    several values of `random_state`.

    Written from secondary descriptions of the method, not from the authors' code: details such as the scaling, the
    start and the stopping rule may differ from theirs.

    Parameters
    ----------
    n_components : int or None, default=None
        Length of a code; None takes the number of classes, as the authors do.
    max_iter : int, default=1000
    tol : float, default=1e-5
        The updates end when one lowers the objective by less than this share of its start.
    n_init : int, default=10
        Starts of k-means.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), one-hot
    components_ : ndarray of shape (n_components, n_features), unit rows
    codes_ : ndarray of shape (n_rows, n_components)
    clusters_ : ndarray of shape (n_rows,), the cluster of each row before it is named
    objective_ : ndarray of shape (n_iterations + 1,), never increasing
    n_iter_ : int

    References
    ----------
    H. Liu, Z. Wu, D. Cai and T. S. Huang, "Constrained nonnegative matrix factorization for image representation",
    IEEE TPAMI 34(7), 2012 (first presented 2010).

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import CNMF
    >>> X = np.array([[9.0, 0.0], [8.0, 1.0], [9.0, 1.0], [0.0, 9.0], [1.0, 8.0], [1.0, 9.0]])
    >>> CNMF(random_state=0).fit(X, ["left", None, None, None, None, "right"]).transduction_.tolist()
    ['left', 'left', 'left', 'right', 'right', 'right']
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_iter: int = 1000,
        tol: float = 1e-5,
        n_init: int = 10,
        unlabeled: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.unlabeled = unlabeled
        self.random_state = random_state

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
        rng = check_random_state(self.random_state)
        n_classes = len(labels.classes)
        self._low = X.min(axis=0)
        self._range = np.where((spread := _span(X, self._low)) > 0, spread, 1.0)
        scaled = self._scale(X)
        groups = code_groups(labels.codes, n_classes)
        n_components = n_classes if self.n_components is None else self.n_components
        size = np.sqrt(max(float(scaled.mean()), 1e-3) / n_components)
        U = size * (0.1 + rng.uniform(size=(X.shape[1], n_components)))
        Z = size * (0.1 + rng.uniform(size=(int(groups.max()) + 1, n_components)))
        factors = factorize(scaled, groups, U, Z, tol=self.tol, max_iter=self.max_iter)
        if not factors.converged:
            warnings.warn(
                f"CNMF stopped after max_iter={self.max_iter} iterations that still lowered its objective by more than "
                f"tol={self.tol:g} of the start. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        norms = np.linalg.norm(factors.U, axis=0)
        self.components_ = (factors.U / np.where(norms > 0, norms, 1.0)).T
        self.codes_ = (factors.Z * norms)[groups]
        self.objective_ = factors.objective
        self.n_iter_ = len(factors.objective) - 1
        return self._name_clusters(labels, rng)

    def check_parameters(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)
        check_count("n_init", self.n_init)

    def _name_clusters(self, labels: Any, rng: np.random.RandomState) -> Self:
        n_classes = len(labels.classes)
        n_clusters = min(n_classes, len(np.unique(np.round(self.codes_, 9), axis=0)))
        means = KMeans(n_clusters, n_init=self.n_init, random_state=rng).fit(self.codes_)
        self.clusters_ = means.labels_.astype(np.intp)
        self._centers = means.cluster_centers_
        self._class_of = match_clusters_to_classes(self.clusters_, labels.codes, n_clusters, n_classes)
        codes = self._class_of[self.clusters_]
        return self._set_labels(labels, codes, np.eye(n_classes)[codes])

    def _scale(self, X: np.ndarray) -> np.ndarray:
        """Each feature to [0, 1] over the training rows; new rows outside are moved to the border."""
        return np.clip(X / self._range - self._low / self._range, 0.0, 1.0)

    def predict_proba(self, X: Any) -> np.ndarray:
        """One-hot class of new rows: their codes by non-negative least squares, then the nearest cluster.

        Where codes have more components than rows have features they are not unique, and rows are compared with the
        rows that the cluster centres stand for.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        scaled = self._scale(self._read_rows(X, reset=False))
        if len(self.components_) > scaled.shape[1]:  # many codes rebuild a row: compare what they rebuild
            return np.eye(len(self.classes_))[self._class_of[_nearest(scaled, self._centers @ self.components_)]]
        gram = self.components_ @ self.components_.T
        gram[np.diag_indices_from(gram)] += 1e-9
        codes = nonnegative_programs(np.broadcast_to(gram, (len(scaled), *gram.shape)), scaled @ self.components_.T)
        return np.eye(len(self.classes_))[self._class_of[_nearest(codes, self._centers)]]


def _nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return euclidean_distances(rows, centers, squared=True).argmin(axis=1)


def _span(X: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Range of each feature, finite for any finite input."""
    with np.errstate(over="ignore"):
        return np.minimum(X.max(axis=0) - low, np.finfo(np.float64).max)
