"""Costs between two growing and shrinking sets of rows, in blocks of lines.

A line belongs to a target (an unlabelled row), a column to a source (a labelled row): the transpose of the
paper's C, so that everything the method asks about one unlabelled row lies in one stretch of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from otprop.geometry.pairwise import PairwiseCost

BLOCK_BYTES = 2**20  # a block and what is computed from it stay in the processor's cache
MEMORY_LIMIT = 4 * 2**30  # bytes; costs beyond it are computed anew on every pass


class Cost(Protocol):
    """What the solver needs to know of a cost: its shape, its blocks of lines in order, whether it is in memory."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def stored(self) -> bool: ...

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]: ...


class ArrayCost:
    """A cost matrix that is in memory already, one line a target."""

    stored = True

    def __init__(self, matrix: np.ndarray, block_bytes: int = BLOCK_BYTES) -> None:
        self.matrix = matrix
        self._lines = lines_per_block(matrix.shape[1], block_bytes)

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self.matrix), self._lines):
            lines = slice(start, min(start + self._lines, len(self.matrix)))
            yield lines, self.matrix[lines]


class RowCost:
    """The cost between the unlabelled and the labelled rows of one table, carried over the rounds.

    Parameters
    ----------
    pairs : PairwiseCost, the costs between any rows of the table
    targets, sources : row numbers of the unlabelled and of the labelled rows
    memory_limit : bytes (None: MEMORY_LIMIT); where the costs need more they are computed in each pass and never
        stored
    float32_below : blocks of costs up to this are kept in float32
    """

    def __init__(
        self,
        pairs: PairwiseCost,
        targets: np.ndarray,
        sources: np.ndarray,
        memory_limit: int | None = None,
        float32_below: float = 0.0,
    ) -> None:
        self.pairs, self.targets, self.sources = pairs, targets, sources
        self._memory_limit = MEMORY_LIMIT if memory_limit is None else memory_limit
        self._float32_below = float32_below
        self._stored: list[np.ndarray] = list(self._computed()) if self._fits() else []
        self._is_stored = self._fits()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.targets), len(self.sources)

    @property
    def stored(self) -> bool:
        return self._is_stored

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        start = 0
        for block in self._stored if self._is_stored else self._computed():
            yield slice(start, start + len(block)), block
            start += len(block)

    def narrow(self, limit: float) -> None:
        """Keep costs up to `limit` in float32 from now on, block by block."""
        self._float32_below = limit
        for number, block in enumerate(self._stored):
            self._stored[number] = self._narrowed(block)

    def advance(self, moved: np.ndarray) -> None:
        """Turn the targets where `moved` is true into sources, at the end of their list.

        Stored blocks lose those lines and gain those columns; nothing known is computed again.
        """
        new_sources = self.targets[moved]
        old_targets, self.targets = self.targets, self.targets[~moved]
        self.sources = np.concatenate([self.sources, new_sources])
        self._is_stored = self._is_stored and self._fits()
        if not self._is_stored:
            self._stored = []
            return
        new_columns = self.pairs.columns(new_sources)
        old_blocks, self._stored = self._stored[::-1], []
        start = 0
        while old_blocks:
            block = old_blocks.pop()  # each old block is let go of before the next new one is made
            stay = ~moved[start : start + len(block)]
            part = old_targets[start : start + len(block)][stay]
            start += len(block)
            if len(part):
                self._store(self._extended(block, stay, new_columns(part)))

    def _store(self, block: np.ndarray) -> None:
        """Add a block to the stored ones, joining those that have become small and cutting the large."""
        last = self._stored[-1] if self._stored else None
        if last is not None and last.dtype == block.dtype and last.nbytes + block.nbytes <= BLOCK_BYTES:
            self._stored[-1] = np.concatenate([last, block])
        else:
            self._stored.extend(np.array_split(block, -(-block.nbytes // (2 * BLOCK_BYTES))))

    def _extended(self, block: np.ndarray, stay: np.ndarray, new: np.ndarray) -> np.ndarray:
        new = self._narrowed(new)
        n_old = block.shape[1]
        out = np.empty((len(new), n_old + new.shape[1]), dtype=np.result_type(block, new))
        out[:, :n_old] = block[stay]
        out[:, n_old:] = new
        return out

    def _fits(self) -> bool:
        return 8 * len(self.targets) * len(self.sources) <= self._memory_limit

    def _computed(self) -> Iterator[np.ndarray]:
        columns = self.pairs.columns(self.sources)
        lines = lines_per_block(len(self.sources), BLOCK_BYTES)
        for start in range(0, len(self.targets), lines):
            yield self._narrowed(columns(self.targets[start : start + lines]))

    def _narrowed(self, block: np.ndarray) -> np.ndarray:
        if self._float32_below and block.size and block.max() <= self._float32_below:
            return block.astype(np.float32, copy=False)
        return block


def cost_summary(cost: Cost) -> tuple[np.ndarray, np.ndarray, float]:
    """The cost from each target to its nearest source, from each source to its nearest target, and the mean."""
    of_targets, of_sources, total = [], np.full(cost.shape[1], np.inf), 0.0
    for _, block in cost.blocks():
        of_targets.append(block.min(axis=1))
        np.minimum(of_sources, block.min(axis=0), out=of_sources)
        total += float(block.sum(dtype=np.float64))
    return np.concatenate(of_targets), of_sources, total / (cost.shape[0] * cost.shape[1])


def lines_per_block(n_columns: int, block_bytes: int) -> int:
    return max(1, block_bytes // (8 * max(n_columns, 1)))
