"""The k smallest entries of each row of a block of scores."""

from __future__ import annotations

import numpy as np

KNeighbors = tuple[np.ndarray, np.ndarray]  # indices and distances, both of shape (n_queries, k)


def kth_smallest_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """Per-row upper bound on the k-th smallest score, not far above it."""
    width, groups = scores.shape[1], max(256, 8 * k)
    if width >= 4 * groups:  # the k-th smallest of the groups' minima is such a bound, and cheaper
        scores = scores[:, : width // groups * groups].reshape(len(scores), -1, groups).min(axis=1)
    return np.partition(scores, k - 1, axis=1)[:, k - 1]


def entries_within(scores: np.ndarray, limits: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the scores within their row's limit, or of the `most` smallest where these are more."""
    rows, columns = np.divmod(np.flatnonzero(scores <= limits[:, None]), scores.shape[1])
    crowded = np.bincount(rows, minlength=len(scores)) > most
    if crowded.any():
        smallest = np.argpartition(scores[crowded], most - 1, axis=1)[:, :most]
        rows, columns = rows[~crowded[rows]], columns[~crowded[rows]]
        rows = np.concatenate([rows, np.repeat(np.flatnonzero(crowded), most)])
        columns = np.concatenate([columns, np.sort(smallest, axis=1).ravel()])
        order = np.argsort(rows, kind="stable")
        rows, columns = rows[order], columns[order]
    return rows, columns


def k_smallest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the `k` smallest scores of each row."""
    rows, columns = entries_within(scores, kth_smallest_bound(scores, k), most=4 * k + 64)
    columns, _ = k_nearest(rows, columns, scores[rows, columns], k)
    return np.repeat(np.arange(len(scores)), k), columns.ravel()


def k_nearest(queries: np.ndarray, candidates: np.ndarray, distances: np.ndarray, k: int) -> KNeighbors:
    """The `k` nearest candidates of each query; ties keep their order. The pairs are sorted by query."""
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    counts = np.diff(starts, append=len(queries))
    table = np.full((len(starts), counts.max(initial=k)), np.inf)
    table[np.repeat(np.arange(len(starts)), counts), np.arange(len(queries)) - np.repeat(starts, counts)] = distances
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return candidates[starts[:, None] + order], np.take_along_axis(table, order, axis=1)
