"""Work in pieces, side by side: cut the same way whatever the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from otprop._saving import saved_as


@saved_as("geometry.jobs")
class Jobs:
    """Threads that work through a list of pieces; an interruption leaves at most one piece a thread to wait for."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n = effective_n_jobs(-1 if n_jobs is None else n_jobs)

    @staticmethod
    def alone() -> Any:
        """A context in which a matrix product takes one thread: pieces run side by side instead, and round alike."""
        return threadpool_limits(limits=1, user_api="blas")

    def run(self, work: Callable[[Any], Any], pieces: Sequence[Any]) -> Iterator[Any]:
        """The result of every piece, in order."""
        if len(pieces) <= 1:
            yield from map(work, pieces)
            return
        with self.alone():
            if self.n == 1:
                yield from map(work, pieces)
                return
            with ThreadPoolExecutor(self.n) as pool:
                futures = deque(pool.submit(work, piece) for piece in pieces)
                try:
                    while futures:
                        yield futures.popleft().result()
                finally:
                    for future in futures:
                        future.cancel()


def in_parts(n_rows: int, lines: int) -> list[slice]:
    return [slice(start, min(start + lines, n_rows)) for start in range(0, n_rows, lines)]


def lines_at_once(entries: int, width: int) -> int:
    return int(np.clip(entries // max(1, width), 8, 512))
