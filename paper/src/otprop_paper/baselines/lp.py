"""Label propagation (Zhu & Ghahramani 2002): labelled rows are held, all others take their neighbours' average."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from otprop_paper.baselines._graph_propagator import GraphPropagator
from otprop_paper.baselines.graph import Solution, affinity, knn_graph, log_transitions

LEAK = {"float32": 1e-5, "float64": 1e-10}  # the share of labels lost at each step of the exact solve


def transition(sq: np.ndarray, sigma: float, out: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The transition matrix of the Gaussian kernel, without steps from a row to itself.

    Such steps change how long the iteration takes, not where it ends. Each row is normalised in log space, so no
    `sigma` makes it zero or NaN.

    Parameters
    ----------
    sq : ndarray of shape (n_rows, n_rows), squared distances
    sigma : float, w = exp(-d^2 / 2 sigma^2)
    out : ndarray or None, where to write the matrix; `sq` itself is allowed

    Returns
    -------
    T : ndarray of shape (n_rows, n_rows), rows summing to one
    weight : ndarray of shape (n_rows,), the rows' degrees relative to the largest
    """
    T = np.empty_like(sq) if out is None else out
    degrees = np.empty(len(sq))
    for rows, block, degrees[rows] in log_transitions(sq, sigma):
        T[rows] = np.exp(block, out=block)
    return T, np.exp(degrees - degrees.max())


def propagate(T: Any, Y: np.ndarray, *, weight: np.ndarray | None = None, tol: float, max_iter: int) -> Solution:
    """Solve F = T F on the unlabelled rows with F = Y on the labelled ones.

    The plain iteration F <- T F, labelled rows reset, ends the solve and bounds its error; where `weight` is given,
    weight_i T_ij is symmetric and conjugate gradients in that inner product run first.

    Parameters
    ----------
    T : ndarray or sparse array of shape (n_rows, n_rows), rows summing to one
    Y : ndarray of shape (n_rows, n_classes) or (n_rows, n_splits, n_classes)
        One-hot labels of one split, or of several side by side; zero rows where unlabelled.
    weight : ndarray of shape (n_rows,) or None
    tol : float, the largest change of an entry that counts as none
    max_iter : int

    Returns
    -------
    Solution with scores of the shape of `Y`
    """
    free = np.broadcast_to(~Y.any(axis=-1, keepdims=True), Y.shape).reshape(len(Y), -1)
    held = Y.reshape(len(Y), -1).astype(T.dtype)
    F, n_iter = held, 0
    if weight is not None:
        F, n_iter = _conjugate_gradients(T, held, free, weight, tol, max_iter - 1)
    change = np.inf
    while n_iter < max_iter and change > tol:
        update = np.where(free, T @ F, held)
        np.clip(update, 0.0, 1.0, out=update)
        change = float(np.abs(update - F).max())
        F, n_iter = update, n_iter + 1
    return Solution(F.reshape(Y.shape), n_iter, change, change <= tol)


def propagate_exact(S: np.ndarray, log_degree: np.ndarray, Y: np.ndarray, *, overwrite: bool = False) -> Solution:
    """The limit of label propagation by a Cholesky factor of I - S_uu for each split, whatever the kernel's width.

    In G = D^1/2 F the limit is (I - S_uu) G_u = S_ul G_l, and D drops out when rows are made distributions. I - S_uu
    is a symmetric M-matrix: the solve adds non-negative numbers only. `LEAK` keeps it definite where no label is
    linked. Conjugate gradients are faster for wide kernels and for many splits at once, this for narrow ones.

    Parameters
    ----------
    S, log_degree : ndarrays of shape (n_rows, n_rows) and (n_rows,), as from `affinity`
    Y : ndarray of shape (n_rows, n_classes) or (n_rows, n_splits, n_classes)
    overwrite : bool, use the memory of `S` for the factor; for one split only

    Returns
    -------
    Solution with scores of the shape of `Y`, known up to a factor in each row
    """
    if overwrite and Y.ndim > 2:
        raise ValueError(f"overwrite=True serves one split; got Y of shape {Y.shape}. Pass the splits one by one.")
    tables = Y.reshape(len(Y), -1, Y.shape[-1])
    scores = [_harmonic(S, log_degree, tables[:, split], overwrite) for split in range(tables.shape[1])]
    return Solution(np.stack(scores, axis=1).reshape(Y.shape), 1, 0.0, True)


def _harmonic(S: np.ndarray, log_degree: np.ndarray, Y: np.ndarray, overwrite: bool) -> np.ndarray:
    free = np.flatnonzero(~Y.any(axis=1))
    scores = Y.astype(S.dtype)
    if free.size == 0:
        return scores
    held = np.flatnonzero(Y.any(axis=1))
    root = np.exp(0.5 * (log_degree[held] - log_degree[held].max()))
    source = np.zeros_like(scores)
    source[held] = root[:, None] * Y[held]
    source = (S @ source)[free]
    A = _compact(S, free) if overwrite else S[np.ix_(free, free)]
    A *= -1.0
    scores[free] = linalg.cho_solve(_factor(A), source, overwrite_b=True, check_finite=False)
    return scores


