"""From clusters to classes, by the labelled rows only."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def match_clusters_to_classes(clusters: np.ndarray, codes: np.ndarray, n_clusters: int, n_classes: int) -> np.ndarray:
    """The one-to-one map from clusters to classes that is right for the most labelled rows.

    Parameters
    ----------
    clusters : ndarray of int of shape (n_rows,)
    codes : ndarray of int of shape (n_rows,), class numbers, -1 where unlabelled (not looked at)
    n_clusters : int, at most `n_classes`
    n_classes : int

    Returns
    -------
    ndarray of int of shape (n_clusters,), a class number for each cluster
    """
    given = codes >= 0
    counts = np.zeros((n_clusters, n_classes))
    np.add.at(counts, (clusters[given], codes[given]), 1.0)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    out = np.empty(n_clusters, dtype=np.intp)
    out[rows] = columns
    return out
