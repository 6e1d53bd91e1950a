"""Solver of the diffusion system: conjugate gradients with a bound on the relative error of every row.

Rows far from all initial values have tiny values. Conjugate gradients first find the rows whose values are not far
below the largest. These values are then the right-hand side of a smaller, rescaled system for the remaining rows, and
so on (`_solve_by_levels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotri

from otprop.geometry.parallel import Jobs, row_blocks, single_threaded_blas
from otprop.geometry.scaling import sorted_csr

LEVEL = 1e-5  # rows with less than this share of the largest potential are left to the next system
MIN_POTENTIAL = 1e-150  # smaller potentials are raised to about this, all of a row by the same factor
CHECK_INTERVAL = 3  # iterations between two computations of the error
ROWS_PER_BLOCK = 10_000  # of a product, per thread
COLUMNS_PER_BLOCK = 64  # right-hand sides solved for at once
SINGLE_TOL = 1e-3  # from this tolerance on, single precision is enough, and takes half the time
SINGLE_RANGE = 1e-15, 1e15  # of roots and values that stay far from the limits of single precision

Columns = Callable[[slice], np.ndarray]  # the columns of a slice, with all rows


@dataclass(frozen=True)
class DiffusionResult:
    """The values of a diffusion.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns), nonnegative
    iterations : int, products with the graph or a part of it
    residual : float, estimate of the largest error of a value relative to the sum of its row
    converged : bool, the residual is within the tolerance
    """

    values: np.ndarray
    iterations: int
    residual: float
    converged: bool


@dataclass(frozen=True)
class DiffusionSystem:
    """The linear system with the matrix I - strength S. Potentials are values over `roots` of the degrees."""

    S: sp.csr_array
    strength: float
    roots: np.ndarray
    pool: ThreadPoolExecutor | None

    def part(self, rows: np.ndarray) -> DiffusionSystem:
        """The system of the rows and columns `rows`."""
        if len(rows) == len(self.roots):
            return self
        return replace(self, S=sorted_csr(self.S[rows][:, rows]), roots=self.roots[rows])

    @cached_property
    def _blocks(self) -> list[tuple[slice, sp.csr_array]]:
        blocks, (data, indices, starts) = [], (self.S.data, self.S.indices, self.S.indptr)
        for rows in row_blocks(self.S.shape[0], ROWS_PER_BLOCK):
            entries = slice(starts[rows.start], starts[rows.stop])
            parts = (data[entries], indices[entries], starts[rows.start : rows.stop + 1] - starts[rows.start])
            blocks.append((rows, sp.csr_array(parts, shape=(rows.stop - rows.start, self.S.shape[1]))))
        return blocks

    def affinity_dot(self, values: np.ndarray) -> np.ndarray:
        """``S @ values``."""
        if self.pool is None or len(self._blocks) == 1:
            return self.S @ values
        out = np.empty_like(values)

        def fill(block: tuple[slice, sp.csr_array]) -> None:
            out[block[0]] = block[1] @ values

        list(self.pool.map(fill, self._blocks))
        return out

    def dot(self, values: np.ndarray) -> np.ndarray:
        """``(I - strength S) @ values``."""
        out = self.affinity_dot(values)
        out *= -self.strength
        out += values
        return out

    def solve(
        self,
        rhs: np.ndarray,
        values: np.ndarray | None,
        *,
        tol: float,
        floor: float,
        max_iter: int,
        reference: np.ndarray | None = None,
        n_groups: int = 1,
    ) -> tuple[np.ndarray, int, float]:
        """Solve for each column, starting from `values`; returns values, iterations and their `error`.

        Single precision is tried first if it may be enough for the tolerance.
        """
        iterations = 0
        largest = max(rhs.max(), 0.0 if values is None else values.max())
        if self._single_may_reach(tol) and largest <= SINGLE_RANGE[1]:
            single = rhs.astype(np.float32)
            values, iterations, error = self._single.iterate(single, values, tol, floor, max_iter, reference, n_groups)
            if error <= tol:
                return values, iterations, error
        values, more, error = self.iterate(rhs, values, tol, floor, max_iter, reference, n_groups)
        return values, iterations + more, error

    def _single_may_reach(self, tol: float) -> bool:
        """Whether single precision holds the roots and its rounding error is within the tolerance."""
        precise = float(np.finfo(np.float32).eps) <= tol * (1.0 - self.strength)
        return tol >= SINGLE_TOL and precise and held_in_single(self.roots)

    @cached_property
    def _single(self) -> DiffusionSystem:
        """The system in single precision."""
        return replace(self, S=self.S.astype(np.float32), roots=self.roots.astype(np.float32))

    def iterate(
        self,
        rhs: np.ndarray,
        values: np.ndarray | None,
        tol: float,
        floor: float,
        max_iter: int,
        reference: np.ndarray | None,
        n_groups: int,
    ) -> tuple[np.ndarray, int, float]:
        """Conjugate gradients for each column in the precision of `rhs`."""
        values = None if values is None else values.astype(rhs.dtype, copy=False)
        residual, iterations = rhs if values is None else rhs - self.dot(values), int(values is not None)
        if values is None or not np.abs(residual).max() < rhs.max():  # no start, or one worse than 0, or not finite
            values, residual = np.zeros_like(rhs), rhs.copy()
        error = self.error(residual, values, floor, reference, n_groups)
        while error > tol and iterations < max_iter:
            direction = residual.copy()
            product = _column_dots(residual, direction)
            for count in range(1, max_iter - iterations + 1):
                image = self.dot(direction)
                length = _safe_divide(product, _column_dots(direction, image))
                values += length * direction
                image *= length
                residual -= image
                if count % CHECK_INTERVAL == 0 and self.error(residual, values, floor, reference, n_groups) <= tol / 2:
                    break
                old, product = product, _column_dots(residual, residual)
                direction *= _safe_divide(product, old)
                direction += residual
            residual = rhs - self.dot(values)  # the updated residual may have drifted
            iterations += count + 1
            before, error = error, self.error(residual, values, floor, reference, n_groups)
            if error > before / 2:
                break
        return np.maximum(values, 0.0, out=values), iterations, error

    def inverse_diagonal(self, rows: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, int, float]:
        """Entries of the diagonal of the inverse by conjugate gradients; returns them, iterations and their error.

        With steps of length l_k and residuals r_k the entry is ``sum_k l_k r_k' r_k``. Its error is the
        squared error of the solution in the norm of the matrix, at most ``r' r / (1 - strength)``. Half the
        iterations of a solution are therefore enough.
        """
        residual = np.zeros((len(self.roots), len(rows)))
        residual[rows, np.arange(len(rows))] = 1.0
        direction, product, entries = residual.copy(), np.ones(len(rows)), np.zeros(len(rows))
        iterations, error = 0, float("inf")
        while error > tol and iterations < max_iter:
            iterations += 1
            image = self.dot(direction)
            length = _safe_divide(product, _column_dots(direction, image))
            entries += length * product
            image *= length
            residual -= image
            old, product = product, _column_dots(residual, residual)
            error = float(product.max()) / (1.0 - self.strength)
            direction *= _safe_divide(product, old)
            direction += residual
        return entries, iterations, error

    def inverse(self) -> np.ndarray:
        """The inverse of the matrix, as a dense matrix."""
        matrix = -self.strength * self.S.toarray()
        matrix[np.diag_indices_from(matrix)] += 1.0
        with single_threaded_blas():
            factor, _ = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            lower = np.tril(dpotri(factor, lower=True, overwrite_c=True)[0])
        lower[np.diag_indices_from(lower)] /= 2
        return np.maximum(lower + lower.T, 0.0)

    def error(
        self, residual: np.ndarray, values: np.ndarray, floor: float, reference: np.ndarray | None, n_groups: int
    ) -> float:
        """The largest residual over 1 - strength, relative to `reference`, or to the sum of its row in its group.

        Groups are adjacent columns, equally many in each.

        All of these are potentials, that is values over roots. Smaller ones are raised to `floor` times the largest.
        Since S roots = roots and the inverse is nonnegative, this bounds the relative error of a value up to a factor:
        its distance from the initial values, in units of 1 / (1 - strength).
        """
        roots = self.roots[:, None]
        base = reference
        if base is None:
            base = _group_sums(values, n_groups) / roots
        largest = base.max(axis=0)
        grouped = np.abs(residual).reshape(len(residual), base.shape[1], -1)
        worst = reduce(np.maximum, np.moveaxis(grouped, 2, 0))  # faster than a maximum over a short axis
        if not (largest > 0).all():
            empty = (largest == 0) & ~worst.any(axis=0)  # groups without mass in these rows
            if not (empty | (largest > 0)).all():
                return float("inf")
        least = np.finfo(worst.dtype).tiny  # tiny values times tiny roots may underflow
        return float((worst / np.maximum(roots * np.maximum(base, floor * largest), least)).max()) / (
            1.0 - self.strength
        )


def solve_columns(
    system: DiffusionSystem,
    columns: Columns,
    start: Columns | None,
    n_columns: int,
    components: np.ndarray,
    tol: float,
    max_iter: int,
    n_groups: int = 1,
) -> Iterator[tuple[slice, DiffusionResult]]:
    """Solve for all columns: at once if they are few, otherwise for their sum first and then in blocks.

    `columns` and `start` give the columns of a slice, so that memory is bounded by the size of a block. A block is
    solved on the `components` of the graph that its columns are in.
    """
    blocks = row_blocks(n_columns, COLUMNS_PER_BLOCK)
    known: list[_Level] | None = None
    if len(blocks) > 1:
        total = sum(columns(block).sum(axis=1, keepdims=True) for block in blocks)
        rows = np.flatnonzero(_connected_to(components, total))
        summed, known = _solve_by_levels(system, total, None, rows, tol, max_iter)
        yield slice(0), replace(summed, values=summed.values[:, :0])
    for block in blocks:
        initial = columns(block)
        connected = _connected_to(components, initial)
        levels = None if known is None else [level.part(connected) for level in known]
        first = None if start is None else start(block)
        rows = np.flatnonzero(connected)
        yield block, _solve_by_levels(system, initial, first, rows, tol, max_iter, levels, n_groups)[0]


def _connected_to(components: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Boolean mask of the rows in a component with a positive initial value."""
    return np.isin(components, components[columns.max(axis=1, initial=0.0) > 0])


