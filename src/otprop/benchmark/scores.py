"""The scores of the paper's section V.B: how alike two ways of grouping the same rows are."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np


def nmi(truth: Any, found: Any) -> float:
    """Normalised mutual information of two labellings.

    Twice the mutual information over the sum of both entropies, as the paper defines it: 1 where the two
    group the rows alike, 0 where one says nothing about the other. The names of the groups do not matter.

    Parameters
    ----------
    truth, found : array-like of shape (n_rows,)
        Labels of any type; all missing ones (None, NaN) are one group.

    Returns
    -------
    float
        1.0 where both put all rows into one group (the formula gives 0/0).

    Examples
    --------
    >>> from otprop.benchmark.scores import nmi
    >>> nmi([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    n, b, d = _contingency(truth, found)
    total = n.sum()
    denominator = _entropy_sum(b, total) + _entropy_sum(d, total)
    if denominator == 0:
        return 1.0
    i, j = np.nonzero(n)
    cells = n[i, j].astype(np.float64)
    shared = float(np.sum(cells * np.log(cells * total / (b[i] * d[j]))))
    return min(max(2 * shared / denominator, 0.0), 1.0)  # rounding may lead a hair outside


def ari(truth: Any, found: Any) -> float:
    """Adjusted Rand index of two labellings.

    The share of pairs of rows on which both agree, corrected for chance, as the paper defines it: 1 where the
    two group the rows alike, about 0 for a random labelling, below 0 for less than chance.

    Parameters
    ----------
    truth, found : array-like of shape (n_rows,)
        Labels of any type; all missing ones (None, NaN) are one group.

    Returns
    -------
    float
        1.0 where both are trivial in the same way (the formula gives 0/0).

    Examples
    --------
    >>> from otprop.benchmark.scores import ari
    >>> round(ari([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    n, b, d = _contingency(truth, found)
    both, in_found, in_truth = _pairs(n), _pairs(b), _pairs(d)
    pairs = comb(int(n.sum()), 2)
    if pairs == 0:
        return 1.0
    # Python's integers: the products pass 2^63 at a few hundred thousand rows. All terms times 2 * pairs.
    chance = 2 * in_found * in_truth
    denominator = (in_found + in_truth) * pairs - chance
    return (2 * both * pairs - chance) / denominator if denominator else 1.0


def accuracy(truth: Any, found: Any) -> float:
    """Share of rows whose label is the true one.

    Parameters
    ----------
    truth, found : array-like of shape (n_rows,)
        Labels of any type; a missing one (None, NaN) is never right.

    Returns
    -------
    float

    Examples
    --------
    >>> from otprop.benchmark.scores import accuracy
    >>> accuracy(["a", "b", "b", "a"], ["a", "b", "a", None])
    0.5
    """
    left, right = _columns(truth, found)
    return sum(a == b and a is not None for a, b in zip(left, right, strict=True)) / len(left)


def _contingency(truth: Any, found: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n_ij = rows in found group i and true group j, and its sums b_i and d_j."""
    columns = _columns(truth, found)
    true_codes, found_codes = (_numbered(column) for column in columns)
    n_true, n_found = true_codes.max() + 1, found_codes.max() + 1
    n = np.bincount(found_codes * n_true + true_codes, minlength=n_found * n_true).reshape(n_found, n_true)
    return n, n.sum(axis=1), n.sum(axis=0)


def _columns(truth: Any, found: Any) -> tuple[list[Any], list[Any]]:
    columns = _column(truth, "truth"), _column(found, "found")
    if len(columns[0]) != len(columns[1]):
        raise ValueError(
            f"truth and found must label the same rows, got {len(columns[0])} and {len(columns[1])} labels."
        )
    return columns


def _column(labels: Any, argument: str) -> list[Any]:
    """Python values, None for every missing one."""
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not isinstance(values, list) or any(isinstance(value, (list, np.ndarray)) for value in values[:1]):
        raise ValueError(f"{argument} must be one label per row, got an array of shape {np.shape(labels)}.")
    if not values:
        raise ValueError(f"{argument} is empty: there is nothing to score.")
    return [None if _is_missing(value) else value for value in values]


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _numbered(values: list[Any]) -> np.ndarray:
    numbers: dict[Any, int] = {}
    return np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.intp, len(values))


def _entropy_sum(sizes: np.ndarray, total: int) -> float:
    return float(-np.sum(sizes * np.log(sizes / total)))


def _pairs(sizes: np.ndarray) -> int:
    return sum(comb(int(size), 2) for size in sizes.ravel())
