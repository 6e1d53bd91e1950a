"""Diffusion over a graph of rows: how much of what starts at some rows arrives at each of the others.

With affinities W >= 0, degrees D and S = D^-1/2 W D^-1/2 the values are F = (I - a S + diag(pull))^-1 B: a column of B
says how much starts where, and the strength 0 < a < 1 how far it goes. F is not negative, and exactly 0 at rows that
are not connected to any source.

What counts are the shares of the columns in a row, and far from all sources a row's values are tiny. So errors are held
to a tolerance relative to the row: conjugate gradients find the rows whose values are not far below the largest; these
then are the sources of a smaller system for the other rows, in units of its own, and so on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from otprop._checks import check_count, check_number
from otprop.geometry.neighbors import Jobs, Neighbors

SCALE_NEIGHBOR = 7
FARTHEST = 500.0  # no affinity is below exp(-500), so that a row far from all others still hears of its neighbours
LEVEL = 1e-5  # rows with less than this share of the largest value are left to the next system
SMALLEST = 1e-150  # potentials below are raised to about this, all of a row's by the same factor
CHECK_EVERY = 4  # iterations
ROWS_AT_ONCE = 10_000  # of a product, for a thread
COLUMNS_AT_ONCE = 16  # of a block of the inverse
MANY_COLUMNS = 64  # more are solved for this many at a time
REORDERED_ROWS = 5000  # with more rows it pays to put neighbours next to one another
DIRECT_ROWS = 2000  # up to here a large block of the inverse comes from a dense matrix


@dataclass(frozen=True)
class DiffusionResult:
    """Values at every row, and how far to trust them.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns), not negative
    iterations : int, products with the graph or a part of it
    residual : float, about the largest error of a value relative to the sum of its row
    converged : bool, the residual is within the tolerance
    """

    values: np.ndarray
    iterations: int
    residual: float
    converged: bool


def self_tuned_weights(
    neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
) -> sp.csr_array:
    """Affinities w_ij = exp(-d_ij^2 / (s_i s_j)) between neighbours, s_i the distance to a near neighbour of row i.

    Parameters
    ----------
    neighbors : Neighbors of every row
    k : int or None, how many of them count (None: all)
    scale_neighbor : int, the neighbour whose distance is the scale, the last where there are fewer

    Returns
    -------
    csr_array of shape (n_rows, n_rows), symmetric (the larger of w_ij and w_ji), with nothing on the diagonal
    """
    near = neighbors if k is None else neighbors.first(k)
    n_rows = len(near.indices)
    scales = local_scales(near, scale_neighbor)
    exponents = np.minimum(_exponents(near.distances, scales[:, None], scales[near.indices]), FARTHEST)
    directed = _rows_of(np.exp(-exponents), near.indices, n_rows)
    return _narrow(directed.maximum(directed.T))


def local_scales(neighbors: Neighbors, scale_neighbor: int = SCALE_NEIGHBOR) -> np.ndarray:
    """The distance to the `scale_neighbor`-th neighbour of each row, never 0.

    Where that is 0 it is the first distance of the row that is not; if all are, the smallest scale of another row.
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


