"""Finding rows that are the same row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as


def row_keys(rows: Any) -> Iterator[bytes]:
    """A key for every row, the same for rows with the same values."""
    if sp.issparse(rows):
        rows = sp.csr_array(rows, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].tobytes()
    else:
        for row in np.ascontiguousarray(rows) + 0.0:  # -0.0 becomes 0.0
            yield row.tobytes()


def first_of_each(rows: Any) -> np.ndarray:
    """Positions of the rows that do not repeat an earlier one."""
    seen: dict[bytes, int] = {}
    for position, key in enumerate(row_keys(rows)):
        seen.setdefault(key, position)
    return np.fromiter(seen.values(), dtype=np.intp, count=len(seen))


def digest(key: bytes) -> bytes:
    """A short stand-in for a key, where many are kept."""
    return blake2b(key, digest_size=16).digest()


@saved_as("geometry.labeled_rows")
class LabeledRows:
    """The rows whose label was given, and what they say of rows that are the same.

    Parameters
    ----------
    rows : ndarray of int, where they are in the table
    codes : ndarray of int, their class numbers
    weights : ndarray, positive
    table : ndarray or sparse CSR array, the table; None where rows are not known by their values but by a cost of 0
    """

    def __init__(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray, table: Any = None) -> None:
        self.rows, self.codes, self.weights = rows, codes, weights
        self._places: dict[bytes, list[int]] = {}
        for place, key in enumerate(row_keys(table[rows]) if table is not None else ()):
            self._places.setdefault(key, []).append(place)

    def like(self, key: bytes) -> Sequence[int]:
        """OutputPaths of the given rows with this key."""
        return self._places.get(key, [])

    def votes(self, places: Any, n_classes: int) -> np.ndarray:
        """The class shares of the given rows at these places, each by its weight."""
        found = np.bincount(self.codes[places], self.weights[places], minlength=n_classes)
        return np.asarray(found / self.weights[places].sum())
