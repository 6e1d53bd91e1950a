"""Which rows deserve a look first: the least sure ones, but not ten copies of the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.metrics import pairwise_distances

from otprop.labelling.outcome import Outcome

POOL = 400  # how many of the least sure, all different, are compared with each other


def rows_to_review(outcome: Outcome, X: Any, n: int = 20) -> list[int]:
    """Rows whose label is least sure and that differ from each other, in the order in which to look at them.

    Of the least sure rows, each taken once however often it is repeated, the first is the least sure of all; then
    comes, time after time, the row with the greatest product of doubt and distance to those chosen. Distances beyond
    the median one count as the median, so that an outlier is not preferred to a doubtful row.

    Parameters
    ----------
    outcome : Outcome
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    n : int, how many rows; fewer come back where fewer differ

    Returns
    -------
    list of int
    """
    candidates = np.flatnonzero(~outcome.given)
    if n < 1 or len(candidates) == 0:
        return []
    sure = np.asarray(outcome.sureness, dtype=np.float64)[candidates]
    pool = candidates[_least_sure_and_different(X, candidates, sure, max(n, min(POOL, 15 * n)))]
    doubt = 1.0 - outcome.sureness[pool]
    doubt = np.maximum(doubt, 1e-9)  # where all is sure, distance alone decides
    distances = _distances(X[pool])
    chosen = [0]
    nearest = distances[0].copy()
    while len(chosen) < min(n, len(pool)):
        score = doubt * nearest
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return [int(row) for row in pool[chosen]]


def _least_sure_and_different(X: Any, candidates: np.ndarray, sure: np.ndarray, size: int) -> np.ndarray:
    """Up to `size` numbers of candidates, the least sure first, no two with the same features."""
    asked = 4 * size
    while True:
        order = _least(sure, asked)
        kept: dict[bytes, int] = {}
        for number, key in zip(order, _keys(X[candidates[order]]), strict=True):
            kept.setdefault(key, int(number))
        if len(kept) >= size or len(order) == len(sure):
            different = np.array(list(kept.values()))
            return different[_least(sure[different], size)]
        asked *= 8


def _least(values: np.ndarray, size: int) -> np.ndarray:
    """Numbers of the `size` smallest values in order; of those that tie at the end, some from everywhere."""
    if size >= len(values):
        return np.argsort(values, kind="stable")
    limit = np.partition(values, size - 1)[size - 1]
    below = np.flatnonzero(values < limit)
    ties = np.flatnonzero(values == limit)
    ties = ties[np.linspace(0, len(ties) - 1, size - len(below)).astype(int)]
    return np.concatenate([below[np.argsort(values[below], kind="stable")], ties])


def _keys(rows: Any) -> list[bytes]:
    """A key a row, the same for rows that are the same."""
    if not issparse(rows):
        return [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]  # + 0.0: no negative zero
    rows = csr_matrix(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes() for start, stop in spans]


def _distances(rows: Any) -> np.ndarray:
    """Distances between all rows, in medians, cut off at one."""
    rows = rows.astype(np.float64)
    largest = abs(rows).max()
    distances = pairwise_distances(rows / largest if largest > 0 else rows)
    typical = np.median(distances[np.triu_indices(len(distances), 1)]) if len(distances) > 1 else 0.0
    return np.minimum(distances / typical, 1.0) if typical > 0 else distances
