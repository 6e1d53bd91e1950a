"""The map of the rows: which are drawn, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD

MOST_DRAWN = 20_000
MOST_GIVEN = 5_000


def rows_to_draw(
    given: np.ndarray, always: Sequence[int] = (), n: int = MOST_DRAWN, n_given: int = MOST_GIVEN, seed: int = 0
) -> np.ndarray:
    """A sample of the rows that is fair to the unlabelled ones: all where they are few, else drawn at random.

    Parameters
    ----------
    given : ndarray of bool of shape (n_rows,), whether the label stood in the file
    always : sequence of int, rows that must be among them
    n : int, how many rows at most
    n_given : int, how many rows with a given label at most, where not all rows are drawn
    seed : int

    Returns
    -------
    ndarray of int, row numbers in ascending order
    """
    if len(given) <= n:
        return np.arange(len(given))
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(given)
    if len(labelled) > n_given:
        labelled = rng.choice(labelled, n_given, replace=False)
    first = np.union1d(labelled, np.asarray(always, dtype=np.intp))
    rest = np.setdiff1d(np.flatnonzero(~given), first, assume_unique=True)
    more = rng.choice(rest, min(len(rest), max(0, n - len(first))), replace=False)
    return np.sort(np.concatenate([first, more]))


def map_rows(X: Any, drawn: np.ndarray, how: str = "pca", seed: int = 0) -> np.ndarray:
    """Place rows in two dimensions.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    drawn : ndarray of int, the rows to place
    how : {"pca", "umap"}; "umap" needs ``pip install 'otprop[umap]'``
    seed : int

    Returns
    -------
    ndarray of shape (n_drawn, 2)
    """
    rows = X[drawn]
    if how == "umap":
        return _umap(rows, seed)
    if how != "pca":
        raise ValueError(f"how is {how!r}; a map of the rows is made by 'pca' or 'umap'.")
    if rows.shape[0] < 2 or rows.shape[1] < 2:
        points = rows.toarray() if issparse(rows) else np.asarray(rows)
        points = points[:, :1]
    else:
        made = TruncatedSVD(2, random_state=seed) if issparse(rows) else PCA(2, random_state=seed)
        with np.errstate(invalid="ignore", divide="ignore"):  # shares of a variance that may be 0, not used here
            points = made.fit_transform(rows)
    placed = np.zeros((rows.shape[0], 2))
    placed[:, : points.shape[1]] = points
    return placed


def _umap(rows: Any, seed: int) -> np.ndarray:
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError("a map of the rows by UMAP needs umap-learn: pip install 'otprop[umap]'") from error
    n_rows = rows.shape[0]
    if n_rows < 4:
        return np.column_stack([np.arange(n_rows, dtype=np.float64), np.zeros(n_rows)])
    start = "spectral" if n_rows > 10 else "random"
    made = UMAP(n_neighbors=min(15, n_rows - 1), init=start, random_state=seed, n_jobs=1)
    return np.asarray(made.fit_transform(rows), dtype=np.float64)
