"""Finding rows that are the same row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


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
