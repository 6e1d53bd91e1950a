"""How far apart are two rows of a table: any metric of scikit-learn, a callable, or a matrix given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn import config_context

from otprop._saving import saved_as
from otprop._validation import did_you_mean
from otprop.geometry.euclidean import EuclideanCost

Columns = Callable[[np.ndarray], np.ndarray]
Metric = Callable[[np.ndarray, np.ndarray], float]

METRICS = (
    *("sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "chebyshev", "canberra", "braycurtis"),
    *("manhattan", "minkowski", "seuclidean", "mahalanobis", "l1", "l2", "hamming", "jaccard", "dice"),
    *("rogerstanimoto", "russellrao", "sokalsneath", "yule", "haversine"),
)


SPARSE_METRICS = ("sqeuclidean", "euclidean", "l2", "cityblock", "manhattan", "l1", "cosine")


class PairwiseCost(Protocol):
    """The costs between rows of a table, `scale` of them making one of the user's units."""

    scale: float

    def columns(self, sources: np.ndarray, new: Any = None) -> Columns:
        """A function of row numbers: the costs from those rows (of `new`, if given) to the `sources`."""
        ...


@saved_as("geometry.metric_cost")
class MetricCost:
    """Costs by a metric of scikit-learn, or a callable of two rows."""

    scale = 1.0

    def __init__(self, rows: Any, metric: str | Metric, name: str = "cost") -> None:
        self.rows, self.metric, self.name = _narrow_indices(rows), metric, name
        self._parameters: dict[str, np.ndarray] = {}
        if metric == "seuclidean":  # what these measure depends on all rows, not on the two
            self._parameters["V"] = np.maximum(np.var(rows, axis=0, ddof=1), np.finfo(float).tiny)
        elif metric == "mahalanobis":
            self._parameters["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(rows.T)))

    def columns(self, sources: np.ndarray, new: Any = None) -> Columns:
        lines = self.rows if new is None else _narrow_indices(new)
        there = self.rows[sources]

        def block(here: np.ndarray) -> np.ndarray:
            from sklearn.metrics import pairwise_distances  # slow to import, and not needed for the default cost

            try:
                with config_context(assume_finite=True):
                    costs = pairwise_distances(lines[here], there, metric=self.metric, **self._parameters)
            except Exception as error:
                if not callable(self.metric):
                    raise
                raise type(error)(
                    f"{self.name}={self.metric!r} failed on two rows: {error}. It is called with two rows and returns "
                    "a number."
                ) from error
            if not (np.isfinite(costs).all() and (costs >= 0).all()):
                raise ValueError(
                    f"{self.name}={self.metric!r} gave a negative, infinite or NaN value for some pair of rows; "
                    "values must be finite and not negative. Choose another metric, or rescale X."
                )
            return np.asarray(costs, dtype=np.float64)

        return block


@saved_as("geometry.matrix_cost")
class MatrixCost:
    """Costs given as a matrix: line i, column j is the cost from row i to row j."""

    scale = 1.0

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def columns(self, sources: np.ndarray, new: Any = None) -> Columns:
        matrix = self.matrix if new is None else new
        return lambda here: matrix[np.ix_(here, sources)]


def _narrow_indices(rows: Any) -> Any:
    """Sparse rows with the index type that all of scikit-learn's metrics read."""
    if sp.issparse(rows) and max(rows.nnz, *rows.shape) < 2**31:
        rows = sp.csr_array(rows)
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def make_pairwise_cost(X: Any, cost: str | Metric, name: str = "cost") -> PairwiseCost:
    """The costs between the rows of `X` that the parameter `cost` of the estimator, or another one, names."""
    if isinstance(cost, str) and cost == "precomputed":
        return MatrixCost(X)
    if sp.issparse(X) and cost not in SPARSE_METRICS:
        raise ValueError(
            f"cost={cost!r} does not take sparse rows. Use one of {', '.join(SPARSE_METRICS)}, or X.toarray()."
        )
    if cost == "haversine" and X.shape[1] != 2:
        raise ValueError(f"cost='haversine' takes two columns, latitude and longitude in radians; X has {X.shape[1]}.")
    if isinstance(cost, str) and cost in ("sqeuclidean", "euclidean", "l2"):
        return EuclideanCost(X, squared=cost == "sqeuclidean")
    return MetricCost(X, cost, name)


def check_cost(cost: Any, words: tuple[str, ...] = ("precomputed",)) -> None:
    """Refuse a `cost` that no pair of rows could have and that is none of `words` either."""
    if callable(cost) or (isinstance(cost, str) and (cost in METRICS or cost in words)):
        return
    also = ", ".join(map(repr, words))
    if not isinstance(cost, str):
        raise TypeError(f"cost must be {also}, the name of a metric or a callable; got {cost!r}.")
    near = did_you_mean(cost, (*words, *METRICS))
    raise ValueError(
        f"cost={cost!r} is not a known metric{near or '.'} "
        f"Accepted: {also}, a callable, or one of {', '.join(METRICS)}."
    )


def check_cost_matrix(matrix: np.ndarray, n_columns: int) -> None:
    """Refuse a precomputed cost that is not a square matrix (or one line a new row) of costs."""
    if matrix.shape[1] != n_columns:
        raise ValueError(
            f"X must be a square matrix of costs with cost='precomputed', one line and one column a training row: "
            f"got shape {matrix.shape}, expected {n_columns} columns."
        )
    check_values(matrix, "cost")


def check_values(matrix: Any, what: str) -> None:
    """Refuse a matrix X, dense or sparse, of costs or affinities that are not all finite and 0 or more."""
    values = matrix.data if sp.issparse(matrix) else matrix
    if values.size == 0 or (values.min() >= 0 and values.max() < np.inf):  # NaN is neither
        return
    wrong = ~((values >= 0) & (values < np.inf))
    if sp.issparse(matrix):
        place = matrix.tocoo()
        line, column, value = place.row[wrong][0], place.col[wrong][0], values[wrong][0]
    else:
        line, column = np.argwhere(wrong)[0]
        value = matrix[line, column]
    kind = f"the negative {what} {value}" if value < 0 else f"{value}"
    raise ValueError(
        f"X holds {kind} in line {line}, column {column}; every {what} must be a finite number, 0 or more."
    )
