"""The Gibbs kernel with absorbed potentials, built block by block.

A row of the kernel belongs to an entry of the marginal b, a column to an entry of the marginal a, as in `Cost`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count

from otprop.geometry.cost import MEMORY_LIMIT, Cost
from otprop.geometry.parallel import row_blocks, rows_per_block

DENSITY_LIMIT = 0.1  # share of entries above which a dense product is faster than a sparse one
SINGLE_PRECISION_SIZE = 2**18  # entries; smaller kernels gain nothing from float32
SINGLE_PRECISION_TOL = 5e-7  # float32 products have an error of about 1e-7 of the mass
PARALLEL_SIZE = 2**20  # entries from which blocks are filled by several threads
PRODUCT_SIZE = 2**18  # entries multiplied at a time
SPARE_COLUMNS = 1.02  # columns that a dense kernel has room for, relative to those it starts with
SUM_LENGTH = 512  # rows added in float32 before the sum continues in float64
MAX_LOG_SCALING = 12.0
# Logarithms below these become exactly 0: denormal numbers would make every product several times slower.
UNDERFLOW: dict[type, float] = {np.float32: -69.0, np.float64: -690.0}

Weigh = Callable[[np.ndarray, slice], np.ndarray]  # weights of a block of rows, from its products and its place


class Kernel:
    """``K[j, i] = exp((f_i + g_j - C_ji) / epsilon)``, with g such that every row sums to one.

    A row is the conditional plan of one entry of b (Eq. 10) at the absorbed potentials, so all entries lie in [0, 1]
    for any cost and epsilon. Columns may be rescaled by up to ``exp(max_log_scaling)`` before the kernel has to be
    rebuilt.

    This class does not store the kernel: each product recomputes it from the cost. `build_kernel` uses it only where
    the cost itself does not fit in memory.

    Attributes
    ----------
    f, g : ndarray, absorbed potentials of the columns and the rows
    max_log_scaling : float
    noise : float, L1 rounding error of a marginal computed with the kernel
    products : int, number of products with the kernel or its transpose
    """

    max_log_scaling = MAX_LOG_SCALING
    noise = 1e-14
    dtype: type = np.float64

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float) -> None:
        self.products = 0
        self.f, self.g = f, np.empty(cost.shape[0])
        self._cost, self._epsilon = cost, epsilon
        self._fill()

    def dot(self, scaling: np.ndarray) -> np.ndarray:
        """``K @ scaling``."""
        self.products += 1
        scaling = scaling.astype(self.dtype, copy=False)
        return np.concatenate([entries @ scaling for _, entries in self._blocks()], dtype=np.float64)

    def dot_and_back(self, scaling: np.ndarray, weigh: Weigh) -> tuple[np.ndarray, np.ndarray]:
        """``p = K @ scaling`` and ``K.T @ weigh(p, all rows)``, block by block while a block is in the cache."""
        self.products += 2
        scaling = scaling.astype(self.dtype, copy=False)
        forth, back = np.empty(len(self.g)), np.zeros(len(self.f))
        for rows, entries in self._blocks():
            forth[rows] = entries @ scaling
            back += entries.T @ weigh(forth[rows], rows).astype(self.dtype, copy=False)
        return forth, back

    def _fill(self) -> None:
        for rows, logs, top in log_kernel(self._cost, self.f, self._epsilon):
            self.g[rows] = -top - self._epsilon * np.log(np.exp(logs, out=logs).sum(axis=1))

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        for rows, logs, top in log_kernel(self._cost, self.f, self._epsilon):
            logs += ((self.g[rows] + top) / self._epsilon)[:, None]
            yield rows, np.exp(logs, out=logs)


class DenseKernel(Kernel):
    """The kernel as an array, in float32 where that is good enough."""

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float, dtype: type) -> None:
        self.dtype = dtype
        self._storage: np.ndarray = np.empty((cost.shape[0], int(SPARE_COLUMNS * cost.shape[1]) + 1), dtype=dtype)
        self.matrix = self._storage[:, : cost.shape[1]]
        self.max_log_scaling = 30.0 if dtype is np.float32 else 100.0  # all entries are kept that do not underflow
        self.noise = 1e-7 if dtype is np.float32 else 1e-14
        super().__init__(cost, f, epsilon)

    @property
    def n_spare_columns(self) -> int:
        return self._storage.shape[1] - self.matrix.shape[1]

    def advance(self, cost: Cost, stay: np.ndarray, f_new: np.ndarray) -> None:
        """Keep the rows `stay` and append columns at potentials `f_new` in place, for a `cost` that did the same."""
        kept, n_old = np.flatnonzero(stay), len(self.f)
        for rows in row_blocks(len(kept), rows_per_block(n_old, PRODUCT_SIZE)):
            if kept[rows.stop - 1] >= rows.stop:  # a row before these was removed
                self._storage[rows] = self._storage[kept[rows]]
        self._cost, self.f, self.g = cost, np.concatenate([self.f, f_new]), self.g[kept]
        self.matrix = self._storage[: len(kept), : len(self.f)]
        for rows, block in cost.blocks():
            with np.errstate(over="ignore"):  # overflow to minus infinity is an entry of 0
                logs = (f_new + self.g[rows, None] - block[:, n_old:]) / self._epsilon
            self.matrix[rows, n_old:] = np.exp(np.where(logs < UNDERFLOW[self.dtype], -np.inf, logs))

    def _fill(self) -> None:
        if self.matrix.size < PARALLEL_SIZE or n_threads() == 1:
            for rows, block in self._cost.blocks():
                self._fill_block(rows, block)
        else:  # blocks do not overlap: the result does not depend on the threads
            with ThreadPoolExecutor(n_threads()) as pool:
                list(pool.map(lambda part: self._fill_block(*part), self._cost.blocks()))

    def _fill_block(self, rows: slice, block: np.ndarray) -> None:
        gain = self.f - block
        top = gain.max(axis=1)
        gain -= top[:, None]
        out = np.empty(gain.shape, dtype=self.dtype)  # contiguous, which the rows of the kernel are not
        with np.errstate(over="ignore"):  # overflow to minus infinity is an entry of 0
            np.divide(gain, self._epsilon, out=out, casting="same_kind")
        np.putmask(out, out < UNDERFLOW[self.dtype], -np.inf)
        np.exp(out, out=out)
        total = out.sum(axis=1, dtype=np.float64)
        np.divide(out, total.astype(self.dtype)[:, None], out=self.matrix[rows])
        self.g[rows] = -top - self._epsilon * np.log(total)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in row_blocks(len(self.g), rows_per_block(len(self.f), PRODUCT_SIZE, most=SUM_LENGTH)):
            yield rows, self.matrix[rows]


class SparseKernel(Kernel):
    """The kernel without its negligible entries, which are nearly all of them at small epsilon."""

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float, cutoff: float, max_entries: float) -> None:
        self._cutoff, self._max_entries = cutoff, max_entries
        self.matrix: Any = None  # a csr_array; None if it would have more than `max_entries`
        super().__init__(cost, f, epsilon)

    def _fill(self) -> None:
        n_rows, n_columns = self._cost.shape
        starts = np.zeros(n_rows + 1, dtype=np.int64)
        capacity = int(self._max_entries)  # pages that are never written take no memory
        data, columns = np.empty(capacity), np.empty(capacity, dtype=np.int32)
        for rows, logs, top in log_kernel(self._cost, self.f, self._epsilon):
            kept = np.flatnonzero(logs.ravel() > -self._cutoff)
            first = int(starts[rows.start])
            last = first + len(kept)
            if last * n_rows > self._max_entries * rows.stop:
                return
            row, columns[first:last] = np.divmod(kept, n_columns)
            count = np.bincount(row, minlength=len(logs))
            starts[rows.start + 1 : rows.stop + 1] = first + np.cumsum(count)
            entries = np.exp(logs.ravel()[kept], out=data[first:last])
            total = np.add.reduceat(entries, starts[rows] - first)
            entries /= np.repeat(total, count)
            self.g[rows] = -top - self._epsilon * np.log(total)
        used = int(starts[-1])
        self.matrix = sp.csr_array((data[:used], columns[:used], starts), shape=self._cost.shape)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        yield slice(0, len(self.g)), self.matrix


def n_threads() -> int:
    """Number of threads: OMP_NUM_THREADS if it is set, otherwise all cores available to this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else int(cpu_count())