@dataclass(frozen=True)
class _Level:
    """The rows of one system, their potentials and unit, and which of them are not left to the next system."""

    rows: np.ndarray
    potential: np.ndarray
    unit: float
    done: np.ndarray

    def part(self, wanted: np.ndarray) -> _Level:
        """The level of the rows marked in `wanted`."""
        here = wanted[self.rows]
        return replace(self, rows=self.rows[here], potential=self.potential[here], done=self.done[here])


def _solve_by_levels(
    system: DiffusionSystem,
    columns: np.ndarray,
    start: np.ndarray | None,
    rows: np.ndarray,
    tol: float,
    max_iter: int,
    known: list[_Level] | None = None,
    n_groups: int = 1,
) -> tuple[DiffusionResult, list[_Level]]:
    """Solve for the `rows` level by level, from the largest potentials to the smallest.

    `known` are the levels of the sum of all columns, if that was solved before; errors are then relative to it.
    """
    values, iterations, worst = np.zeros(columns.shape), 0, 0.0
    floor, levels = relative_floor(LEVEL, tol, system.strength), list[_Level]()
    while len(rows) and (known is None or len(levels) < len(known)):
        part, rhs = system.part(rows), columns[rows]
        if levels:
            rhs = rhs + system.strength * (system.S[rows] @ values)
        level = None if known is None else known[len(levels)]
        unit = level.unit if level else float((rhs.sum(axis=1) / part.roots).max())
        if unit == 0:  # the values underflow
            break
        found, count, error = part.solve(
            rhs / unit,
            None if start is None else np.divide(start[rows], max(unit, MIN_POTENTIAL), dtype=np.float64),
            tol=tol,
            floor=floor,
            max_iter=max_iter,
            reference=level.potential[:, None] if level else None,
            n_groups=n_groups,
        )
        iterations, worst = iterations + count, max(worst, error)
        if level is None:
            potential = found.sum(axis=1) / part.roots
            level = _Level(rows, potential, unit, (potential >= floor * potential.max()) | (error > tol))
        values[rows[level.done]] = found[level.done]  # single precision may not hold the product
        values[rows[level.done]] *= max(unit, MIN_POTENTIAL)
        levels.append(level)
        rows = rows[~level.done]
    return DiffusionResult(values, iterations, worst, worst <= tol), levels


def held_in_single(roots: np.ndarray) -> bool:
    """Whether single precision holds the roots, and so the values, which scale with them."""
    least, most = SINGLE_RANGE
    return bool(roots.min() >= least and roots.max() <= most)


def _group_sums(values: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums over the columns of each group."""
    size = values.shape[1] // n_groups
    return np.asarray((values.reshape(-1, size) @ np.ones(size, values.dtype)).reshape(len(values), n_groups))


def _column_dots(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", here, there)


def _safe_divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient, or 0 where the denominator is not positive because the column is solved."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def relative_floor(wanted: float, tol: float, strength: float) -> float:
    """The potential, relative to the largest, down to which `tol` can be reached in floating point arithmetic."""
    return min(0.5, max(wanted, 2e-14 / (tol * (1.0 - strength))))


@contextmanager
def worker_pool(n_rows: int, n_jobs: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for products, or None if one is enough."""
    n = Jobs(n_jobs).n
    if n == 1 or n_rows <= ROWS_PER_BLOCK:
        yield None
        return
    with ThreadPoolExecutor(n) as pool:
        yield pool
