"""Partition level constrained clustering (Liu, Tao & Fu 2017): k-means with a penalty for labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._validation import check_count, check_number
from otprop_paper.baselines._cluster_labels import match_clusters_to_classes
from otprop_paper.baselines._frame import Frame
from otprop_paper.baselines.graph import one_hot


@dataclass(frozen=True)
class Partition:
    """A clustering and its centres.

    Attributes
    ----------
    clusters : ndarray of int of shape (n_rows,)
    means : ndarray of shape (n_clusters, n_features)
    label_means : ndarray of shape (n_clusters, n_classes), zero for a cluster without a labelled row
    objective : ndarray, after each assignment
    converged : bool
    """

    clusters: np.ndarray
    means: np.ndarray
    label_means: np.ndarray
    objective: np.ndarray
    converged: bool


def centers(
    X: np.ndarray, Y: np.ndarray, clusters: np.ndarray, means: np.ndarray, label_means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means of the clusters' rows, and of the labels of their labelled rows; an empty cluster stays where it was.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_classes), one-hot, zero rows where unlabelled
    clusters : ndarray of int of shape (n_rows,)
    means, label_means : the centres before

    Returns
    -------
    means, label_means : ndarrays of shape (n_clusters, n_features) and (n_clusters, n_classes)
    """
    member = np.zeros((len(X), len(means)))
    member[np.arange(len(X)), clusters] = 1.0
    sizes = member.sum(axis=0)[:, None]
    label_sums = member.T @ Y
    label_sizes = label_sums.sum(axis=1, keepdims=True)
    new_means = np.where(sizes > 0, member.T @ X / np.maximum(sizes, 1.0), means)
    new_label_means = np.where(sizes > 0, label_sums / np.maximum(label_sizes, 1.0), label_means)
    return new_means, new_label_means


def costs(X: np.ndarray, Y: np.ndarray, means: np.ndarray, label_means: np.ndarray, strength: float) -> np.ndarray:
    """|x_i - m_k|^2 + strength [i labelled] |s_i - t_k|^2 for every row and cluster.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_classes), one-hot, zero rows where unlabelled
    means : ndarray of shape (n_clusters, n_features)
    label_means : ndarray of shape (n_clusters, n_classes)
    strength : float

    Returns
    -------
    ndarray of shape (n_rows, n_clusters)
    """
    labelled = Y.any(axis=1)
    out = euclidean_distances(X, means, squared=True)
    out[labelled] += strength * euclidean_distances(Y[labelled], label_means, squared=True) if labelled.any() else 0.0
    return out


def constrained_kmeans(
    X: np.ndarray,
    Y: np.ndarray,
    means: np.ndarray,
    label_means: np.ndarray,
    *,
    strength: float,
    max_iter: int = 300,
) -> Partition:
    """Assign rows to their cheapest centre and move the centres, until no row changes its cluster.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_classes), one-hot, zero rows where unlabelled
    means : ndarray of shape (n_clusters, n_features), the start
    label_means : ndarray of shape (n_clusters, n_classes), the start
    strength : float, the weight of the labels; 0 is k-means
    max_iter : int

    Returns
    -------
    Partition
    """
    objective: list[float] = []
    clusters = np.full(len(X), -1)
    converged = False
    for _ in range(max_iter):
        table = costs(X, Y, means, label_means, strength)
        assigned = table.argmin(axis=1)
        objective.append(float(table[np.arange(len(X)), assigned].sum()))
        if np.array_equal(assigned, clusters):
            converged = True
            break
        clusters = assigned
        means, label_means = centers(X, Y, clusters, means, label_means)
    return Partition(clusters, means, label_means, np.array(objective), converged)


class PLCC(Propagator):
    """Partition level constrained clustering.

    K-means with as many clusters as classes, in which a labelled row also pays for a cluster whose labels differ from
    its own. It starts from the class means of the labelled rows. Clusters are named after classes by the one-to-one map
    that fits the labelled rows best. Each row gets one class: distributions are one-hot.

    Written from secondary descriptions of the method, not from the authors' code: details such as the start and
    what an empty cluster does may differ from theirs. A cluster without a labelled row has a label mean of zero.

    Parameters
    ----------
    strength : float, default=100
        Weight of the labels (lambda), in units of squared distance; 0 is k-means.
    max_iter : int, default=300
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), one-hot
    clusters_ : ndarray of shape (n_rows,), the cluster of each row before it is named
    objective_ : ndarray of shape (n_iterations,), never increasing, in units of the data's squared extent
    n_iter_ : int

    References
    ----------
    H. Liu, Z. Tao and Y. Fu, "Partition level constrained clustering", IEEE TPAMI 40(10), 2018 (online 2017).

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import PLCC
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> PLCC().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(self, strength: float = 100.0, *, max_iter: int = 300, unlabeled: Any = "auto") -> None:
        self.strength = strength
        self.max_iter = max_iter
        self.unlabeled = unlabeled

    def check_parameters(self) -> None:
        check_number("strength", self.strength, least=0)
        check_count("max_iter", self.max_iter)

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
        rows = self._frame.transform(X)
        n_classes = len(labels.classes)
        Y = one_hot(labels.codes, n_classes)
        extent = self._frame.extent
        strength = min(self.strength / extent / extent, 1e100)
        start = (Y.T @ rows) / Y.sum(axis=0)[:, None]
        found = constrained_kmeans(rows, Y, start, np.eye(n_classes), strength=strength, max_iter=self.max_iter)
        if not found.converged:
            warnings.warn(
                f"PLCC stopped after max_iter={self.max_iter} iterations while rows still changed their cluster. "
                "Raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._means = found.means
        self.clusters_ = found.clusters.astype(np.intp)
        self.objective_ = found.objective
        self.n_iter_ = len(found.objective)
        self._class_of = match_clusters_to_classes(self.clusters_, labels.codes, n_classes, n_classes)
        codes = self._class_of[self.clusters_]
        return self._set_labels(labels, codes, np.eye(n_classes)[codes])

    def predict_proba(self, X: Any) -> np.ndarray:
        """One-hot class of new rows: that of the nearest cluster mean.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), in the order of ``classes_``
        """
        check_is_fitted(self)
        rows = self._frame.transform(self._read_rows(X, reset=False))
        nearest = euclidean_distances(rows, self._means, squared=True).argmin(axis=1)
        return np.eye(len(self.classes_))[self._class_of[nearest]]
