"""Columns for the Gaussian source: normal scores of the ranks, and at most 50 principal components of them."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import ndtri

from otprop._saving import saved_as
from otprop.geometry.parallel import row_blocks

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
