"""Costs between pairs of rows: by a metric of scikit-learn, a callable, or a precomputed matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from otprop._saving import saved_as
from otprop._validation import InputError, ParameterError, did_you_mean
from otprop.geometry.scaling import max_abs, multiply_clipped, narrow_indices, power_of_two

Columns = Callable[[np.ndarray], np.ndarray]
Metric = Callable[[np.ndarray, np.ndarray], float]

UNSCALED_RANGE = 1e-30, 1e30  # magnitudes that float32 holds: others need a scale
SCALE_ROWS = 256  # rows whose costs determine the scale of a metric
CENTER_ROWS = 1000  # rows whose median is the center
FARTHEST = 1e150  # in units of the scaled rows: squares stay finite
LARGEST_COST = 1e300
FAR = 1e100  # in units of the training rows; new rows farther from zero are clipped to this
STANDARDISED = ("seuclidean", "mahalanobis")
METRICS = (
    *("sqeuclidean", "euclidean", "cityblock", "cosine", "correlation", "chebyshev", "canberra", "braycurtis"),
    *("manhattan", "minkowski", "seuclidean", "mahalanobis", "l1", "l2", "hamming", "jaccard", "dice"),
    *("rogerstanimoto", "russellrao", "sokalsneath", "yule", "haversine"),
)

SPARSE_METRICS = ("sqeuclidean", "euclidean", "l2", "cityblock", "manhattan", "l1", "cosine")


class PairwiseCost(Protocol):
    """The costs between the rows of a table; a cost times `scale` is in the user's units."""

    scale: float

    def columns(self, reference: np.ndarray, new: Any = None) -> Columns:
        """A function from row numbers (of `new`, if given) to the costs of those rows to the `reference` rows."""
        ...


