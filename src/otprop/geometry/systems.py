"""Solving for the diffusion's values: conjugate gradients, with errors held to a tolerance in every row."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from otprop.geometry.affinity import narrow
from otprop.geometry.parallel import Jobs

LEVEL = 1e-5  # rows with less than this share of the largest value are left to the next system
SMALLEST = 1e-150  # potentials below are raised to about this, all of a row's by the same factor
CHECK_EVERY = 4  # iterations
ROWS_AT_ONCE = 10_000  # of a product, for a thread
MANY_COLUMNS = 64  # more are solved for this many at a time


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


@dataclass(frozen=True)
class System:
    """The matrix I - strength S, and errors of its solutions. Potentials are values over `roots`."""

    S: sp.csr_array
    strength: float
    roots: np.ndarray
    pool: ThreadPoolExecutor | None

    def part(self, rows: np.ndarray) -> System:
        """The lines and columns `rows`."""
        if len(rows) == len(self.roots):
            return self
        return replace(self, S=narrow(self.S[rows][:, rows]), roots=self.roots[rows])

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
        out += values
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
            direction = residual.copy()
            product = _column_dots(residual, direction)
            for count in range(1, max_iter - iterations + 1):
                image = self.times(direction)
                length = _over(product, _column_dots(direction, image))
                values += length * direction
                residual -= length * image
                if count % CHECK_EVERY == 0 and self.error(residual, values, lowest, reference, separate) <= tol / 2:
                    break
                old, product = product, _column_dots(residual, residual)
                direction *= _over(product, old)
                direction += residual
            residual = rhs - self.times(values)  # what was updated may have drifted
            iterations += count + 1
            before, error = error, self.error(residual, values, lowest, reference, separate)
            if error > before / 2:
                break
        return np.maximum(values, 0.0, out=values), iterations, error

    def solve_directly(self, rhs: np.ndarray) -> np.ndarray:
        matrix = -self.strength * self.S.toarray()
        matrix[np.diag_indices_from(matrix)] += 1.0
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


def all_columns(
    system: System, columns: np.ndarray, start: np.ndarray | None, rows: np.ndarray, tol: float, max_iter: int
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
    system: System,
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
    lowest, levels = lowest_kept(LEVEL, tol, system.strength), list[_Level]()
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


def _column_dots(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", here, there)


def _over(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient, 0 where there is nothing to divide by: that column is solved."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def lowest_kept(wanted: float, tol: float, strength: float) -> float:
    """The potential, relative to the largest, down to which a tolerance can be kept in floating point numbers."""
    return min(0.5, max(wanted, 2e-14 / (tol * (1.0 - strength))))


@contextmanager
def threads(n_rows: int, n_jobs: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for products, or None where one is enough."""
    n = Jobs(n_jobs).n
    if n == 1 or n_rows <= ROWS_AT_ONCE:
        yield None
        return
    with ThreadPoolExecutor(n) as pool:
        yield pool
