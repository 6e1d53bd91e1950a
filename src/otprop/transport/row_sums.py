"""Sums over all rows, wherever these are: all that the transport from classes to rows needs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

# With few classes, what is computed from a block of rows stays in the processor's cache, and its products are too small
# to be split over threads, which on a busy machine wait for each other. With more they are split: in few large blocks.
FEW_CLASSES = 48
BLOCK_BYTES, LARGE_BLOCK_BYTES = 2**17, 2**23
BLOCK_PRODUCT = 2**18
TINY = 1e-300
RowFunction = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


class RowSums(Protocol):
    """Sums over all rows, wherever these are."""

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        """Apply `function` to the logits (rows by classes) and the masses of each part of the rows, add up the results.

        The function can be pickled, takes parts of any size, none at all included, and what it returns does not grow
        with them.
        """
        ...


class LocalRows:
    """Rows in memory, summed over in blocks of a bounded size."""

    def __init__(self, logits: np.ndarray, masses: np.ndarray) -> None:
        self._logits, self._masses = logits, masses
        n_classes = logits.shape[1]
        if n_classes <= FEW_CLASSES:
            self._lines = min(BLOCK_BYTES // (8 * n_classes), BLOCK_PRODUCT // n_classes**2, 2**13)
        else:
            self._lines = max(LARGE_BLOCK_BYTES // (8 * n_classes), 1)

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        total: tuple[np.ndarray, ...] = ()
        for start in range(0, max(len(self._logits), 1), self._lines):
            block = slice(start, start + self._lines)
            part = function(self._logits[block], self._masses[block])
            if not total:
                total = tuple(np.zeros_like(piece) for piece in part)
            for whole, piece in zip(total, part, strict=True):
                whole += piece
        return total


def plan_sums(
    logits: np.ndarray, masses: np.ndarray, h: np.ndarray, scale: float, overlap: bool
) -> tuple[np.ndarray, ...]:
    """``sum_j b_j log sum_k exp(h_k + scale L_jk)``, ``m_k = sum_j b_j p_jk`` and ``sum_j b_j p_jk p_jl``.

    Rows that no class reaches count for nothing.
    """
    x = np.empty(logits.shape[::-1])  # classes by rows: sums over classes are then sums of long stretches
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
    """The mass of the rows that a class in use reaches, and of those that each class reaches."""
    if logits.min(initial=0.0) > -np.inf:
        total = masses.sum()
        return np.array(total), np.full(len(used), total)
    reached = logits > -np.inf
    return np.array(masses[reached[:, used].any(axis=1)].sum()), masses @ reached


def spread_sums(logits: np.ndarray, masses: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """The sum over the rows of the range of their finite logits."""
    finite = (logits > -np.inf) & used
    top = logits.max(axis=1, where=finite, initial=-np.inf).astype(np.float64)
    low = logits.min(axis=1, where=finite, initial=np.inf)
    return (np.array(masses @ np.clip(top - low, 0.0, 1.0 / TINY)),)


def first_reached(logits: np.ndarray, masses: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mass of the rows by the first class, in this order, that reaches them."""
    reached = logits[:, order] > -np.inf
    first = reached.argmax(axis=1)
    return (np.bincount(first, weights=masses * reached.any(axis=1), minlength=len(order)),)
