"""The scores of the paper's section V.B: agreement of two labellings of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score


def nmi(truth: Any, found: Any) -> float:
    """Normalised mutual information, 2 I / (H + H) as in the paper; missing labels (None, NaN) are one group.

    Examples
    --------
    >>> from otprop_paper.benchmark.scores import nmi
    >>> nmi([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    value = normalized_mutual_info_score(*map(_numbered, _columns(truth, found)), average_method="arithmetic")
    return min(float(value), 1.0)  # rounding may exceed 1


def ari(truth: Any, found: Any) -> float:
    """Adjusted Rand index; missing labels (None, NaN) are one group.

    Examples
    --------
    >>> from otprop_paper.benchmark.scores import ari
    >>> round(ari([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return float(adjusted_rand_score(*map(_numbered, _columns(truth, found))))


def accuracy(truth: Any, found: Any) -> float:
    """Share of rows whose label is the true one; a missing label (None, NaN) is never right.

    Examples
    --------
    >>> from otprop_paper.benchmark.scores import accuracy
    >>> accuracy(["a", "b", "b", "a"], ["a", "b", "a", None])
    0.5
    """
    left, right = _columns(truth, found)
    return sum(a == b and a is not None for a, b in zip(left, right, strict=True)) / len(left)


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
