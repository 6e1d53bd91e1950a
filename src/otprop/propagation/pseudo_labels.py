"""Given and propagated labels with weights, for learners that are trained on both."""

from __future__ import annotations

from typing import Any

import numpy as np


def class_balanced_weights(codes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The score of each row divided by the number of rows of its class, scaled to a mean of one.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,), no row unlabelled
    scores : ndarray of shape (n_rows,), 0 or more; a row with 0 gets the weight 0 and does not count

    Returns
    -------
    ndarray of shape (n_rows,)
        All 1 if every score is 0.

    Examples
    --------
    >>> import numpy as np
    >>> print(class_balanced_weights(np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 1.0])).round(2))
    [0.67 0.67 0.67 2.  ]
    """
    counts = np.bincount(codes, weights=scores > 0)
    weights = scores / np.maximum(counts, 1)[codes]
    total = weights.sum()
    return weights * (len(weights) / total) if total > 0 else np.ones(len(weights))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame, in the same type; a list becomes an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
