"""The Gibbs kernel with potentials absorbed into it, built block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count

from otprop.geometry.cost import MEMORY_LIMIT, Cost

DENSITY_LIMIT = 0.2  # with more entries than this share a dense product is the faster one
SINGLE_PRECISION_SIZE = 2**18  # entries; smaller kernels gain nothing from float32
SINGLE_PRECISION_TOL = 5e-7  # float32 products are good to about 1e-7 of the mass
PARALLEL_SIZE = 2**20  # entries from which blocks are filled by several threads
SUM_LENGTH = 512  # float32 numbers added up before the sum goes on in float64
REACH = 12.0


class Kernel:
    """``K[j, i] = exp((f_i + g_j - C_ji) / epsilon)``, with g such that every line sums to one.

    A line is the conditional plan of its target (Eq. 10) at the absorbed potentials, so all entries lie in
    [0, 1] whatever the cost and the epsilon: nothing over- or underflows that matters. Sources may then be
    rescaled by up to ``exp(reach)`` before the kernel has to be built again.

    This class never stores the kernel: each product goes over the cost again. `build_kernel` chooses it only
    where the cost itself is too large for memory.

    Attributes
    ----------
    g : ndarray
    reach : float
    noise : float, how far a marginal computed with the kernel may be off in L1, by rounding
    products : int, how many products with the kernel or its transpose were taken
    """

    reach = REACH
    noise = 1e-14

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float) -> None:
        self.products = 0
        self.g = np.empty(cost.shape[0])
        self._cost, self._f, self._epsilon = cost, f, epsilon
        self._fill()

    def sum_over_sources(self, scaling: np.ndarray) -> np.ndarray:
        """``K @ scaling``, one number a target."""
        self.products += 1
        return np.concatenate([entries @ scaling for _, entries in self._blocks()])

    def sum_over_targets(self, scaling: np.ndarray) -> np.ndarray:
        """``K.T @ scaling``, one number a source."""
        self.products += 1
        return np.sum([scaling[lines] @ entries for lines, entries in self._blocks()], axis=0)

    def _fill(self) -> None:
        for lines, logs, top in log_kernel(self._cost, self._f, self._epsilon):
            self.g[lines] = -top - self._epsilon * np.log(np.exp(logs, out=logs).sum(axis=1))

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for lines, logs, top in log_kernel(self._cost, self._f, self._epsilon):
            logs += ((self.g[lines] + top) / self._epsilon)[:, None]
            yield lines, np.exp(logs, out=logs)


class DenseKernel(Kernel):
    """The kernel as an array, in float32 where that is good enough."""

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float, dtype: type) -> None:
        self.matrix: np.ndarray = np.empty(cost.shape, dtype=dtype)
        self.reach = 30.0 if dtype is np.float32 else 100.0  # nothing is left out, and little underflows
        self.noise = 1e-7 if dtype is np.float32 else 1e-14
        super().__init__(cost, f, epsilon)

    def _fill(self) -> None:
        if self.matrix.size < PARALLEL_SIZE or n_threads() == 1:
            for lines, block in self._cost.blocks():
                self._fill_block(lines, block)
        else:  # each block has its own place: the result does not depend on the threads
            with ThreadPoolExecutor(n_threads()) as pool:
                list(pool.map(lambda part: self._fill_block(*part), self._cost.blocks()))

    def _fill_block(self, lines: slice, block: np.ndarray) -> None:
        gain = self._f - block
        top = gain.max(axis=1)
        gain -= top[:, None]
        out = self.matrix[lines]
        with np.errstate(over="ignore"):  # to minus infinity: no mass at all
            np.divide(gain, self._epsilon, out=out, casting="same_kind")
        np.exp(out, out=out)
        total = out.sum(axis=1, dtype=np.float64)
        out /= total.astype(out.dtype)[:, None]
        self.g[lines] = -top - self._epsilon * np.log(total)

    def sum_over_sources(self, scaling: np.ndarray) -> np.ndarray:
        self.products += 1
        return np.asarray(self.matrix @ scaling.astype(self.matrix.dtype, copy=False), dtype=np.float64)

    def sum_over_targets(self, scaling: np.ndarray) -> np.ndarray:
        self.products += 1
        if self.matrix.dtype == np.float64:
            return np.asarray(scaling @ self.matrix)
        total = np.zeros(self.matrix.shape[1])
        scaling = scaling.astype(np.float32)
        for start in range(0, len(scaling), SUM_LENGTH):
            piece = slice(start, start + SUM_LENGTH)
            total += scaling[piece] @ self.matrix[piece]
        return total


class SparseKernel(Kernel):
    """The kernel without the entries too small to matter, which at small epsilon are nearly all."""

    def __init__(self, cost: Cost, f: np.ndarray, epsilon: float, cutoff: float, max_entries: float) -> None:
        self._cutoff, self._max_entries = cutoff, max_entries
        self.matrix: Any = None  # a csr_array; None where more entries matter than allowed
        super().__init__(cost, f, epsilon)

    def _fill(self) -> None:
        n_targets, n_sources = self._cost.shape
        starts = np.zeros(n_targets + 1, dtype=np.int64)
        capacity = int(self._max_entries)  # memory not written to costs nothing
        data, columns = np.empty(capacity), np.empty(capacity, dtype=np.int32)
        for lines, logs, top in log_kernel(self._cost, self._f, self._epsilon):
            kept = np.flatnonzero(logs.ravel() > -self._cutoff)
            first = int(starts[lines.start])
            last = first + len(kept)
            if last * n_targets > self._max_entries * lines.stop:
                return
            line, columns[first:last] = np.divmod(kept, n_sources)
            count = np.bincount(line, minlength=len(logs))
            starts[lines.start + 1 : lines.stop + 1] = first + np.cumsum(count)
            entries = np.exp(logs.ravel()[kept], out=data[first:last])
            total = np.add.reduceat(entries, starts[lines] - first)
            entries /= np.repeat(total, count)
            self.g[lines] = -top - self._epsilon * np.log(total)
        used = int(starts[-1])
        self.matrix = sp.csr_array((data[:used], columns[:used], starts), shape=self._cost.shape)

    def sum_over_sources(self, scaling: np.ndarray) -> np.ndarray:
        self.products += 1
        return np.asarray(self.matrix @ scaling)

    def sum_over_targets(self, scaling: np.ndarray) -> np.ndarray:
        self.products += 1
        return np.asarray(self.matrix.T @ scaling)


def n_threads() -> int:
    """How many threads may work: as for NumPy's own, OMP_NUM_THREADS or all cores this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else int(cpu_count())


