"""Blocks of rows, and threads to work on them. Blocks and results do not depend on the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

from otprop._saving import saved_as


@saved_as("geometry.jobs")
class Jobs:
    """Runs a function over a list of blocks in `n` threads; an interrupt waits for at most one block per thread."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n = effective_n_jobs(-1 if n_jobs is None else n_jobs)

    def run(self, function: Callable[[Any], Any], blocks: Sequence[Any]) -> Iterator[Any]:
        """Yield the result of every block, in order."""
        if len(blocks) <= 1:
            yield from map(function, blocks)
            return
        with single_threaded_blas():
            if self.n == 1:
                yield from map(function, blocks)
                return
            with ThreadPoolExecutor(self.n) as pool:
                futures = deque(pool.submit(function, block) for block in blocks)
                try:
                    while futures:
                        yield futures.popleft().result()
                finally:
                    for future in futures:
                        future.cancel()


def single_threaded_blas() -> Any:
    """A context in which matrix products use one thread, so that they round the same for any number of threads."""
    return _thread_pools().limit(limits=1, user_api="blas")


def single_threaded() -> Any:
    """A context in which matrix products and compiled loops use one thread: for small problems, more are slower."""
    return _thread_pools().limit(limits=1)


@cache
def _thread_pools() -> ThreadpoolController:
    """The libraries with their own threads, cached: finding them can take longer than a fit."""
    return ThreadpoolController()


def row_blocks(n_rows: int, rows_per_block: int) -> list[slice]:
    """Consecutive slices of `rows_per_block` rows that cover `n_rows`; the last one may be shorter."""
    return [slice(start, min(start + rows_per_block, n_rows)) for start in range(0, n_rows, rows_per_block)]


def in_fixed_blocks(function: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, size: int) -> np.ndarray:
    """Results of blocks of exactly `size` rows, the last one filled up with its last row.

    All matrix products then have the same shape, so the result of a row does not depend on the number of rows.
    """
    found = []
    for block in row_blocks(len(rows), size):
        part = rows[block]
        missing = size - len(part)
        whole = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part
        found.append(function(whole)[: len(part)])
    return np.concatenate(found) if found else function(np.zeros((size, rows.shape[1]), rows.dtype))[:0]


def rows_per_block(n_columns: int, max_entries: int, least: int = 1, most: int | None = None) -> int:
    """The number of rows in a block of at most `max_entries`, within the bounds `least` and `most`."""
    rows = max(least, max_entries // max(n_columns, 1))
    return rows if most is None else min(rows, most)
