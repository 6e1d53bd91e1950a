"""Eq. 8: squared Euclidean distances, whatever the scale of the features and wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from otprop._saving import saved_as

CENTER_ROWS = 1000  # how many rows decide where the middle is


@saved_as("geometry.euclidean_cost")
class EuclideanCost:
    """Squared (or plain) Euclidean distances between rows.

    Rows are moved to the middle of the data and scaled by a power of two, which is exact, so that squares
    neither overflow nor lose the small distances beside the large norms. Distances are in those units: a
    distance times `scale` is in the user's. Sparse rows are scaled only.
    """

    def __init__(self, rows: Any, squared: bool = True) -> None:
        self.squared = squared
        self._first = _power_of_two(_largest(rows))
        rows = rows / self._first
        self._center: np.ndarray | None = None
        if not sp.issparse(rows):
            self._center = np.median(rows[:: max(1, len(rows) // CENTER_ROWS)], axis=0)
            rows -= self._center
        self._second = _power_of_two(_largest(rows))
        rows /= self._second
        self.rows = rows
        self.norms = row_norms(self.rows, squared=True)
        with np.errstate(over="ignore", under="ignore"):
            unit = np.float64(self._first) * self._second
            self.scale = float(unit * unit if squared else unit)

    def columns(self, sources: np.ndarray, new: Any = None) -> Callable[[np.ndarray], np.ndarray]:
        rows, norms = (self.rows, self.norms) if new is None else self._enter(new)
        there, there_norms = self.rows[sources].T, self.norms[sources]

        def block(here: np.ndarray) -> np.ndarray:
            costs = safe_sparse_dot(rows[here], there, dense_output=True)
            costs *= -2.0
            costs += norms[here, None]
            costs += there_norms
            np.maximum(costs, 0.0, out=costs)
            return costs if self.squared else np.sqrt(costs, out=costs)

        return block

    def _enter(self, new: Any) -> tuple[Any, np.ndarray]:
        """New rows in the units of the old; one too far away to be squared stays just representable."""
        with np.errstate(over="ignore"):
            new = new / self._first
            if self._center is not None:
                new -= self._center
            new = new / self._second
        if not sp.issparse(new):
            np.clip(new, -1e150, 1e150, out=new)
        return new, row_norms(new, squared=True)


def _largest(rows: Any) -> float:
    """The largest absolute value, without a copy of the rows."""
    return max(float(rows.max()), -float(rows.min()))


def _power_of_two(size: float) -> float:
    """The power of two at or above `size`; 1 for 0."""
    if size == 0:
        return 1.0
    exponent = int(np.clip(np.frexp(size)[1], -1021, 1023))
    return float(np.ldexp(1.0, exponent))
