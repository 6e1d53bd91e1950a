"""Diffusion over a graph of rows.

With affinities W >= 0, degrees D and S = D^-1/2 W D^-1/2 the values are F = (I - a S)^-1 B. A column of B holds the
initial values, and the strength 0 < a < 1 determines how far they spread. F is nonnegative, and exactly 0 at rows that
are not connected to any row with a positive initial value.

Only the ratio of the columns within a row matters, and the values of a row far from all initial values are
tiny. The solver therefore bounds errors relative to the row (see `diffusion_solver`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from otprop._saving import saved_as
from otprop._validation import ParameterError, check_count, check_number
from otprop.geometry.diffusion_solver import COLUMNS_PER_BLOCK as MAX_COLUMNS_OF_GROUPS
from otprop.geometry.diffusion_solver import (
    DiffusionResult,
    DiffusionSystem,
    held_in_single,
    solve_columns,
    worker_pool,
)
from otprop.geometry.neighbors import Neighbors
from otprop.geometry.parallel import Jobs, row_blocks
from otprop.geometry.scaling import sorted_csr

SCALE_NEIGHBOR = 7
MAX_EXPONENT = 500.0  # no affinity is below exp(-500), so that a row far from all others stays connected
ROWS_OF_DIAGONAL = 32  # of `inverse_diagonal`, computed at once
REORDERED_ROWS = 5000  # larger graphs are reordered to have neighbours close in memory
MAX_INVERSE_ROWS = 600  # up to here the inverse is computed once and kept
MAX_DIRECT_STRENGTH = 1.0 - 1e-6
MIN_DIRECT = 1e-200  # of the largest initial value; smaller values may have underflowed


def as_values(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values as `dtype`; positive ones stay positive, so that rows that are hardly reached are not unreached."""
    found = values.astype(dtype, copy=False)
    if dtype != np.float64:
        found[(found == 0) & (values > 0)] = np.finfo(dtype).tiny
    return found


