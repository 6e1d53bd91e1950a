"""Costs between the unlabelled and the labelled rows, in blocks of rows.

A row of the cost belongs to an unlabelled row (marginal b), a column to a labelled one (marginal a). This is the
transpose of the paper's C, so that all costs of one unlabelled row are contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from otprop.geometry.pairwise import PairwiseCost
from otprop.geometry.parallel import row_blocks, rows_per_block

BLOCK_BYTES = 2**20  # a block and its temporary arrays fit in the processor's cache
MEMORY_LIMIT = 4 * 2**30  # bytes; larger costs are recomputed on every pass
FLOAT32_RANGE = 1e-30, 1e30  # limits outside it are not used: float32 would overflow or underflow


class Cost(Protocol):
    """A cost matrix as the solver sees it: its shape, whether it is in memory, and its blocks of rows in order."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def stored(self) -> bool: ...

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]: ...


class ArrayCost:
    """A cost matrix in memory."""

    stored = True

    def __init__(self, matrix: np.ndarray, block_bytes: int = BLOCK_BYTES) -> None:
        self.matrix = matrix
        self._blocks = row_blocks(len(matrix), rows_per_block(matrix.shape[1], block_bytes // 8))

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in self._blocks:
            yield rows, self.matrix[rows]


class RowCost:
    """The cost between the unlabelled and the labelled rows of a table, updated from round to round.

    Parameters
    ----------
    pairs : PairwiseCost, the costs between any rows of the table
    unlabeled, labeled : ndarray of int, row numbers
    memory_limit : int, bytes (None: MEMORY_LIMIT); larger costs are recomputed on every pass instead of stored
    float32_below : float, blocks whose costs are all at most this are stored in float32
    """

    def __init__(
        self,
        pairs: PairwiseCost,
        unlabeled: np.ndarray,
        labeled: np.ndarray,
        memory_limit: int | None = None,
        float32_below: float = 0.0,
    ) -> None:
        self.pairs, self.unlabeled, self.labeled = pairs, unlabeled, labeled
        self._memory_limit = MEMORY_LIMIT if memory_limit is None else memory_limit
        self._float32_below = float32_below
        self._stored: list[np.ndarray] = list(self._computed()) if self._fits() else []
        self._is_stored = self._fits()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.unlabeled), len(self.labeled)

    @property
    def stored(self) -> bool:
        return self._is_stored

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        start = 0
        for block in self._stored if self._is_stored else self._computed():
            yield slice(start, start + len(block)), block
            start += len(block)

    def narrow(self, limit: float) -> None:
        """Store later blocks with costs up to `limit` in float32."""
        self._float32_below = limit
        for number, block in enumerate(self._stored):
            self._stored[number] = self._narrowed(block)

    def advance(self, newly_labeled: np.ndarray) -> None:
        """Move the unlabelled rows where `newly_labeled` is true to the end of the labelled rows.

        Stored blocks lose those rows and gain those columns; stored costs are not recomputed.
        """
        added = self.unlabeled[newly_labeled]
        previous, self.unlabeled = self.unlabeled, self.unlabeled[~newly_labeled]
        self.labeled = np.concatenate([self.labeled, added])
        self._is_stored = self._is_stored and self._fits()
        if not self._is_stored:
            self._stored = []
            return
        new_columns = self.pairs.columns(added)
        old_blocks, self._stored = self._stored[::-1], []
        start = 0
        while old_blocks:
            block = old_blocks.pop()  # freed before the next new block is made
            stay = ~newly_labeled[start : start + len(block)]
            rows = previous[start : start + len(block)][stay]
            start += len(block)
            if len(rows):
                self._store(self._extended(block, stay, new_columns(rows)))

    def _store(self, block: np.ndarray) -> None:
        """Append a block to the stored ones, joining small blocks and splitting large ones."""
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
        return 8 * len(self.unlabeled) * len(self.labeled) <= self._memory_limit

    def _computed(self) -> Iterator[np.ndarray]:
        columns = self.pairs.columns(self.labeled)
        for rows in row_blocks(len(self.unlabeled), rows_per_block(len(self.labeled), BLOCK_BYTES // 8)):
            yield self._narrowed(columns(self.unlabeled[rows]))

    def _narrowed(self, block: np.ndarray) -> np.ndarray:
        least, most = FLOAT32_RANGE
        limit = min(self._float32_below, most)
        return block.astype(np.float32, copy=False) if limit > least and block.max(initial=0.0) <= limit else block


def cost_summary(cost: Cost) -> tuple[np.ndarray, np.ndarray, float]:
    """The smallest cost of each row, the smallest cost of each column, and the mean cost."""
    of_rows, of_columns, mean = [], np.full(cost.shape[1], np.inf), 0.0
    size = cost.shape[0] * cost.shape[1]
    for _, block in cost.blocks():
        of_rows.append(block.min(axis=1))
        np.minimum(of_columns, block.min(axis=0), out=of_columns)
        mean += float((block / np.float64(size)).sum())  # divided first: a sum of large costs would overflow
    return np.concatenate(of_rows), of_columns, mean
