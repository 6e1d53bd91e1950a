"""The smallest numbers of each line of a block: who is nearest."""

from __future__ import annotations

import numpy as np

Found = tuple[np.ndarray, np.ndarray]  # indices and distances, a line for every query


def upper_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """A number a line that at least `k` of its scores do not exceed, and not many more."""
    width, groups = scores.shape[1], max(256, 8 * k)
    if width >= 4 * groups:  # the smallest of each group are scores too
        scores = scores[:, : width // groups * groups].reshape(len(scores), -1, groups).min(axis=1)
    return np.partition(scores, k - 1, axis=1)[:, k - 1]


def up_to(scores: np.ndarray, limit: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines and columns of the scores up to a limit for their line, or of the `most` smallest if they are more."""
    owners, columns = np.divmod(np.flatnonzero(scores <= limit[:, None]), scores.shape[1])
    crowded = np.bincount(owners, minlength=len(scores)) > most
    if crowded.any():
        smallest = np.argpartition(scores[crowded], most - 1, axis=1)[:, :most]
        owners, columns = owners[~crowded[owners]], columns[~crowded[owners]]
        owners = np.concatenate([owners, np.repeat(np.flatnonzero(crowded), most)])
        columns = np.concatenate([columns, np.sort(smallest, axis=1).ravel()])
        order = np.argsort(owners, kind="stable")
        owners, columns = owners[order], columns[order]
    return owners, columns


def k_smallest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines and columns of the `k` smallest scores of each line."""
    owners, columns = up_to(scores, upper_bound(scores, k), most=4 * k + 64)
    columns, _ = k_closest(owners, columns, scores[owners, columns], k)
    return np.repeat(np.arange(len(scores)), k), columns.ravel()


def k_closest(owners: np.ndarray, columns: np.ndarray, distances: np.ndarray, k: int) -> Found:
    """The `k` nearest candidates of each owner, of equally near ones the first. Candidates lie owner by owner."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(starts, append=len(owners))
    table = np.full((len(starts), counts.max(initial=k)), np.inf)
    table[np.repeat(np.arange(len(starts)), counts), np.arange(len(owners)) - np.repeat(starts, counts)] = distances
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return columns[starts[:, None] + order], np.take_along_axis(table, order, axis=1)
