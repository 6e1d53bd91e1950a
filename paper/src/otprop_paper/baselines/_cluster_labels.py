"""Class labels for clusters, by the labelled rows."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def match_clusters_to_classes(clusters: np.ndarray, codes: np.ndarray, n_clusters: int, n_classes: int) -> np.ndarray:
    """The class of each cluster, one-to-one, that is right for the most labelled rows (`codes` is -1 elsewhere)."""
    given = codes >= 0
    counts = np.zeros((n_clusters, n_classes))
    np.add.at(counts, (clusters[given], codes[given]), 1.0)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    out = np.empty(n_clusters, dtype=np.intp)
    out[rows] = columns
    return out