@saved_as("geometry.euclidean_cost")
class EuclideanCost:
    """Squared (Eq. 8) or plain Euclidean distances between rows with features of any scale and offset.

    Rows are centered (unless sparse) and scaled by a power of two, which is exact, so that squares do not overflow and
    small distances are not lost next to large norms. Distances are in those units; multiply by `scale` for the
    user's units.
    """

    def __init__(self, rows: Any, squared: bool = True) -> None:
        self.squared = squared
        self._scale = power_of_two(max_abs(rows))
        rows = rows / self._scale
        self._center: np.ndarray | None = None
        if not sp.issparse(rows):
            self._center = np.median(rows[:: max(1, len(rows) // CENTER_ROWS)], axis=0)
            rows -= self._center
        self._centered_scale = power_of_two(max_abs(rows))
        rows /= self._centered_scale
        self.rows = rows
        self.norms = row_norms(self.rows, squared=True)
        with np.errstate(over="ignore", under="ignore"):
            unit = np.float64(self._scale) * self._centered_scale
            limits = np.finfo(float)
            self.scale = float(np.clip(unit * unit if squared else unit, limits.smallest_subnormal, limits.max))

    def columns(self, reference: np.ndarray, new: Any = None) -> Columns:
        rows, norms = (self.rows, self.norms) if new is None else self._transform(new)
        others, other_norms = self.rows[reference].T, self.norms[reference]

        def block(numbers: np.ndarray) -> np.ndarray:
            costs = safe_sparse_dot(rows[numbers], others, dense_output=True)
            costs *= -2.0
            costs += norms[numbers, None]
            costs += other_norms
            np.maximum(costs, 0.0, out=costs)
            return costs if self.squared else np.sqrt(costs, out=costs)

        return block

    def _transform(self, new: Any) -> tuple[Any, np.ndarray]:
        """New rows and their squared norms in the units of the training rows, clipped where squares would overflow."""
        with np.errstate(over="ignore"):
            new = new / self._scale
            if self._center is not None:
                new -= self._center
            new = new / self._centered_scale
        values = new.data if sp.issparse(new) else new
        np.clip(values, -FARTHEST, FARTHEST, out=values)
        return new, row_norms(new, squared=True)


@saved_as("geometry.metric_cost")
class MetricCost:
    """Costs by a metric of scikit-learn, or a callable of two rows."""

    scale = 1.0
    _unit = 1.0  # of the rows, for metrics whose values do not depend on it

    def __init__(self, rows: Any, metric: str | Metric, name: str = "cost") -> None:
        self.metric, self.name = metric, name
        if metric in STANDARDISED:
            self._unit = _scale_for(max_abs(rows))
        self.rows = rows = self._in_unit(narrow_indices(rows))
        self._parameters: dict[str, np.ndarray] = {}
        if metric == "seuclidean":  # these two depend on all rows
            self._parameters["V"] = np.maximum(np.var(rows, axis=0, ddof=1), np.finfo(float).tiny)
        elif metric == "mahalanobis":
            self._parameters["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(rows.T)))
        if _scale_for(max_abs(rows)) != 1.0:
            sample = np.arange(min(rows.shape[0], SCALE_ROWS))
            self.scale = _scale_for(float(self.columns(sample[:1])(sample).max()))

    def _in_unit(self, rows: Any) -> Any:
        if self._unit == 1.0:
            return rows
        with np.errstate(over="ignore"):
            return np.clip(rows / self._unit, -FAR, FAR)

    def columns(self, reference: np.ndarray, new: Any = None) -> Columns:
        rows = self.rows if new is None else self._in_unit(narrow_indices(new))
        others = self.rows[reference]

        def block(numbers: np.ndarray) -> np.ndarray:
            from sklearn.metrics import pairwise_distances  # slow to import, and not needed for the default cost

            try:
                with config_context(assume_finite=True), np.errstate(over="ignore"):
                    costs = pairwise_distances(rows[numbers], others, metric=self.metric, **self._parameters)
            except Exception as error:
                if not callable(self.metric):
                    raise
                raise type(error)(
                    f"{self.name}={self.metric!r} failed on two rows: {error}. It is called with two rows and returns "
                    "a number."
                ) from error
            if not (np.isfinite(costs).all() and (costs >= 0).all()):
                raise InputError(
                    f"{self.name}={self.metric!r} gave a negative, infinite or NaN value for some pair of rows; "
                    "values must be finite and not negative. Choose another metric, or rescale X."
                )
            return _rescaled(np.asarray(costs, dtype=np.float64), self.scale)

        return block


@saved_as("geometry.matrix_cost")
class MatrixCost:
    """Precomputed costs: ``matrix[i, j]`` is the cost from row i to row j."""

    scale = 1.0

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix, self.scale = matrix, _scale_for(float(matrix.max(initial=0.0)))

    def columns(self, reference: np.ndarray, new: Any = None) -> Columns:
        matrix = self.matrix if new is None else new
        return lambda numbers: _rescaled(matrix[np.ix_(numbers, reference)], self.scale)


def _scale_for(largest: float) -> float:
    """The scale of costs up to `largest`: 1 unless they are extreme."""
    return 1.0 if UNSCALED_RANGE[0] < largest < UNSCALED_RANGE[1] else power_of_two(largest)


def _rescaled(costs: np.ndarray, scale: float) -> np.ndarray:
    """Costs over `scale`, bounded so that differences of two do not overflow."""
    with np.errstate(over="ignore"):
        return costs if scale == 1.0 else np.minimum(costs / scale, LARGEST_COST)


def in_user_units(value: float, scale: float) -> float:
    """`value` times the `scale` of a cost, kept positive and finite."""
    return max(float(multiply_clipped(value, scale)), float(np.finfo(float).smallest_subnormal))


def make_pairwise_cost(X: Any, cost: str | Metric, name: str = "cost") -> PairwiseCost:
    """The pairwise cost of the rows of `X`; `name` is the estimator's parameter that holds `cost`, for messages."""
    if isinstance(cost, str) and cost == "precomputed":
        return MatrixCost(X)
    if sp.issparse(X) and cost not in SPARSE_METRICS:
        raise InputError(
            f"cost={cost!r} does not take sparse rows. Use one of {', '.join(SPARSE_METRICS)}, or X.toarray()."
        )
    if cost == "haversine" and X.shape[1] != 2:
        raise InputError(f"cost='haversine' takes two columns, latitude and longitude in radians; X has {X.shape[1]}.")
    if isinstance(cost, str) and cost in ("sqeuclidean", "euclidean", "l2"):
        return EuclideanCost(X, squared=cost == "sqeuclidean")
    return MetricCost(X, cost, name)


def check_cost(cost: Any, choices: tuple[str, ...] = ("precomputed",)) -> None:
    """Raise an error unless `cost` is a metric, a callable or one of `choices`."""
    if callable(cost) or (isinstance(cost, str) and (cost in METRICS or cost in choices)):
        return
    also = ", ".join(map(repr, choices))
    if not isinstance(cost, str):
        raise ParameterError("cost", f"must be {also}, the name of a metric or a callable; got {cost!r}.")
    near = did_you_mean(cost, (*choices, *METRICS))
    accepted = f"Accepted: {also}, a callable, or one of {', '.join(METRICS)}."
    raise ParameterError("cost", f"={cost!r} is not a known metric{near or '.'} {accepted}")


def check_cost_matrix(matrix: np.ndarray, n_columns: int) -> None:
    """Raise an error unless `matrix` holds valid costs in `n_columns` columns, one for each training row."""
    if matrix.shape[1] != n_columns:
        raise InputError(
            "X must be a square matrix of costs with cost='precomputed', one row and one column per training row: "
            f"got shape {matrix.shape}, expected {n_columns} columns."
        )
    check_values(matrix, "cost")


def check_values(matrix: Any, what: str) -> None:
    """Raise an error unless all values of the matrix X, costs or affinities, are finite and 0 or more."""
    values = matrix.data if sp.issparse(matrix) else matrix
    if values.size == 0 or (values.min() >= 0 and values.max() < np.inf):  # NaN is neither
        return
    wrong = ~((values >= 0) & (values < np.inf))
    if sp.issparse(matrix):
        entries = matrix.tocoo()
        row, column, value = entries.row[wrong][0], entries.col[wrong][0], values[wrong][0]
    else:
        row, column = np.argwhere(wrong)[0]
        value = matrix[row, column]
    kind = f"the negative {what} {value}" if value < 0 else f"{value}"
    raise InputError(f"X holds {kind} in row {row}, column {column}; every {what} must be a finite number, 0 or more.")
