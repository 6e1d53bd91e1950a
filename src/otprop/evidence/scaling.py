"""Features for the sources: standardised columns for the classifiers, normal scores of the ranks for the Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from otprop._saving import saved_as
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.scaling import narrow_indices

MAX_ABS = 1e18  # standard deviations; single precision can still square it
USUAL = (1e-100, 1e100)  # columns within these bounds are scaled in one step, which cannot overflow
BLOCK_ENTRIES = 2**16
COLUMN_ENTRIES = 2**24


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
        mean, spread = np.empty(X.shape[1]), np.empty(X.shape[1])
        with np.errstate(under="ignore"):
            for block in row_blocks(X.shape[1], rows_per_block(len(X), COLUMN_ENTRIES)):
                shares = X[:, block] / largest[block]
                mean[block] = np.mean(shares, axis=0)
                shares -= mean[block]
                spread[block] = np.sqrt(np.einsum("ij,ij->j", shares, shares) / len(X))
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


MAX_COMPONENTS = 50
MAX_SAMPLED_ROWS = 5000  # rows that ranks and components are learnt from
MAX_KNOTS = 256  # of a column: values whose rank is stored; the others are interpolated
MIN_RANK = 1e-4  # of the smallest value; a new row may lie beyond all others
ROWS_PER_BLOCK = 4096


@saved_as("evidence.normal_scores")
class NormalScores:
    """Each value becomes the normal quantile of its mid-rank in the column: no skew, no outliers.

    Ties get the mean of their ranks, so a column of few values keeps only their order.
    Columns are then scaled to variance 1; from `MAX_COMPONENTS` columns on, principal components replace them.
    """

    def fit(self, X: np.ndarray) -> Self:
        """Learn the ranks of every column, and the components."""
        if len(X) > MAX_SAMPLED_ROWS:
            X = X[np.sort(np.random.default_rng(0).choice(len(X), MAX_SAMPLED_ROWS, replace=False))]
        knots = [_knots(column) for column in X.T]
        varies = [number for number, (values, _) in enumerate(knots) if len(values) > 1] or [0]
        self.columns = np.array(varies, dtype=np.intp)
        self.ends = np.cumsum([len(knots[number][0]) for number in varies], dtype=np.intp)
        self.values, self.scores = (np.concatenate([knots[number][part] for number in varies]) for part in (0, 1))
        self.centre, self.factors = np.zeros(len(varies)), np.eye(len(varies))
        found = self._transform(X)
        self.centre = found.mean(axis=0)
        spread = found.std(axis=0)
        self.factors = np.diag(1.0 / np.where(spread > 0, spread, 1.0))
        if len(varies) > MAX_COMPONENTS:
            scaled = (found - self.centre) @ self.factors
            variances, components = np.linalg.eigh(scaled.T @ scaled / len(scaled))
            kept = components[:, -MAX_COMPONENTS:] / np.sqrt(variances[-MAX_COMPONENTS:].mean())
            self.factors = self.factors @ kept
        return self

    @property
    def n_columns(self) -> int:
        """Number of output columns."""
        return int(self.factors.shape[1])

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Normal scores of rows, or their components."""
        found = np.empty((len(X), self.n_columns))
        for block in row_blocks(len(X), ROWS_PER_BLOCK):
            found[block] = self._transform(X[block])
        return found

    def _transform(self, X: np.ndarray) -> np.ndarray:
        scores = np.empty((len(X), len(self.columns)))
        start = 0
        for number, (column, end) in enumerate(zip(self.columns, self.ends, strict=True)):
            scores[:, number] = np.interp(X[:, column], self.values[start:end], self.scores[start:end])
            start = end
        return np.asarray((scores - self.centre) @ self.factors)


def _knots(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of a column in ascending order, and the normal quantiles of their mid-ranks."""
    values, counts = np.unique(column.astype(np.float64), return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(column)
    scores = ndtri(np.clip(ranks, MIN_RANK, 1.0 - MIN_RANK))
    if len(values) > MAX_KNOTS:
        kept = np.unique(np.searchsorted(scores, np.linspace(scores[0], scores[-1], MAX_KNOTS)))
        values, scores = values[kept], scores[kept]
    return values, scores
