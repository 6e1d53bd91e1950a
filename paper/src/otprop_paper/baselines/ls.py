"""Label spreading (Zhou et al. 2003): labels diffuse over the graph and are pulled back to what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from otprop._validation import check_number
from otprop_paper.baselines._graph_propagator import GraphPropagator
from otprop_paper.baselines.graph import Solution, affinity, iterate, knn_graph

FLOAT32_ALPHA = 0.9999  # the system of a larger alpha is too badly conditioned for a float32 factor


def spread_exact(S: np.ndarray, Y: np.ndarray, *, alpha: float, overwrite: bool = False) -> Solution:
    """The limit of label spreading, (1 - alpha) (I - alpha S)^-1 Y, by one Cholesky factor for all of `Y`.

    I - alpha S is a symmetric M-matrix: the solve adds non-negative numbers only, so that scores stay non-negative
    and rows far from every label keep their leading digits.

    Parameters
    ----------
    S : ndarray of shape (n_rows, n_rows), symmetric, as from `affinity`
    Y : ndarray of shape (n_rows, n_classes) or (n_rows, n_splits, n_classes)
    alpha : float in [0, 1)
    overwrite : bool, use the memory of `S` for the factor

    Returns
    -------
    Solution with scores of the shape of `Y`
    """
    A = S if overwrite else S.copy()
    A *= -alpha
    A[np.diag_indices_from(A)] += 1.0
    factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    source = ((1.0 - alpha) * Y).reshape(len(Y), -1).astype(A.dtype)
    F = linalg.cho_solve(factor, source, overwrite_b=True, check_finite=False)
    return Solution(np.ascontiguousarray(F).reshape(Y.shape), 1, 0.0, True)


def normalized_knn(graph: sparse.csr_array) -> sparse.csr_array:
    """A directed neighbour graph divided by the roots of its in-degrees on both sides, as scikit-learn does it."""
    degrees = np.asarray(graph.sum(axis=0)).reshape(-1)
    scale = sparse.diags_array(1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    return (scale @ graph @ scale).tocsr()


class LabelSpreading(GraphPropagator):
    """Label spreading on a Gaussian or a nearest-neighbour graph.

    The labels of :class:`sklearn.semi_supervised.LabelSpreading` run to its limit. Here a row that no label reaches,
    or only by links too weak for a floating-point number, gets the shares of the labelled classes instead of NaN or
    class 0, given labels are kept, and the memory is one dense matrix over the rows (float64 up to 4096 rows, float32
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
    alpha : float, default=0.99
        The weight of the neighbours of a row against its own label, in (0, 1). 0.99 is the value of the
        paper; scikit-learn's default is 0.2.
    max_iter : int, default=10000
        Most iterations of "knn".
    tol : float, default=1e-4
        The iteration ends when no probability can change by about more.
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
    D. Zhou, O. Bousquet, T. N. Lal, J. Weston and B. Schoelkopf, "Learning with local and global consistency",
    NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.baselines import LabelSpreading
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> LabelSpreading().fit(X, ["low", None, None, None, None, "high"]).transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        sigma: float | str = "auto",
        n_neighbors: int = 7,
        alpha: float = 0.99,
        max_iter: int = 10_000,
        tol: float = 1e-4,
        unlabeled: Any = "auto",
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled = unlabeled

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number("alpha", self.alpha, above=0, below=1)

    def _solve_rbf(self, Y: np.ndarray) -> Solution:
        sq, sigma = self._squared_distances(np.float64 if self.alpha > FLOAT32_ALPHA else None)
        S, _ = affinity(sq, sigma, out=sq)
        return spread_exact(S, Y, alpha=self.alpha, overwrite=True)

    def _solve_knn(self, Y: np.ndarray) -> Solution:
        S = normalized_knn(knn_graph(self._rows, self.n_neighbors))
        return iterate(S, Y, alpha=self.alpha, tol=self.tol, max_iter=self.max_iter)