class DiffusionGraph:
    """A graph over rows along which values spread.

    Parameters
    ----------
    affinity : sparse or dense matrix of shape (n_rows, n_rows), see `check_affinity`
    scales : ndarray of shape (n_rows,) or None, the rows' scales if the affinities are self-tuned, for new rows
    scale_neighbor : int, which neighbour's distance a scale is

    Attributes
    ----------
    n_rows : int
    degrees : ndarray of shape (n_rows,), the sums of the affinities, in units of the largest
    components : ndarray of shape (n_rows,), rows with the same number are connected
    """

    def __init__(self, affinity: Any, scales: np.ndarray | None = None, scale_neighbor: int = SCALE_NEIGHBOR) -> None:
        weights = check_affinity(affinity)
        weights.data /= weights.data.max(initial=0.0) or 1.0  # so that no sum overflows
        weights.eliminate_zeros()
        self.n_rows = weights.shape[0]
        self.scales, self.scale_neighbor = scales, scale_neighbor
        self.degrees = np.asarray(weights.sum(axis=1))
        self._order = np.arange(self.n_rows)
        if self.n_rows > REORDERED_ROWS:
            self._order = reverse_cuthill_mckee(weights, symmetric_mode=True)
            weights = _narrow(weights[self._order][:, self._order])
        degrees = self.degrees[self._order]
        each = np.repeat(degrees, np.diff(weights.indptr))
        weights.data = np.sqrt(weights.data / each) * np.sqrt(weights.data / degrees[weights.indices])
        self._S = weights
        self._roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))

    @classmethod
    def from_neighbors(
        cls, neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
    ) -> DiffusionGraph:
        """The graph of the `self_tuned_weights`, which can also `extend` values to new rows."""
        near = neighbors if k is None else neighbors.first(k)
        return cls(self_tuned_weights(near, None, scale_neighbor), local_scales(near, scale_neighbor), scale_neighbor)

    @cached_property
    def components(self) -> np.ndarray:
        labels = np.empty(self.n_rows, dtype=np.int32)
        labels[self._order] = connected_components(self._S, directed=False)[1]
        return labels

    def solve(
        self,
        sources: Any,
        strength: float,
        *,
        pull: np.ndarray | None = None,
        start: np.ndarray | None = None,
        tol: float = 1e-6,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ) -> DiffusionResult:
        """The values F with (I - strength S + diag(pull)) F = sources.

        Parameters
        ----------
        sources : ndarray or sparse matrix of shape (n_rows, n_columns), not negative
        strength : float between 0 and 1, both excluded
        pull : ndarray of shape (n_rows,) or None, not negative
        start : ndarray of shape (n_rows, n_columns) or None, values to start from
        tol : float, the error allowed, relative to the sum of a row's values
        max_iter : int, products with the graph, for each of the systems that the rows are solved in
        n_jobs : int or None, threads; None for all processors; no result depends on it

        Returns
        -------
        DiffusionResult
        """
        columns = self._check_sources(sources)[self._order]
        if start is not None and start.shape != columns.shape:
            raise ValueError(f"start must have the shape of sources, {columns.shape}; got {start.shape}.")
        given = None if start is None else np.maximum(start[self._order], 0.0)
        largest = columns.max(initial=0.0) or 1.0
        with _threads(self.n_rows, n_jobs) as pool:
            result = _all_columns(
                self._system(strength, pull, pool),
                columns / largest,
                None if given is None else given / largest,
                np.flatnonzero(self._connected_to(columns.max(axis=1, initial=0.0) > 0)),
                tol,
                max_iter,
            )
        values = np.empty_like(result.values)
        values[self._order] = result.values * largest
        return replace(result, values=values)

    def block(
        self,
        rows: np.ndarray,
        strength: float,
        *,
        pull: np.ndarray | None = None,
        tol: float = 1e-4,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ) -> np.ndarray:
        """The lines and columns `rows` of the inverse (I - strength S + diag(pull))^-1.

        An entry is good to `tol`, relative to itself, down to about 1e-6 of the largest in its column.

        Parameters
        ----------
        rows : ndarray of int, shape (l,)
        strength, pull, tol, max_iter, n_jobs : as in `solve`; `max_iter` for every 16 columns

        Returns
        -------
        ndarray of shape (l, l), symmetric and not negative
        """
        places = np.argsort(self._order)[rows]
        system = self._system(strength, pull, None)
        if self.n_rows <= min(DIRECT_ROWS, 10 * len(places)):
            found = system.solve_directly(np.eye(self.n_rows)[:, places])[places]
        else:
            chunks = [places[i : i + COLUMNS_AT_ONCE] for i in range(0, len(places), COLUMNS_AT_ONCE)]

            def columns(chunk: np.ndarray) -> np.ndarray:
                rhs = np.zeros((self.n_rows, len(chunk)))
                rhs[chunk, np.arange(len(chunk))] = 1.0
                lowest = _lowest(1e-6, tol, strength)
                values, _, error = system.solve(rhs, None, tol=tol, lowest=lowest, max_iter=max_iter, separate=True)
                errors.append(error)
                return values[places]

            errors: list[float] = [0.0]
            found = np.hstack([np.empty((len(places), 0)), *Jobs(n_jobs).run(columns, chunks)])
            if max(errors) > tol:
                warnings.warn(
                    f"A block of the diffusion stopped at an error of {max(errors):.2g}, above tol={tol:g}. "
                    "Raise max_iter or tol, or lower the strength.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return np.maximum((found + found.T) / 2, 0.0)

    def extend(self, new: Any, values: np.ndarray) -> np.ndarray:
        """Values at new rows: the mean of their neighbours' values, weighted by affinity.

        Parameters
        ----------
        new : Neighbors of the new rows, or a matrix of shape (n_new, n_rows) of affinities where the graph came so
        values : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_new, n_columns), 0 for a row without any affinity
        """
        if not isinstance(new, Neighbors):
            affinity = sp.csr_array(new)
            if affinity.shape[1] != self.n_rows:
                raise ValueError(
                    f"The affinities of new rows must have {self.n_rows} columns; got {affinity.shape[1]}."
                )
            sums = np.asarray(affinity.sum(axis=1))[:, None]
            return (affinity @ values) / np.where(sums > 0, sums, 1.0)
        if self.scales is None:
            raise ValueError("This graph was given as affinities: new rows need affinities too, not neighbours.")
        own = local_scales(new, self.scale_neighbor)[:, None]
        exponents = np.minimum(_exponents(new.distances, own, self.scales[new.indices]), np.finfo(float).max)
        exponents -= exponents.min(axis=1, keepdims=True)
        weights = np.exp(-exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        return _rows_of(weights, new.indices, self.n_rows) @ values

    def _check_sources(self, sources: Any) -> np.ndarray:
        columns = np.asarray(sources.toarray() if sp.issparse(sources) else sources, dtype=np.float64)
        if columns.ndim != 2 or len(columns) != self.n_rows:
            raise ValueError(f"sources must have shape ({self.n_rows}, n_columns); got {columns.shape}.")
        if not (np.isfinite(columns).all() and (columns >= 0).all()):
            raise ValueError("sources must be finite and not negative.")
        return columns

    def _system(self, strength: float, pull: np.ndarray | None, pool: ThreadPoolExecutor | None) -> _System:
        check_number("strength", strength, above=0, below=1)
        diagonal = np.ones(self.n_rows)
        if pull is not None:
            pull = np.asarray(pull, dtype=np.float64)
            if pull.shape != (self.n_rows,) or not (np.isfinite(pull).all() and (pull >= 0).all()):
                raise ValueError(f"pull must have shape ({self.n_rows},) and be finite and not negative.")
            diagonal += pull[self._order]
        return _System(self._S, strength, diagonal, self._roots, pool)

    def _connected_to(self, rows: np.ndarray) -> np.ndarray:
        """Which rows are connected to some of `rows`, all in the order of the system."""
        labels = self.components[self._order]
        return np.isin(labels, labels[rows])


@dataclass(frozen=True)
class _System:
    """The matrix diag(diagonal) - strength S, and errors of its solutions. Potentials are values over `roots`."""

    S: sp.csr_array
    strength: float
    diagonal: np.ndarray
    roots: np.ndarray
    pool: ThreadPoolExecutor | None

    def part(self, rows: np.ndarray) -> _System:
        """The lines and columns `rows`."""
        if len(rows) == len(self.roots):
            return self
        return replace(self, S=_narrow(self.S[rows][:, rows]), diagonal=self.diagonal[rows], roots=self.roots[rows])

    @cached_property
    def _blocks(self) -> list[tuple[slice, sp.csr_array]]:
        blocks, (data, indices, starts) = [], (self.S.data, self.S.indices, self.S.indptr)
        for first in range(0, self.S.shape[0], ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, self.S.shape[0])
            here = slice(starts[first], starts[last])
            lines = (data[here], indices[here], starts[first : last + 1] - starts[first])
            blocks.append((slice(first, last), sp.csr_array(lines, shape=(last - first, self.S.shape[1]))))
        return blocks

    def spread(self, values: np.ndarray) -> np.ndarray:
        """S times the values."""
        if self.pool is None or len(self._blocks) == 1:
            return self.S @ values
        out = np.empty(values.shape)

        def fill(block: tuple[slice, sp.csr_array]) -> None:
            out[block[0]] = block[1] @ values

        list(self.pool.map(fill, self._blocks))
        return out

    def times(self, values: np.ndarray) -> np.ndarray:
        out = self.spread(values)
        out *= -self.strength
        out += self.diagonal[:, None] * values
        return out

    def solve(
        self,
        rhs: np.ndarray,
        values: np.ndarray | None,
        *,
        tol: float,
        lowest: float,
        max_iter: int,
        reference: np.ndarray | None = None,
        separate: bool = False,
    ) -> tuple[np.ndarray, int, float]:
        """Values, iterations and the `error`, by conjugate gradients for each column, from `values` on."""
        residual, iterations = rhs if values is None else rhs - self.times(values), int(values is not None)
        if values is None or np.abs(residual).max() >= rhs.max():  # nothing known, or nothing worth knowing
            values, residual = np.zeros(rhs.shape), rhs.copy()
        error = self.error(residual, values, lowest, reference, separate)
        while error > tol and iterations < max_iter:
            direction = residual / self.diagonal[:, None]
            product = _column_dots(residual, direction)
            for count in range(1, max_iter - iterations + 1):
                image = self.times(direction)
                length = _over(product, _column_dots(direction, image))
                values += length * direction
                residual -= length * image
                if count % CHECK_EVERY == 0 and self.error(residual, values, lowest, reference, separate) <= tol / 2:
                    break
                scaled = residual / self.diagonal[:, None]
                old, product = product, _column_dots(residual, scaled)
                direction *= _over(product, old)
                direction += scaled
            residual = rhs - self.times(values)  # what was updated may have drifted
            iterations += count + 1
            before, error = error, self.error(residual, values, lowest, reference, separate)
            if error > before / 2:
                break
        return np.maximum(values, 0.0, out=values), iterations, error

    def solve_directly(self, rhs: np.ndarray) -> np.ndarray:
        matrix = -self.strength * self.S.toarray()
        matrix[np.diag_indices_from(matrix)] += self.diagonal
        return np.maximum(cho_solve(cho_factor(matrix, overwrite_a=True), rhs), 0.0)

    def error(
        self, residual: np.ndarray, values: np.ndarray, lowest: float, reference: np.ndarray | None, separate: bool
    ) -> float:
        """The largest residual over 1 - strength, relative to the row's values (or `reference`, or each on its own).

        All of these as potentials, values over roots; any below `lowest` times the largest counts as that. Since
        S roots = roots, and the inverse is not negative, it bounds the error of a value but for a factor: the steps
        that the value came from its sources, in units of 1 / (1 - strength).
        """
        roots = self.roots[:, None]
        base = reference
        if base is None:
            base = (values if separate else values.sum(axis=1, keepdims=True)) / roots
        largest = base.max(axis=0)
        if not (largest > 0).all():
            return float("inf")
        return float((np.abs(residual) / (roots * np.maximum(base, lowest * largest))).max()) / (1.0 - self.strength)


def _all_columns(
    system: _System, columns: np.ndarray, start: np.ndarray | None, rows: np.ndarray, tol: float, max_iter: int
) -> DiffusionResult:
    """Solve for all columns at once; where they are many, for their sum first and then for some at a time."""
    if columns.shape[1] <= MANY_COLUMNS:
        return _by_levels(system, columns, start, rows, tol, max_iter)[0]
    total, levels = _by_levels(system, columns.sum(axis=1, keepdims=True), None, rows, tol, max_iter)
    values, iterations, worst = np.empty(columns.shape), total.iterations, total.residual
    for first in range(0, columns.shape[1], MANY_COLUMNS):
        some = slice(first, first + MANY_COLUMNS)
        begin = None if start is None else start[:, some]
        result, _ = _by_levels(system, columns[:, some], begin, rows, tol, max_iter, levels)
        values[:, some] = result.values
        iterations, worst = iterations + result.iterations, max(worst, result.residual)
    return DiffusionResult(values, iterations, worst, worst <= tol)


@dataclass(frozen=True)
class _Level:
    """Potentials of the rows that were solved for together, and the unit they are in."""

    potential: np.ndarray
    unit: float


def _by_levels(
    system: _System,
    columns: np.ndarray,
    start: np.ndarray | None,
    rows: np.ndarray,
    tol: float,
    max_iter: int,
    known: list[_Level] | None = None,
) -> tuple[DiffusionResult, list[_Level]]:
    """Solve for those of the `rows` with the largest potentials; with these as sources too, for those of the rest; ...

    The levels of all columns together may be `known`; then errors are relative to their potentials.
    """
    values, iterations, worst = np.zeros(columns.shape), 0, 0.0
    lowest, levels = _lowest(LEVEL, tol, system.strength), list[_Level]()
    while len(rows) and (known is None or len(levels) < len(known)):
        part, rhs = system.part(rows), columns[rows]
        if levels:
            rhs = rhs + system.strength * (system.S[rows] @ values)
        level = None if known is None else known[len(levels)]
        unit = level.unit if level else float((rhs.sum(axis=1) / part.roots).max())
        if unit == 0:  # what arrives is too little to be a number
            break
        found, count, error = part.solve(
            rhs / unit,
            None if start is None else start[rows] / max(unit, SMALLEST),
            tol=tol,
            lowest=lowest,
            max_iter=max_iter,
            reference=level.potential[:, None] if level else None,
        )
        iterations, worst = iterations + count, max(worst, error)
        potential = level.potential if level else found.sum(axis=1) / part.roots
        done = (potential >= lowest * potential.max()) | (error > tol)
        values[rows[done]] = found[done] * max(unit, SMALLEST)
        levels.append(_Level(potential, unit))
        rows = rows[~done]
    return DiffusionResult(values, iterations, worst, worst <= tol), levels


def check_affinity(affinity: Any, name: str = "affinity") -> sp.csr_array:
    """Affinities as a symmetric sparse matrix without a diagonal; refused unless square, finite and not negative.

    Of w_ij and w_ji the larger is taken, with a warning where they differ.

    Parameters
    ----------
    affinity : sparse or dense matrix
    name : str, what messages call it

    Returns
    -------
    csr_array, a copy
    """
    matrix = sp.csr_array(affinity, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, a line and a column for every row; got {matrix.shape}.")
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} holds an infinite or missing affinity; all must be finite.")
    if (matrix.data < 0).any():
        raise ValueError(f"{name} holds the negative affinity {matrix.data.min()}; all must be 0 or more.")
    matrix.data[matrix.indices == np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))] = 0.0
    matrix.eliminate_zeros()
    turned = sp.csr_array(matrix.T)
    both = _narrow(matrix.maximum(turned))
    largest = matrix.data.max(initial=0.0) or 1.0
    if (both.data / largest).sum() > (1 + 1e-9) * (matrix.data / largest).sum():
        warnings.warn(f"{name} is not symmetric: the larger of w_ij and w_ji is used.", UserWarning, stacklevel=3)
    return both