@saved_as("geometry.diffusion_graph", drops=("_S", "_order", "_roots", "components", "degrees", "symmetric"))
class DiffusionGraph:
    """A weighted graph of rows.

    Parameters
    ----------
    affinity : sparse or dense matrix of shape (n_rows, n_rows), see `check_affinity`
    scales : ndarray of shape (n_rows,) or None, the scales of self-tuned affinities, to extend values to new rows
    scale_neighbor : int, the neighbour whose distance is the scale
    name : str, the parameter that errors refer to

    Attributes
    ----------
    n_rows : int
    symmetric : bool, False if w_ij and w_ji differed for some pair; the larger is then used for both
    degrees : ndarray of shape (n_rows,), the row sums of the affinities over the largest affinity
    components : ndarray of shape (n_rows,), the connected component of each row
    """

    def __init__(
        self,
        affinity: Any,
        scales: np.ndarray | None = None,
        scale_neighbor: int = SCALE_NEIGHBOR,
        *,
        name: str = "affinity",
    ) -> None:
        weights, self.symmetric = check_affinity(affinity, name)
        weights.data /= weights.data.max(initial=0.0) or 1.0  # sums do not overflow
        weights.eliminate_zeros()
        self.n_rows = weights.shape[0]
        self.scales, self.scale_neighbor = scales, scale_neighbor
        self.degrees = np.asarray(weights.sum(axis=1))
        self._order = np.arange(self.n_rows)
        if self.n_rows > REORDERED_ROWS:
            self._order = reverse_cuthill_mckee(weights, symmetric_mode=True)
            weights = sorted_csr(weights[self._order][:, self._order])
        degrees = self.degrees[self._order]
        each = np.repeat(degrees, np.diff(weights.indptr))
        weights.data = np.sqrt(weights.data / each) * np.sqrt(weights.data / degrees[weights.indices])
        self._S = weights
        self._roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
        self._inverses: dict[float, np.ndarray] = {}

    @classmethod
    def from_neighbors(
        cls, neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
    ) -> DiffusionGraph:
        """The graph of the `self_tuned_weights`; it can `extend` values to new rows."""
        near = neighbors if k is None else neighbors.first(k)
        return cls(self_tuned_weights(near, None, scale_neighbor), local_scales(near, scale_neighbor), scale_neighbor)

    @cached_property
    def components(self) -> np.ndarray:
        labels = np.empty(self.n_rows, dtype=np.int32)
        labels[self._order] = connected_components(self._S, directed=False)[1]
        return labels

    @property
    def narrow_dtype(self) -> type:
        """Float32 if it holds the values of all rows, which scale with their roots; float64 otherwise."""
        return np.float32 if held_in_single(self._roots) else np.float64

    def connected_to(self, initial: Any) -> np.ndarray:
        """Boolean mask of the rows in a component with a positive initial value."""
        return np.isin(self.components, self.components[np.asarray(initial.sum(axis=1)) > 0])

    def solve(
        self,
        initial: Any,
        strength: float,
        *,
        start: np.ndarray | None = None,
        tol: float = 1e-6,
        max_iter: int = 2000,
        n_jobs: int | None = None,
        n_groups: int = 1,
        rows: np.ndarray | None = None,
        dtype: Any = np.float64,
        overwrite_start: bool = False,
    ) -> DiffusionResult:
        """Solve (I - strength S) F = initial.

        Parameters
        ----------
        initial : ndarray or sparse matrix of shape (n_rows, n_columns), nonnegative
        strength : float between 0 and 1, both excluded
        start : ndarray of shape (n_rows, n_columns) or None, an approximation of F to start from
        tol : float, tolerance for the error of a value relative to the sum of its row
        max_iter : int, products with the graph, for each of the systems that the rows are solved in
        n_jobs : int or None, number of threads; None for all processors; results do not depend on it
        n_groups : int, independent problems side by side in the columns, as many columns in each: errors are relative
            to the sum of a row over the columns of its group
        rows : ndarray of int or None, the rows whose values are returned (None: all)
        dtype : float64, or float32 to save memory, see `as_values` and `narrow_dtype`
        overwrite_start : bool, the values of all rows may replace those of `start`

        Returns
        -------
        DiffusionResult
        """
        columns = self._check_initial(initial)
        if start is not None and start.shape != columns.shape:
            raise ParameterError("start", f"must have the shape of initial, {columns.shape}; got {start.shape}.")
        if n_groups > 1 and columns.shape[1] > MAX_COLUMNS_OF_GROUPS:
            raise ParameterError("n_groups", f"={n_groups} takes at most {MAX_COLUMNS_OF_GROUPS} columns in all.")
        direct = self._solve_directly(columns, strength)
        if direct is not None:
            return direct if rows is None else replace(direct, values=direct.values[rows])
        largest = float(columns.max()) if columns.nnz else 0.0
        largest = largest or 1.0
        if overwrite_start and rows is None and start is not None and start.dtype == dtype:
            values = start  # a block of columns is read before it is written
        else:
            values = np.empty((self.n_rows if rows is None else len(rows), columns.shape[1]), dtype=dtype)
        places = np.argsort(self._order)
        places = places if rows is None else places[rows]
        iterations, worst = 0, 0.0

        def first(block: slice) -> np.ndarray:
            assert start is not None
            return np.asarray(np.maximum(start[self._order, block], 0.0) / largest)

        with worker_pool(self.n_rows, n_jobs) as pool:
            for block, result in solve_columns(
                self._system(strength, pool),
                lambda block: columns[:, block].toarray()[self._order] / largest,
                None if start is None else first,
                columns.shape[1],
                self.components[self._order],
                tol,
                max_iter,
                n_groups,
            ):
                found = result.values * largest
                values[:, block] = as_values(found[places], dtype)
                iterations, worst = iterations + result.iterations, max(worst, result.residual)
        return DiffusionResult(values, iterations, worst, worst <= tol)

    def _solve_directly(self, columns: sp.csc_array, strength: float) -> DiffusionResult | None:
        """The values of a small graph from the inverse; None where that is not possible, or not accurate.

        No step of the Cholesky factorisation of this matrix subtracts numbers of equal size, so that even tiny values
        have a small relative error, as long as they do not underflow.
        """
        inverse = self._inverse(strength)
        if inverse is None:
            return None
        values = columns.T.dot(inverse).T  # the inverse is symmetric
        sums = values.sum(axis=1)
        connected = self.connected_to(columns)
        if connected.any() and not sums[connected].min() >= MIN_DIRECT * columns.max():
            return None
        return DiffusionResult(values, 0, 0.0, True)

    def _inverse(self, strength: float) -> np.ndarray | None:
        """The inverse of the system of a small graph, computed once; None for a large one."""
        if self.n_rows > MAX_INVERSE_ROWS or not strength <= MAX_DIRECT_STRENGTH:
            return None
        if strength not in self._inverses:
            inverse = np.empty((self.n_rows, self.n_rows))
            inverse[np.ix_(self._order, self._order)] = self._system(strength, None).inverse()
            self._inverses[strength] = inverse
        return self._inverses[strength]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_inverses": {}}

    def inverse_diagonal(
        self, rows: np.ndarray, strength: float, *, tol: float = 1e-6, max_iter: int = 2000, n_jobs: int | None = None
    ) -> DiffusionResult:
        """The diagonal of the inverse (I - strength S)^-1 at `rows`, as the values of the result, of shape (n_rows,).

        A value is the contribution of a row's own initial value to the value of that row; `tol` is its absolute error,
        and it is at least 1. The other parameters are those of `solve`; `max_iter` applies to every block of rows.
        """
        inverse = self._inverse(strength)
        if inverse is not None:
            return DiffusionResult(inverse[rows, rows], 0, 0.0, True)
        system, components = self._system(strength, None), self.components[self._order]
        places = np.argsort(self._order)[rows]

        def solve(block: slice) -> tuple[np.ndarray, int, float]:
            connected = np.flatnonzero(np.isin(components, components[places[block]]))
            part = system.part(connected)
            return part.inverse_diagonal(np.searchsorted(connected, places[block]), tol, max_iter)

        solved = list(Jobs(n_jobs).run(solve, row_blocks(len(places), ROWS_OF_DIAGONAL)))
        values = np.concatenate([np.empty(0), *(entries for entries, _, _ in solved)])
        error = max((error for _, _, error in solved), default=0.0)
        return DiffusionResult(values, sum(n_iter for _, n_iter, _ in solved), error, error <= tol)

    def extend(self, new: Any, values: np.ndarray) -> np.ndarray:
        """Values at new rows: the mean of their neighbours' values, weighted by affinity.

        Parameters
        ----------
        new : Neighbors of the new rows; for a graph of given affinities, their affinities of shape (n_new, n_rows)
        values : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_new, n_columns), 0 for a row without positive affinity
        """
        if not isinstance(new, Neighbors):
            affinity = sp.csr_array(new, dtype=np.float64, copy=True)
            if affinity.shape[1] != self.n_rows:
                raise ValueError(
                    f"The affinities of new rows must have {self.n_rows} columns; got {affinity.shape[1]}."
                )
            affinity.data /= affinity.data.max(initial=0.0) or 1.0  # sums do not overflow
            sums = np.asarray(affinity.sum(axis=1))[:, None]
            return (affinity @ values) / np.where(sums > 0, sums, 1.0)
        if self.scales is None:
            raise ValueError("This graph was given as affinities: new rows need affinities too, not neighbours.")
        scales = local_scales(new, self.scale_neighbor)[:, None]
        exponents = np.minimum(scaled_squares(new.distances, scales, self.scales[new.indices]), np.finfo(float).max)
        exponents -= exponents.min(axis=1, keepdims=True)
        weights = np.exp(-exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        return csr_from_neighbors(weights, new.indices, self.n_rows) @ values

    def _check_initial(self, initial: Any) -> sp.csc_array:
        shape = np.shape(initial)
        if len(shape) != 2 or shape[0] != self.n_rows:
            raise ParameterError("initial", f"must have shape ({self.n_rows}, n_columns); got {shape}.")
        columns = sp.csc_array(initial, dtype=np.float64)
        if not (np.isfinite(columns.data).all() and (columns.data >= 0).all()):
            raise ParameterError("initial", "must be finite and not negative.")
        return columns

    def _system(self, strength: float, pool: ThreadPoolExecutor | None) -> DiffusionSystem:
        check_number("strength", strength, above=0, below=1)
        return DiffusionSystem(self._S, strength, self._roots, pool)


def self_tuned_weights(
    neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
) -> sp.csr_array:
    """Affinities w_ij = exp(-d_ij^2 / (s_i s_j)) between neighbours, with s_i from `local_scales`.

    Parameters
    ----------
    neighbors : Neighbors of every row
    k : int or None, how many of them to use (None: all)
    scale_neighbor : int, the neighbour whose distance is the scale, or the last one if there are fewer

    Returns
    -------
    csr_array of shape (n_rows, n_rows), symmetric (the larger of w_ij and w_ji), with a diagonal of 0
    """
    near = neighbors if k is None else neighbors.first(k)
    n_rows = len(near.indices)
    scales = local_scales(near, scale_neighbor)
    exponents = np.minimum(scaled_squares(near.distances, scales[:, None], scales[near.indices]), MAX_EXPONENT)
    directed = csr_from_neighbors(np.exp(-exponents), near.indices, n_rows)
    return sorted_csr(directed.maximum(directed.T))


def local_scales(neighbors: Neighbors, scale_neighbor: int = SCALE_NEIGHBOR) -> np.ndarray:
    """The distance from each row to its `scale_neighbor`-th neighbour, replaced where it is 0.

    The replacement is the smallest positive distance of the row or, if it has none, the smallest scale of all rows.
    """
    check_count("scale_neighbor", scale_neighbor)
    distances = neighbors.distances
    if not distances.shape[1]:
        return np.ones(len(distances))
    scales = distances[:, min(scale_neighbor, distances.shape[1]) - 1].copy()
    zero = scales == 0
    scales[zero] = np.min(distances[zero], axis=1, initial=np.inf, where=distances[zero] > 0)
    scales[np.isinf(scales)] = np.min(scales, initial=np.inf)
    return np.where(np.isinf(scales), 1.0, scales)


def check_affinity(affinity: Any, name: str = "affinity") -> tuple[sp.csr_array, bool]:
    """Validate affinities; returns them as a symmetric matrix with a diagonal of 0, and whether they were symmetric.

    Where w_ij and w_ji differ, the larger is used. `name` is the parameter that errors refer to.
    """
    matrix = sp.csr_array(affinity, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError(name, f"must be a square matrix with one row and one column per row; got {matrix.shape}.")
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ParameterError(name, "holds an infinite or missing affinity; all must be finite.")
    if (matrix.data < 0).any():
        raise ParameterError(name, f"holds the negative affinity {matrix.data.min()}; all must be 0 or more.")
    matrix.data[matrix.indices == np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))] = 0.0
    matrix.eliminate_zeros()
    both = sorted_csr(matrix.maximum(sp.csr_array(matrix.T)))
    largest = matrix.data.max(initial=0.0) or 1.0
    symmetric = (both.data / largest).sum() <= (1 + 1e-9) * (matrix.data / largest).sum()
    return both, bool(symmetric)


def csr_from_neighbors(values: np.ndarray, indices: np.ndarray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with `values` at the columns `indices` of each row."""
    n_rows, k = indices.shape
    starts = np.arange(n_rows + 1) * k
    return sp.csr_array((values.ravel(), indices.ravel(), starts), shape=(n_rows, n_columns))


def scaled_squares(distances: np.ndarray, row_scales: np.ndarray, neighbor_scales: np.ndarray) -> np.ndarray:
    """d_ij^2 / (s_i s_j), computed so that d_ij^2 cannot overflow."""
    with np.errstate(over="ignore"):
        return (distances / row_scales) * (distances / neighbor_scales)
