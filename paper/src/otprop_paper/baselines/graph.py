"""Graphs over all rows, shared by label propagation, label spreading and linear neighbourhoods.

The functions take and return arrays, so that a caller who fits many splits of the same rows can keep one matrix of
squared distances, or one graph, and pass the label matrices of all splits at once: ``Y`` is one-hot of shape
(n_rows, n_classes), or (n_rows, n_splits, n_classes) for several label matrices side by side, with zero rows where
a row is unlabelled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from otprop_paper.baselines._frame import blocks, squared_distances, typical_distance

__all__ = [
    "Solution",
    "affinity",
    "auto_sigma",
    "distributions",
    "iterate",
    "knn_graph",
    "log_transitions",
    "matrix_dtype",
    "one_hot",
    "squared_distances",
]

FLOAT64_ROWS = 4096  # up to this many rows a dense graph is held in float64 (128 MB), above in float32
SMALLEST_SIGMA = 1e-12  # in units of the rows' extent: any smaller kernel width sees the nearest row only
TILE = 1024  # rows of the square pieces in which a matrix is multiplied with its transpose


@dataclass(frozen=True)
class Solution:
    """Scores of every class for every row, and how they were reached."""

    scores: np.ndarray
    n_iter: int
    change: float
    converged: bool

    def warn(self, name: str, max_iter: int, tol: float) -> None:
        """Warn if the iteration stopped early."""
        if not self.converged:
            warnings.warn(
                f"{name} stopped after max_iter={max_iter} iterations with a change of {self.change:.2g}, above "
                f"tol={tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )


def matrix_dtype(n_rows: int) -> Any:
    """The type of a dense graph over `n_rows` rows."""
    return np.float64 if n_rows <= FLOAT64_ROWS else np.float32


def one_hot(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Class numbers as a one-hot matrix, a zero row for -1."""
    Y = np.zeros((len(codes), n_classes))
    given = np.flatnonzero(codes >= 0)
    Y[given, codes[given]] = 1.0
    return Y


def auto_sigma(sq: np.ndarray) -> float:
    """The median distance of a row to its nearest other row, from squared distances."""
    nearest = np.empty(len(sq))
    largest = 0.0
    for rows in blocks(*sq.shape):
        block = sq[rows].astype(np.float64)
        largest = max(largest, float(block.max()))
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = block.min(axis=1)
    return typical_distance(np.sqrt(nearest), np.sqrt(largest))


def exponents(sq: np.ndarray, sigma: float) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of -d^2 / 2 sigma^2, with -inf where a row meets itself."""
    factor = sq.dtype.type(-0.5 / sigma**2)
    for rows in blocks(*sq.shape):
        block = sq[rows] * factor
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = -np.inf
        yield rows, block


def log_transitions(sq: np.ndarray, sigma: float) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Blocks of log(w_ij / d_i) and of log d_i, for w = exp(-d^2 / 2 sigma^2) and the degree d_i without w_ii.

    The largest exponent of a row is taken out first: nothing underflows, and rounding does not grow as sigma shrinks.
    """
    for rows, block in exponents(sq, sigma):
        top = block.max(axis=1, keepdims=True)
        block -= top
        log_sum = np.log(np.exp(block).sum(axis=1, keepdims=True, dtype=np.float64))
        block -= log_sum
        yield rows, block, (top + log_sum)[:, 0]


def affinity(sq: np.ndarray, sigma: float, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The Gaussian kernel normalised on both sides, S = D^-1/2 W D^-1/2, with a zero diagonal.

    Its entries are the roots of T_ij T_ji, T the transition matrix, computed in log space: no `sigma` makes a row NaN,
    and rounding cannot lift an eigenvalue above one.

    Parameters
    ----------
    sq : ndarray of shape (n_rows, n_rows), squared distances
    sigma : float, w = exp(-d^2 / 2 sigma^2)
    out : ndarray or None, where to write the matrix; `sq` itself is allowed

    Returns
    -------
    S : ndarray of shape (n_rows, n_rows)
    log_degree : ndarray of shape (n_rows,), the logarithm of D's diagonal
    """
    S = np.empty_like(sq) if out is None else out
    log_degree = np.empty(len(sq))
    for rows, block, log_degree[rows] in log_transitions(sq, sigma):
        block *= 0.5
        S[rows] = np.exp(block, out=block)
    for i in range(0, len(S), TILE):
        for j in range(i, len(S), TILE):
            product = S[i : i + TILE, j : j + TILE] * S[j : j + TILE, i : i + TILE].T
            S[i : i + TILE, j : j + TILE] = product
            S[j : j + TILE, i : i + TILE] = product.T
    return S, log_degree


def knn_graph(X: Any, n_neighbors: int) -> sparse.csr_array:
    """The directed graph of scikit-learn's "knn" kernel: weight 1 to each of `n_neighbors`, of which the row is one.

    The row's edge to itself is left out. At least one and at most all other rows are neighbours.
    """
    n_neighbors = int(np.clip(n_neighbors, 2, X.shape[0]))
    graph = sparse.csr_array(NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors_graph(X))
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    return graph


def iterate(W: Any, Y: np.ndarray, *, alpha: float, tol: float = 1e-4, max_iter: int = 10_000) -> Solution:
    """Repeat F <- alpha W F + (1 - alpha) Y until no row's distribution can move by more than about `tol`.

    `W`, dense or sparse, has a spectral radius of at most one; the remaining error is then bounded by the change
    times alpha / (1 - alpha). Changes are relative to a row's sum, so rows far from every label count in full.
    """
    shape, n_classes = Y.shape, Y.shape[-1]
    source = ((1.0 - alpha) * Y).reshape(len(Y), -1).astype(W.dtype)
    F = source.copy()
    change = np.inf
    for n_iter in range(1, max_iter + 1):
        previous, F = F, W @ F
        F *= alpha
        F += source
        if n_iter % 5 and n_iter < max_iter and alpha > 0.5:
            continue  # with a slow contraction the check would cost more than it saves
        sums = F.reshape(len(Y), -1, n_classes).sum(axis=2)
        moved = np.abs(F - previous).reshape(len(Y), -1, n_classes).max(axis=2)
        reached = sums > np.finfo(F.dtype).tiny
        change = float((moved[reached] / sums[reached]).max(initial=0.0)) * alpha / (1.0 - alpha)
        if change <= tol:
            break
    return Solution(F.reshape(shape), n_iter, change, change <= tol)


def distributions(scores: np.ndarray, Y: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Scores as class distributions; a row whose scores sum to no more than `floor` gets the labelled shares."""
    scores = np.clip(np.asarray(scores, dtype=np.float64), 0.0, None)
    shares = Y.sum(axis=0) / Y.sum(axis=(0, -1))[..., None]
    sums = scores.sum(axis=-1, keepdims=True)
    reached = sums > max(floor, np.finfo(np.float64).tiny)
    return np.where(reached, scores / np.where(reached, sums, 1.0), shares[None])