def _rows_of(values: np.ndarray, columns: np.ndarray, n_columns: int) -> sp.csr_array:
    """A sparse matrix from the values of each line and their columns."""
    n_lines, k = columns.shape
    starts = np.arange(n_lines + 1) * k
    return sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_lines, n_columns))


def _narrow(matrix: Any) -> sp.csr_array:
    """The matrix with small index types and sorted lines, for faster products."""
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    if max(matrix.nnz, *matrix.shape) < 2**31:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def _exponents(distances: np.ndarray, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """d^2 / (s_i s_j), without squaring anything that could overflow."""
    with np.errstate(over="ignore"):
        return (distances / own) * (distances / others)


def _column_dots(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", here, there)


def _over(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient, 0 where there is nothing to divide by: that column is solved."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _lowest(wanted: float, tol: float, strength: float) -> float:
    """The potential, relative to the largest, down to which a tolerance can be kept in floating point numbers."""
    return min(0.5, max(wanted, 2e-14 / (tol * (1.0 - strength))))


@contextmanager
def _threads(n_rows: int, n_jobs: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for products, or None where one is enough."""
    n = Jobs(n_jobs).n
    if n == 1 or n_rows <= ROWS_AT_ONCE:
        yield None
        return
    with ThreadPoolExecutor(n) as pool:
        yield pool
