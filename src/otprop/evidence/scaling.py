"""Features for the classifiers: columns of mean 0 and variance 1 in single precision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as

MAX_ABS = 1e18  # standard deviations; single precision can still square it


@saved_as("evidence.column_scaler", infinite=("_scale",))
class ColumnScaler:
    """Standardise columns of any units; sparse columns are only scaled, so that zeros stay zeros."""

    def fit(self, X: Any) -> Self:
        """Learn the centre and the scale of every column."""
        if sp.issparse(X):
            largest = abs(X).max()
            self._centre: np.ndarray | None = None
            self._scale: Any = float(largest) if largest > 0 else 1.0
            return self
        largest = np.abs(X).max(axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        self._largest = largest
        with np.errstate(under="ignore"):
            mean = np.mean(X / largest, axis=0)
            spread = np.sqrt(np.mean((X / largest - mean) ** 2, axis=0))
        varies = spread > 64 * np.finfo(np.float64).eps
        self._centre, self._scale = mean, np.where(varies, spread, np.inf)
        return self

    def transform(self, X: Any) -> Any:
        """Scaled rows in single precision."""
        if self._centre is None:
            scaled = sp.csr_array(X, dtype=np.float64, copy=True)
            with np.errstate(under="ignore", over="ignore"):
                scaled.data = np.clip(scaled.data / self._scale, -MAX_ABS, MAX_ABS)
            return scaled.astype(np.float32)
        with np.errstate(under="ignore", over="ignore"):
            scaled = (np.clip(X / self._largest, -1e300, 1e300) - self._centre) / self._scale
        return np.clip(scaled, -MAX_ABS, MAX_ABS).astype(np.float32)
