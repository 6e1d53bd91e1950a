"""Rows centred and scaled for the distance-based methods, so that squares of any finite numbers are finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from otprop.geometry.parallel import row_blocks

FAR = 1e120  # new rows are clipped to this, in units of the extent of the training rows
BLOCK_ENTRIES = 4_000_000  # entries of a distance block held at once


@dataclass(frozen=True)
class Frame:
    """The shift and the common factor that scale the training rows to [-1, 1].

    Distances of scaled rows are those of the rows divided by `extent`. Sparse rows are not shifted.
    """

    center: np.ndarray | None
    extent: float

    @classmethod
    def fit(cls, X: Any) -> Frame:
        """The frame of the training rows."""
        largest = float(abs(X).max()) if X.shape[0] and X.shape[1] else 0.0
        if largest == 0.0:
            return cls(None, 1.0)
        if sparse.issparse(X):
            return cls(None, largest)
        center = (X / largest).mean(axis=0) * largest
        extent = max(float(np.max(center - X.min(axis=0))), float(np.max(X.max(axis=0) - center)))
        return cls(center, extent if extent > 0 else 1.0)

    def transform(self, X: Any) -> Any:
        """Scaled rows."""
        if sparse.issparse(X):
            scaled = (X / self.extent).tocsr()
            np.clip(scaled.data, -FAR, FAR, out=scaled.data)
            return scaled
        shifted = X if self.center is None else X - self.center
        with np.errstate(over="ignore"):
            return np.clip(shifted / self.extent, -FAR, FAR)


def blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of the rows whose distances to `n_columns` others fit a block."""
    return row_blocks(n_rows, max(1, BLOCK_ENTRIES // max(1, n_columns)))


def squared_distances(X: Any, *, dtype: Any = np.float64) -> np.ndarray:
    """All squared Euclidean distances between the rows of `X`, in one array of `dtype`, computed in blocks."""
    n_rows = X.shape[0]
    norms = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    out = np.empty((n_rows, n_rows), dtype=dtype)
    for rows in blocks(n_rows, n_rows):
        out[rows] = euclidean_distances(
            X[rows], X, squared=True, X_norm_squared=norms[rows, None], Y_norm_squared=norms[None, :]
        )
    np.fill_diagonal(out, 0.0)
    return out


def typical_distance(nearest: np.ndarray, extent: float) -> float:
    """The median of the distances to the nearest other row; repeated rows count only if nothing else is there.

    `extent` is a length of the size of the data: distances below 1e-7 of it are rounding. 1 if all rows coincide.
    """
    apart = nearest[nearest > 1e-7 * extent]
    if apart.size == 0:
        return 1.0
    median = float(np.median(nearest))
    return median if median > 1e-7 * extent else float(np.median(apart))
