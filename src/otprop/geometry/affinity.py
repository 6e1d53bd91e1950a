"""Affinities between rows: self-tuned from the distances to their neighbours, or given by the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._validation import ParameterError, check_count
from otprop.geometry.neighbors import Neighbors
from otprop.geometry.scaling import narrow_indices

SCALE_NEIGHBOR = 7
MAX_EXPONENT = 500.0  # no affinity is below exp(-500), so that a row far from all others stays connected


def self_tuned_weights(
    neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
) -> sp.csr_array:
    """Affinities w_ij = exp(-d_ij^2 / (s_i s_j)) between neighbours, with s_i from `local_scales`.

    Parameters
    ----------
    neighbors : Neighbors of every row
    k : int or None, how many of them to use (None: all)
    scale_neighbor : int, the neighbour whose distance is the scale, or the last one if there are fewer

    Returns
    -------
    csr_array of shape (n_rows, n_rows), symmetric (the larger of w_ij and w_ji), with a diagonal of 0
    """
    near = neighbors if k is None else neighbors.first(k)
    n_rows = len(near.indices)
    scales = local_scales(near, scale_neighbor)
    exponents = np.minimum(scaled_squares(near.distances, scales[:, None], scales[near.indices]), MAX_EXPONENT)
    directed = csr_from_neighbors(np.exp(-exponents), near.indices, n_rows)
    return sorted_csr(directed.maximum(directed.T))


def local_scales(neighbors: Neighbors, scale_neighbor: int = SCALE_NEIGHBOR) -> np.ndarray:
    """The distance from each row to its `scale_neighbor`-th neighbour, replaced where it is 0.

    The replacement is the smallest positive distance of the row or, if it has none, the smallest scale of all rows.
    """
    check_count("scale_neighbor", scale_neighbor)
    distances = neighbors.distances
    if not distances.shape[1]:
        return np.ones(len(distances))
    scales = distances[:, min(scale_neighbor, distances.shape[1]) - 1].copy()
    zero = scales == 0
    scales[zero] = np.min(distances[zero], axis=1, initial=np.inf, where=distances[zero] > 0)
    scales[np.isinf(scales)] = np.min(scales, initial=np.inf)
    return np.where(np.isinf(scales), 1.0, scales)


def check_affinity(affinity: Any, name: str = "affinity") -> tuple[sp.csr_array, bool]:
    """Validate affinities; returns them as a symmetric matrix with a diagonal of 0, and whether they were symmetric.

    Where w_ij and w_ji differ, the larger is used. `name` is the parameter that errors refer to.
    """
    matrix = sp.csr_array(affinity, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError(name, f"must be a square matrix with one row and one column per row; got {matrix.shape}.")
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ParameterError(name, "holds an infinite or missing affinity; all must be finite.")
    if (matrix.data < 0).any():
        raise ParameterError(name, f"holds the negative affinity {matrix.data.min()}; all must be 0 or more.")
    matrix.data[matrix.indices == np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))] = 0.0
    matrix.eliminate_zeros()
    both = sorted_csr(matrix.maximum(sp.csr_array(matrix.T)))
    largest = matrix.data.max(initial=0.0) or 1.0
    symmetric = (both.data / largest).sum() <= (1 + 1e-9) * (matrix.data / largest).sum()
    return both, bool(symmetric)


def csr_from_neighbors(values: np.ndarray, indices: np.ndarray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with `values` at the columns `indices` of each row."""
    n_rows, k = indices.shape
    starts = np.arange(n_rows + 1) * k
    return sp.csr_array((values.ravel(), indices.ravel(), starts), shape=(n_rows, n_columns))


def sorted_csr(matrix: Any) -> sp.csr_array:
    """The matrix with sorted int32 indices, for faster products."""
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    return narrow_indices(matrix)


def scaled_squares(distances: np.ndarray, row_scales: np.ndarray, neighbor_scales: np.ndarray) -> np.ndarray:
    """d_ij^2 / (s_i s_j), computed so that d_ij^2 cannot overflow."""
    with np.errstate(over="ignore"):
        return (distances / row_scales) * (distances / neighbor_scales)
