"""Affinities between rows: from the distances to their neighbours, each in its own scale, or as they are given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._validation import check_count
from otprop.geometry.neighbors import Neighbors

SCALE_NEIGHBOR = 7
FARTHEST = 500.0  # no affinity is below exp(-500), so that a row far from all others still hears of its neighbours


def self_tuned_weights(
    neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
) -> sp.csr_array:
    """Affinities w_ij = exp(-d_ij^2 / (s_i s_j)) between neighbours, s_i the distance to a near neighbour of row i.

    Parameters
    ----------
    neighbors : Neighbors of every row
    k : int or None, how many of them count (None: all)
    scale_neighbor : int, the neighbour whose distance is the scale, the last where there are fewer

    Returns
    -------
    csr_array of shape (n_rows, n_rows), symmetric (the larger of w_ij and w_ji), with nothing on the diagonal
    """
    near = neighbors if k is None else neighbors.first(k)
    n_rows = len(near.indices)
    scales = local_scales(near, scale_neighbor)
    exponents = np.minimum(scaled_squares(near.distances, scales[:, None], scales[near.indices]), FARTHEST)
    directed = matrix_of(np.exp(-exponents), near.indices, n_rows)
    return narrow(directed.maximum(directed.T))


def local_scales(neighbors: Neighbors, scale_neighbor: int = SCALE_NEIGHBOR) -> np.ndarray:
    """The distance to the `scale_neighbor`-th neighbour of each row, never 0.

    Where that is 0 it is the first distance of the row that is not; if all are, the smallest scale of another row.
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


def check_affinity(affinity: Any, name: str = "affinity", stacklevel: int = 3) -> sp.csr_array:
    """Affinities as a symmetric sparse matrix without a diagonal; refused unless square, finite and not negative.

    Of w_ij and w_ji the larger is taken, with a warning where they differ.

    Parameters
    ----------
    affinity : sparse or dense matrix
    name : str, what messages call it
    stacklevel : int, how many calls up the warning points

    Returns
    -------
    csr_array, a copy
    """
    matrix = sp.csr_array(affinity, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, a line and a column for every row; got {matrix.shape}.")
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} holds an infinite or missing affinity; all must be finite.")
    if (matrix.data < 0).any():
        raise ValueError(f"{name} holds the negative affinity {matrix.data.min()}; all must be 0 or more.")
    matrix.data[matrix.indices == np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))] = 0.0
    matrix.eliminate_zeros()
    turned = sp.csr_array(matrix.T)
    both = narrow(matrix.maximum(turned))
    largest = matrix.data.max(initial=0.0) or 1.0
    if (both.data / largest).sum() > (1 + 1e-9) * (matrix.data / largest).sum():
        warnings.warn(
            f"{name} is not symmetric: the larger of w_ij and w_ji is used.", UserWarning, stacklevel=stacklevel
        )
    return both


def matrix_of(values: np.ndarray, columns: np.ndarray, n_columns: int) -> sp.csr_array:
    """A sparse matrix from the values of each line and their columns."""
    n_lines, k = columns.shape
    starts = np.arange(n_lines + 1) * k
    return sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_lines, n_columns))


def narrow(matrix: Any) -> sp.csr_array:
    """The matrix with small index types and sorted lines, for faster products."""
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    if max(matrix.nnz, *matrix.shape) < 2**31:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def scaled_squares(distances: np.ndarray, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """d^2 / (s_i s_j), without squaring anything that could overflow."""
    with np.errstate(over="ignore"):
        return (distances / own) * (distances / others)
