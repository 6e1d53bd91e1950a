"""Sums over all rows: the only access to the rows that class-level transport needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from otprop.geometry.parallel import row_blocks

# With few classes, blocks fit in the processor's cache and their products are too small to be split over BLAS threads.
# With many classes, products are split over threads: in few large blocks.
FEW_CLASSES = 48
BLOCK_BYTES, LARGE_BLOCK_BYTES = 2**17, 2**23
BLOCK_PRODUCT = 2**18
TINY = 1e-300
RowFunction = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


class RowSums(Protocol):
    """Sums of functions of the rows, which may be in memory or distributed."""

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        """Add up ``function(logits, masses)`` over blocks of rows; logits have shape (n_rows, n_classes).

        The function can be pickled, accepts blocks of any size including 0, and returns arrays of fixed shape.
        """
        ...


class LocalRows:
    """Rows in memory, summed over in blocks of bounded size."""

    def __init__(self, logits: np.ndarray, masses: np.ndarray) -> None:
        self._logits, self._masses = logits, masses
        n_classes = logits.shape[1]
        if n_classes <= FEW_CLASSES:
            rows_per_block = min(BLOCK_BYTES // (8 * n_classes), BLOCK_PRODUCT // n_classes**2, 2**13)
        else:
            rows_per_block = max(LARGE_BLOCK_BYTES // (8 * n_classes), 1)
        self._blocks = row_blocks(len(logits), rows_per_block) or [slice(0)]

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        total: tuple[np.ndarray, ...] = ()
        for block in self._blocks:
            terms = function(self._logits[block], self._masses[block])
            if not total:
                total = tuple(np.zeros_like(term) for term in terms)
            for whole, term in zip(total, terms, strict=True):
                whole += term
        return total


def plan_sums(
    logits: np.ndarray, masses: np.ndarray, h: np.ndarray, scale: float, overlap: bool
) -> tuple[np.ndarray, ...]:
    """``sum_j b_j log sum_k exp(h_k + scale L_jk)``, ``m_k = sum_j b_j p_jk`` and ``sum_j b_j p_jk p_jl``.

    Rows that no class reaches contribute nothing.
    """
    x = np.empty(logits.shape[::-1])  # classes by rows: sums over classes then add contiguous arrays
    if scale == 1.0:
        np.add(logits.T, h[:, None], out=x)
    else:
        np.multiply(logits.T, scale, out=x, dtype=np.float64)
        x += h[:, None]
    top = x.max(axis=0)
    top[top == -np.inf] = 0.0
    x -= top
    np.exp(x, out=x)
    total = x.sum(axis=0)
    total[total == 0] = 1.0
    value = np.array(masses @ (top + np.log(total)))
    masses = masses / total
    m = x @ masses
    if not overlap:
        return value, m
    masses /= total
    x *= np.sqrt(masses, out=masses)
    return value, m, x @ x.T


def reach_sums(logits: np.ndarray, masses: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mass of the rows that a used class reaches, and of the rows that each class reaches."""
    if logits.min(initial=0.0) > -np.inf:
        total = masses.sum()
        return np.array(total), np.full(len(used), total)
    reached = logits > -np.inf
    return np.array(masses[reached[:, used].any(axis=1)].sum()), masses @ reached


def spread_sums(logits: np.ndarray, masses: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """The range of the finite logits of each row, summed over the rows."""
    finite = (logits > -np.inf) & used
    top = logits.max(axis=1, where=finite, initial=-np.inf).astype(np.float64)
    low = logits.min(axis=1, where=finite, initial=np.inf)
    return (np.array(masses @ np.clip(top - low, 0.0, 1.0 / TINY)),)


def first_reached(logits: np.ndarray, masses: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mass of the rows by the first class in `order` that reaches them."""
    reached = logits[:, order] > -np.inf
    first = reached.argmax(axis=1)
    return (np.bincount(first, weights=masses * reached.any(axis=1), minlength=len(order)),)