def build_kernel(cost: Cost, f: np.ndarray, epsilon: float, tol: float) -> Kernel:
    """The kernel at source potentials `f`, in the form that suits its size and how many entries matter."""
    size = cost.shape[0] * cost.shape[1]
    if cost.shape[1] > 16:
        cutoff = -np.log(tol) + 10.0 + REACH
        max_entries = DENSITY_LIMIT * size if cost.stored else min(DENSITY_LIMIT * size, MEMORY_LIMIT / 32)
        sparse = SparseKernel(cost, f, epsilon, cutoff, max_entries)
        if sparse.matrix is not None:
            return sparse
    if not cost.stored:
        return Kernel(cost, f, epsilon)
    single = tol >= SINGLE_PRECISION_TOL and size > SINGLE_PRECISION_SIZE
    return DenseKernel(cost, f, epsilon, np.float32 if single else np.float64)


def log_kernel(cost: Cost, f: np.ndarray, epsilon: float) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Blocks of ``(f_i - C_ji - top_j) / epsilon`` and ``top_j``, the largest ``f_i - C_ji`` of each line.

    The array is overwritten by the next block.
    """
    buffer = np.empty(0)
    for lines, block in cost.blocks():
        if buffer.size < block.size:
            buffer = np.empty(block.size)
        logs = np.subtract(f, block, out=buffer[: block.size].reshape(block.shape))
        top = logs.max(axis=1)
        logs -= top[:, None]
        with np.errstate(over="ignore"):  # to minus infinity: no mass at all
            logs /= epsilon
        yield lines, logs, top