def _factor(A: np.ndarray) -> tuple[np.ndarray, bool]:
    """The Cholesky factor of I + A in the memory of A; where rounding forbids it, of I + A with a hundredfold leak."""
    leak, diagonal = LEAK[A.dtype.name], np.diag_indices_from(A)
    A[diagonal] = 1.0 + leak
    try:
        return linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        A[diagonal] = 1.0 + 100 * leak  # the other triangle has not been touched yet
        return linalg.cho_factor(A.T, lower=False, overwrite_a=True, check_finite=False)


def _compact(S: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``S[rows][:, rows]`` for increasing `rows`, moved to the front of the memory of `S`."""
    memory, k = S.reshape(-1), len(rows)
    for i, row in enumerate(rows):
        memory[i * k : (i + 1) * k] = S[row, rows]  # ends no later than `row` does: no later row is touched
    return memory[: k * k].reshape(k, k)


def _conjugate_gradients(
    T: Any, held: np.ndarray, free: np.ndarray, weight: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, int]:
    """Columns of (I - T_uu) F_u = T_ul Y_l at once, each with its own step lengths and its own unlabelled rows."""
    weights = weight[:, None]
    residual = np.where(free, T @ held, 0).astype(T.dtype)
    F, direction = held.copy(), residual.copy()
    size = (weights * residual * residual).sum(axis=0)
    n_iter = 0
    while n_iter < max_iter and float(np.abs(residual).max(initial=0.0)) > tol / 2:
        image = direction - np.where(free, T @ direction, 0)
        curvature = (weights * direction * image).sum(axis=0)
        usable = (curvature > 0) & (size > 0)
        if not usable.any():
            break
        step = np.divide(size, curvature, out=np.zeros_like(size), where=usable).astype(T.dtype)
        F += step * direction
        residual -= step * image
        new_size = (weights * residual * residual).sum(axis=0)
        ratio = np.divide(new_size, size, out=np.zeros_like(size), where=usable).astype(T.dtype)
        direction = residual + ratio * direction
        size = new_size
        n_iter += 1
    return np.where(free, F, held), n_iter


class LabelPropagation(GraphPropagator):
    """Label propagation on a Gaussian or a nearest-neighbour graph.

    The labels of :class:`sklearn.semi_supervised.LabelPropagation` where that one converges. Here a row that no
    label reaches, or only by links too weak for a floating-point number, gets the shares of the labelled classes
    instead of NaN or class 0, and the memory is one dense matrix over the rows (float64 up to 4096 rows, float32
    above) for "rbf" and a sparse one for "knn".

    Parameters
    ----------
    kernel : {"rbf", "knn"}, default="rbf"
        "rbf" weighs all pairs by exp(-d^2 / 2 sigma^2) and is solved directly, "knn" gives weight 1 to the nearest
        rows and is iterated.
    sigma : float or "auto", default="auto"
        Width of "rbf"; "auto" is the median distance of a row to its nearest other row. Widths below 1e-12 of the
        data's extent act like that.
    n_neighbors : int, default=7
        Neighbours of "knn", the row itself being the first, as in scikit-learn.
    max_iter : int, default=2000
        Most iterations of "knn".
    tol : float, default=1e-6
        The iteration ends when no probability changes by more.
    unlabeled : "auto" or a label, default="auto"
        What marks an unlabelled row in `y`; "auto" is -1, None or NaN.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,), a label for every training row
    label_distributions_ : ndarray of shape (n_rows, n_classes), rows sum to 1
    sigma_ : float, the width used ("rbf" only)
    n_iter_ : int

    References
    ----------
    X. Zhu and Z. Ghahramani, "Learning from labeled and unlabeled data with label propagation", CMU-CALD-02-107,
    2002.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import LabelPropagation
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> LabelPropagation().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        sigma: float | str = "auto",
        n_neighbors: int = 7,
        max_iter: int = 2000,
        tol: float = 1e-6,
        unlabeled: Any = "auto",
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled = unlabeled

    def _solve_rbf(self, Y: np.ndarray) -> Solution:
        sq, sigma = self._squared_distances()
        S, log_degree = affinity(sq, sigma, out=sq)
        return propagate_exact(S, log_degree, Y, overwrite=True)

    def _solve_knn(self, Y: np.ndarray) -> Solution:
        graph = knn_graph(self._rows, self.n_neighbors)
        T = sparse.diags_array(1.0 / graph.sum(axis=1)) @ graph
        return propagate(T.tocsr(), Y, tol=self.tol, max_iter=self.max_iter)
