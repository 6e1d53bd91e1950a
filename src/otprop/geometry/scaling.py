"""Magnitudes and inner products of rows, and scaling that keeps squares from overflowing or underflowing."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as


def as_float_rows(X: Any) -> Any:
    """`X` as a C-contiguous float64 array, or as a float64 CSR array if it is sparse."""
    return sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def narrow_indices(matrix: Any) -> Any:
    """A sparse CSR matrix with int32 indices where they fit, as scikit-learn's compiled code needs; else unchanged."""
    if not sp.issparse(matrix) or {matrix.indices.dtype, matrix.indptr.dtype} == {np.dtype(np.int32)}:
        return matrix
    if max(matrix.nnz, *matrix.shape) < 2**31:
        matrix = type(matrix)(matrix)  # shares the values, not the indices
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def sorted_csr(matrix: Any) -> sp.csr_array:
    """The matrix with sorted int32 indices, for faster products."""
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    return narrow_indices(matrix)


def row_dots(rows: Any, others: Any = None) -> np.ndarray:
    """The inner product of each row with the same row of `others`, or with itself."""
    others = rows if others is None else others
    return np.asarray(rows.multiply(others).sum(axis=1)) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, others)


def max_abs(rows: Any) -> float:
    """The largest absolute value, without a copy of the rows."""
    return max(float(rows.max()), -float(rows.min()))


def row_max_abs(rows: Any) -> np.ndarray:
    """The largest absolute value of each row."""
    if sp.issparse(rows):
        return abs(rows).max(axis=1).toarray().ravel()
    return np.maximum(rows.max(axis=1), -rows.min(axis=1))


def power_of_two(size: float) -> float:
    """The power of two at or above `size`; 1 for 0."""
    if size == 0:
        return 1.0
    exponent = int(np.clip(np.frexp(size)[1], -1021, 1023))
    return float(np.ldexp(1.0, exponent))


def multiply_clipped(values: Any, unit: float) -> Any:
    """``values * unit``, with the largest float where that overflows."""
    if unit == 1.0:
        return values
    with np.errstate(over="ignore"):
        return np.minimum(np.multiply(values, unit), np.finfo(float).max)


@saved_as("geometry.unit_rows")
class UnitRows:
    """Scales rows to length one. If the training rows contain rows of zeros, these get their own direction."""

    def __init__(self, X: Any) -> None:
        self._has_zeros = bool((row_max_abs(X) == 0).any())

    def __call__(self, rows: Any) -> Any:
        largest = row_max_abs(rows)
        zero = largest == 0
        factors = np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1021, 1023))  # squares must not overflow
        lengths = np.sqrt(row_dots(_scale_rows(rows, factors)))
        rows = _scale_rows(_scale_rows(rows, factors), 1.0 / np.where(zero, 1.0, lengths))
        if not self._has_zeros:
            return rows
        extra = zero.astype(np.float64)[:, None]
        return sp.csr_array(sp.hstack([rows, extra])) if sp.issparse(rows) else np.hstack([rows, extra])


def _scale_rows(rows: Any, factors: np.ndarray) -> Any:
    return sp.csr_array(sp.diags_array(factors) @ rows) if sp.issparse(rows) else rows * factors[:, None]