def build_kernel(cost: Cost, f: np.ndarray, epsilon: float, tol: float) -> Kernel:
    """Build the kernel at potentials `f`: sparse, dense or not stored, by its size and number of relevant entries."""
    size = cost.shape[0] * cost.shape[1]
    if cost.shape[1] > 16:
        cutoff = -np.log(tol) + 10.0 + MAX_LOG_SCALING
        max_entries = DENSITY_LIMIT * size if cost.stored else min(DENSITY_LIMIT * size, MEMORY_LIMIT / 32)
        sparse = SparseKernel(cost, f, epsilon, cutoff, max_entries)
        if sparse.matrix is not None:
            return sparse
    if not cost.stored:
        return Kernel(cost, f, epsilon)
    single = tol >= SINGLE_PRECISION_TOL and size > SINGLE_PRECISION_SIZE
    return DenseKernel(cost, f, epsilon, np.float32 if single else np.float64)


def log_kernel(cost: Cost, f: np.ndarray, epsilon: float) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of ``(f_i - C_ji - top_j) / epsilon`` and ``top_j``, the row maxima of ``f_i - C_ji``.

    The next block overwrites the array.
    """
    buffer = np.empty(0)
    for rows, block in cost.blocks():
        if buffer.size < block.size:
            buffer = np.empty(block.size)
        logs = np.subtract(f, block, out=buffer[: block.size].reshape(block.shape))
        top = logs.max(axis=1)
        logs -= top[:, None]
        with np.errstate(over="ignore"):  # overflow to minus infinity is an entry of 0
            logs /= epsilon
        yield rows, logs, top
