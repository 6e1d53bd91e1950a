"""Rows before they are compared: their products with each other, their lengths, those that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.geometry.parallel import in_parts
from otprop.geometry.row_matching import digest, row_keys
from otprop.geometry.topk import Found


def as_rows(X: Any) -> Any:
    return sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def row_dots(here: Any, there: Any = None) -> np.ndarray:
    """The inner product of each row with the one beside it, or with itself."""
    there = here if there is None else there
    return np.asarray(here.multiply(there).sum(axis=1)) if sp.issparse(here) else np.einsum("ij,ij->i", here, there)


def row_largest(rows: Any) -> np.ndarray:
    """The largest absolute value of each row."""
    if sp.issparse(rows):
        return abs(rows).max(axis=1).toarray().ravel()
    return np.maximum(rows.max(axis=1), -rows.min(axis=1))


@saved_as("geometry.unit_rows")
class UnitRows:
    """Rows scaled to length one. Where the table has rows of zeros they get a direction of their own."""

    def __init__(self, X: Any) -> None:
        self._has_zeros = bool((row_largest(X) == 0).any())

    def __call__(self, rows: Any) -> Any:
        largest = row_largest(rows)
        zero = largest == 0
        first = np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1021, 1023))  # squares must not overflow
        lengths = np.sqrt(row_dots(self._scaled(rows, first)))
        rows = self._scaled(self._scaled(rows, first), 1.0 / np.where(zero, 1.0, lengths))
        if not self._has_zeros:
            return rows
        extra = zero.astype(np.float64)[:, None]
        return sp.csr_array(sp.hstack([rows, extra])) if sp.issparse(rows) else np.hstack([rows, extra])

    @staticmethod
    def _scaled(rows: Any, factors: np.ndarray) -> Any:
        return sp.csr_array(sp.diags_array(factors) @ rows) if sp.issparse(rows) else rows * factors[:, None]


@saved_as("geometry.copies")
class Copies:
    """Equal rows: which they are, and how what was found for one of them becomes the others' too."""

    def __init__(self, rows: Any) -> None:
        self.group = np.arange(rows.shape[0])
        suspects = np.arange(rows.shape[0]) if sp.issparse(rows) else _perhaps_equal(rows)
        seen: dict[bytes, int] = {}
        for part in in_parts(len(suspects), 4096):
            numbers = suspects[part]
            for number, key in zip(numbers.tolist(), row_keys(rows[numbers]), strict=True):
                self.group[number] = seen.setdefault(digest(key), number)
        self.any = len(seen) < len(suspects)
        self.group = np.unique(self.group, return_inverse=True)[1]
        self.order, self.sizes = np.argsort(self.group, kind="stable"), np.bincount(self.group)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.first = self.order[self.starts]

    def once(self, rows: Any) -> Any:
        """The rows without repetitions."""
        return rows[self.first] if self.any else rows

    def of_every_row(self, values: np.ndarray) -> np.ndarray:
        return values[self.group] if self.any else values

    def spread(self, found: np.ndarray, distances: np.ndarray, k: int) -> Found:
        """Neighbours among distinct rows as the `k` nearest of all rows."""
        if not self.any:
            return found, distances
        sizes = self.sizes[found]
        before = np.cumsum(sizes, axis=1) - sizes
        taken = np.clip(k - before, 0, sizes)  # each line sums to k
        groups = np.repeat(found.ravel(), taken.ravel())
        copy = np.arange(groups.size) % k - np.repeat(before.ravel(), taken.ravel())
        rows = self.order[self.starts[groups] + copy].astype(np.int32)
        return rows.reshape(-1, k), np.repeat(distances.ravel(), taken.ravel()).reshape(-1, k)


def _perhaps_equal(rows: np.ndarray) -> np.ndarray:
    """Numbers of the rows that may have an equal, by a sum of their bits in random proportions."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    sums = np.empty(len(rows), dtype=np.uint64)
    for part in in_parts(len(rows), 1024):
        bits = (rows[part] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        bits ^= bits >> np.uint64(32)
        sums[part] = (bits * factors).sum(axis=1)
    _, which, counts = np.unique(sums, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] > 1)
