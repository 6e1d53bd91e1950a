"""Features for the classifiers: columns of mean 0 and variance 1 in single precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.evidence.normal_scores import NormalScores
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.scaling import narrow_indices

MAX_ABS = 1e18  # standard deviations; single precision can still square it
USUAL = (1e-100, 1e100)  # columns within these bounds are scaled in one step, which cannot overflow
BLOCK_ENTRIES = 2**16


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
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
        largest = np.where(largest > 0, largest, 1.0)
        self._largest = largest
        with np.errstate(under="ignore"):
            shares = X / largest
            mean = np.mean(shares, axis=0)
            shares -= mean
            spread = np.sqrt(np.einsum("ij,ij->j", shares, shares) / len(X))
        varies = spread > 64 * np.finfo(np.float64).eps
        self._centre, self._scale = mean, np.where(varies, spread, np.inf)
        return self

    def transform(self, X: Any) -> Any:
        """Scaled rows in single precision."""
        if self._centre is None:
            scaled = sp.csr_array(X, dtype=np.float64, copy=True)
            with np.errstate(under="ignore", over="ignore"):
                scaled.data = np.clip(scaled.data / self._scale, -MAX_ABS, MAX_ABS)
            return narrow_indices(scaled.astype(np.float32))
        out = np.empty(X.shape, dtype=np.float32)
        usual = bool(((self._largest > USUAL[0]) & (self._largest < USUAL[1])).all())
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            offset, factor = self._centre * self._largest, 1.0 / (self._scale * self._largest)
            for block in row_blocks(X.shape[0], rows_per_block(X.shape[1], BLOCK_ENTRIES)):
                if usual:
                    scaled = X[block] - offset
                    scaled *= factor
                else:
                    scaled = (np.clip(X[block] / self._largest, -1e300, 1e300) - self._centre) / self._scale
                out[block] = np.clip(scaled, -MAX_ABS, MAX_ABS, out=scaled)
        return out


@dataclass(frozen=True)
class ScaledRows:
    """All rows of X in single precision, and the scaler that made them: shared by the sources and by later fits."""

    scaler: ColumnScaler
    rows: Any

    @cached_property
    def scores(self) -> tuple[NormalScores, np.ndarray]:
        """Normal scores of the columns, and of all rows."""
        scores = NormalScores().fit(self.rows)
        return scores, scores.transform(self.rows)

    @classmethod
    def of(cls, X: Any) -> Self:
        """Learn the scales of the columns and apply them to all rows."""
        scaler = ColumnScaler().fit(X)
        return cls(scaler, scaler.transform(X))
