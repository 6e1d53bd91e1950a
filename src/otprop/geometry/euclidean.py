"""Euclidean and squared Euclidean distances (Eq. 8) for features of any scale and offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from otprop._saving import saved_as
from otprop.geometry.scaling import max_abs, power_of_two

CENTER_ROWS = 1000  # rows whose median is the center
FARTHEST = 1e150  # in units of the scaled rows: squares stay finite


@saved_as("geometry.euclidean_cost")
class EuclideanCost:
    """Squared (or plain) Euclidean distances between rows, as a `PairwiseCost`.

    Rows are centered (unless sparse) and scaled by a power of two, which is exact, so that squares do not overflow and
    small distances are not lost next to large norms. Distances are in those units; multiply by `scale` for the
    user's units.
    """

    def __init__(self, rows: Any, squared: bool = True) -> None:
        self.squared = squared
        self._scale = power_of_two(max_abs(rows))
        rows = rows / self._scale
        self._center: np.ndarray | None = None
        if not sp.issparse(rows):
            self._center = np.median(rows[:: max(1, len(rows) // CENTER_ROWS)], axis=0)
            rows -= self._center
        self._centered_scale = power_of_two(max_abs(rows))
        rows /= self._centered_scale
        self.rows = rows
        self.norms = row_norms(self.rows, squared=True)
        with np.errstate(over="ignore", under="ignore"):
            unit = np.float64(self._scale) * self._centered_scale
            limits = np.finfo(float)
            self.scale = float(np.clip(unit * unit if squared else unit, limits.smallest_subnormal, limits.max))

    def columns(self, reference: np.ndarray, new: Any = None) -> Callable[[np.ndarray], np.ndarray]:
        rows, norms = (self.rows, self.norms) if new is None else self._transform(new)
        others, other_norms = self.rows[reference].T, self.norms[reference]

        def block(numbers: np.ndarray) -> np.ndarray:
            costs = safe_sparse_dot(rows[numbers], others, dense_output=True)
            costs *= -2.0
            costs += norms[numbers, None]
            costs += other_norms
            np.maximum(costs, 0.0, out=costs)
            return costs if self.squared else np.sqrt(costs, out=costs)

        return block

    def _transform(self, new: Any) -> tuple[Any, np.ndarray]:
        """New rows and their squared norms in the units of the training rows, clipped where squares would overflow."""
        with np.errstate(over="ignore"):
            new = new / self._scale
            if self._center is not None:
                new -= self._center
            new = new / self._centered_scale
        values = new.data if sp.issparse(new) else new
        np.clip(values, -FARTHEST, FARTHEST, out=values)
        return new, row_norms(new, squared=True)
