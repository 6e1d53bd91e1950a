"""Which rows to review first: the least certain ones that differ from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from otprop._validation import check_count
from otprop.geometry.row_matching import row_keys
from otprop.labelling.outcome import Outcome

POOL = 400  # how many of the least certain different rows are compared with each other


def rows_to_review(outcome: Outcome, X: Any, n: int = 20) -> list[int]:
    """Rows to review, in order; fewer than `n` where fewer differ.

    The first is the least certain; each next one has the greatest product of doubt and distance to those chosen, among
    the least certain different rows. Distances are cut off at the median, so that an outlier is not preferred to a
    doubtful row.
    """
    check_count("n", n, least=0)
    candidates = np.flatnonzero(~outcome.given)
    if n < 1 or len(candidates) == 0:
        return []
    sure = np.asarray(outcome.sureness, dtype=np.float64)[candidates]
    pool = candidates[_least_certain_different(X, candidates, sure, max(n, min(POOL, 15 * n)))]
    doubt = 1.0 - outcome.sureness[pool]
    doubt = np.maximum(doubt, 1e-9)  # where all are certain, distance alone decides
    distances = _distances(X[pool])
    chosen = [0]
    nearest = distances[0].copy()
    while len(chosen) < min(n, len(pool)):
        score = doubt * nearest
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return [int(row) for row in pool[chosen]]


def _least_certain_different(X: Any, candidates: np.ndarray, sure: np.ndarray, size: int) -> np.ndarray:
    """Up to `size` numbers of candidates, the least certain first, no two with the same features."""
    asked = 4 * size
    while True:
        order = _least(sure, asked)
        kept: dict[bytes, int] = {}
        for number, key in zip(order, row_keys(X[candidates[order]]), strict=True):
            kept.setdefault(key, int(number))
        if len(kept) >= size or len(order) == len(sure):
            different = np.array(list(kept.values()))
            return different[_least(sure[different], size)]
        asked *= 8


def _least(values: np.ndarray, size: int) -> np.ndarray:
    """Numbers of the `size` smallest values in order; ties at the end are taken evenly from all rows."""
    if size >= len(values):
        return np.argsort(values, kind="stable")
    limit = np.partition(values, size - 1)[size - 1]
    below = np.flatnonzero(values < limit)
    ties = np.flatnonzero(values == limit)
    ties = ties[np.linspace(0, len(ties) - 1, size - len(below)).astype(int)]
    return np.concatenate([below[np.argsort(values[below], kind="stable")], ties])


def _distances(rows: Any) -> np.ndarray:
    """Distances between all rows, in medians, cut off at one."""
    rows = rows.astype(np.float64)
    largest = abs(rows).max()
    distances = pairwise_distances(rows / largest if largest > 0 else rows)
    typical = np.median(distances[np.triu_indices(len(distances), 1)]) if len(distances) > 1 else 0.0
    return np.minimum(distances / typical, 1.0) if typical > 0 else distances
