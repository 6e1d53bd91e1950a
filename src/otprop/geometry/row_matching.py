"""Finding equal rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.geometry.parallel import row_blocks

BY_DIFFERENCES = ("euclidean", "sqeuclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev")


def row_keys(rows: Any) -> Iterator[bytes]:
    """Yield a key for every row, the same for equal rows."""
    if sp.issparse(rows):
        rows = sp.csr_array(rows, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].tobytes()
    else:
        for row in np.ascontiguousarray(rows) + 0.0:  # -0.0 becomes 0.0
            yield row.tobytes()


def zero_means_equal(rows: Any, metric: Any) -> bool:
    """Whether rows at a distance of 0 are equal: not for angles, nor where differences vanish when they are squared."""
    if not isinstance(metric, str) or metric not in BY_DIFFERENCES:
        return False
    parts = (rows.data[block] if sp.issparse(rows) else rows[block] for block in row_blocks(len(_values(rows)), 4096))
    return all(bool(((part == 0) | ((abs(part) > 1e-100) & (abs(part) < 1e100))).all()) for part in parts)


def _values(rows: Any) -> np.ndarray:
    return np.asarray(rows.data if sp.issparse(rows) else rows)


def first_of_each(rows: Any) -> np.ndarray:
    """Positions of the rows that do not repeat an earlier one."""
    seen: dict[bytes, int] = {}
    for position, key in enumerate(row_keys(rows)):
        seen.setdefault(key, position)
    return np.fromiter(seen.values(), dtype=np.intp, count=len(seen))


def digest(key: bytes) -> bytes:
    """A short hash of a key, for storing many keys."""
    return blake2b(key, digest_size=16).digest()


@saved_as("geometry.labeled_rows")
class LabeledRows:
    """The labelled rows, and the class shares of those equal to a given row.

    Parameters
    ----------
    rows : ndarray of int, their row numbers in the table
    codes : ndarray of int, their class numbers
    weights : ndarray, positive
    table : ndarray or sparse CSR array; None if equal rows are found by a cost of 0 instead of by their values
    """

    def __init__(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray, table: Any = None) -> None:
        self.rows, self.codes, self.weights = rows, codes, weights
        self._places: dict[bytes, list[int]] = {}
        for place, key in enumerate(row_keys(table[rows]) if table is not None else ()):
            self._places.setdefault(key, []).append(place)

    def like(self, key: bytes) -> Sequence[int]:
        """Positions of the labelled rows with this key."""
        return self._places.get(key, [])

    def votes(self, places: Any, n_classes: int) -> np.ndarray:
        """Weighted class shares of the labelled rows at these positions."""
        weights = self.weights[places] / self.weights[places].max()  # their sum does not overflow
        found = np.zeros(n_classes)
        np.add.at(found, self.codes[places], weights)  # unlike bincount, checks codes, which may come from a file
        return np.asarray(found / weights.sum())


@saved_as("geometry.duplicate_rows")
class DuplicateRows:
    """Groups of equal rows, so that a search can be done among distinct rows only."""

    def __init__(self, rows: Any) -> None:
        self.group = np.arange(rows.shape[0])
        candidates = np.arange(rows.shape[0]) if sp.issparse(rows) else _possible_duplicates(rows)
        seen: dict[bytes, int] = {}
        for block in row_blocks(len(candidates), 4096):
            numbers = candidates[block]
            for number, key in zip(numbers.tolist(), row_keys(rows[numbers]), strict=True):
                self.group[number] = seen.setdefault(digest(key), number)
        self.any = len(seen) < len(candidates)
        self.group = np.unique(self.group, return_inverse=True)[1]
        self.order, self.sizes = np.argsort(self.group, kind="stable"), np.bincount(self.group)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.first = self.order[self.starts]

    def distinct(self, rows: Any) -> Any:
        """The first row of each group."""
        return rows[self.first] if self.any else rows

    def per_row(self, values: np.ndarray) -> np.ndarray:
        """Values of the groups as values of all rows."""
        return values[self.group] if self.any else values

    def expand(self, indices: np.ndarray, distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours among the groups as the `k` nearest of all rows."""
        if not self.any:
            return indices, distances
        sizes = self.sizes[indices]
        before = np.cumsum(sizes, axis=1) - sizes
        taken = np.clip(k - before, 0, sizes)  # each row sums to k
        groups = np.repeat(indices.ravel(), taken.ravel())
        copy = np.arange(groups.size) % k - np.repeat(before.ravel(), taken.ravel())
        rows = self.order[self.starts[groups] + copy].astype(np.int32)
        return rows.reshape(-1, k), np.repeat(distances.ravel(), taken.ravel()).reshape(-1, k)


def _possible_duplicates(rows: np.ndarray) -> np.ndarray:
    """Numbers of the rows whose hash, a random linear combination of their bits, occurs more than once."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(rows), dtype=np.uint64)
    for block in row_blocks(len(rows), 1024):
        bits = (rows[block] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        bits ^= bits >> np.uint64(32)
        hashes[block] = (bits * factors).sum(axis=1)
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] > 1)
