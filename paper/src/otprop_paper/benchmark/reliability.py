"""Calibration of a method's confidence: a summary of every cell, pooled over the splits for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop_paper.benchmark.tables import ResultRow

N_BINS = 15  # of equal mass
SHARES = tuple(number / 20 for number in range(1, 21))  # of the unlabelled rows, the most confident first


def summarise(confidence: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Summary of the confidence in a cell, for JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.benchmark.reliability import summarise
    >>> summarise(np.array([0.5, 0.5, 1.0, 1.0]), np.array([False, True, True, False]))["ece"]
    0.5
    """
    order = np.argsort(confidence, kind="stable")
    stated, correct = confidence[order].astype(np.float64), right[order].astype(np.float64)
    parts = [part for part in np.array_split(np.arange(len(order)), N_BINS) if len(part)]
    bins = [(float(stated[part].mean()), float(correct[part].mean()), len(part)) for part in parts]
    wrong, expected = (np.cumsum(1.0 - values[::-1]) for values in (correct, stated))
    sizes = [max(1, round(share * len(order))) for share in SHARES]
    return {
        "bins": [[round(mean, 6), round(share, 6), size] for mean, share, size in bins],
        "risk": [[round(float(one[size - 1] / size), 6) for one in (wrong, expected)] for size in sizes],
        "ece": sum(size * abs(mean - share) for mean, share, size in bins) / len(order),
    }


@dataclass(frozen=True)
class Reliability:
    """The confidence of a method on a data set at one percentage, over the splits.

    Attributes
    ----------
    percent : float
    n_splits : int, number of splits with a confidence
    confidence, accuracy : tuple of float, of each bin, its rows in all splits taken together
    n_rows : tuple of int, of each bin
    risk, expected : tuple of float, share of wrong labels at each of `SHARES`, and the share expected by the confidence
    ece : float, mean calibration error of the splits
    """

    percent: float
    n_splits: int
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    n_rows: tuple[int, ...]
    risk: tuple[float, ...]
    expected: tuple[float, ...]
    ece: float


def reliabilities(rows: Sequence[ResultRow]) -> dict[tuple[str, str], list[Reliability]]:
    """The calibration by percentage, for each data set and method with a confidence."""
    groups: dict[tuple[str, str], dict[float, list[dict[str, Any]]]] = {}
    for row in rows:
        if row.get("reliability"):
            by_percent = groups.setdefault((row["dataset"], row["method"]), {})
            by_percent.setdefault(row["percent"], []).append(row["reliability"])
    return {
        key: [_pooled(percent, kept) for percent, kept in sorted(by_percent.items())]
        for key, by_percent in groups.items()
    }


def _pooled(percent: float, kept: list[dict[str, Any]]) -> Reliability:
    bins = np.array([summary["bins"] for summary in kept])  # one percentage: as many rows, so as many bins, in each
    sizes = bins[:, :, 2].sum(axis=0)
    confidence, accuracy = ((bins[:, :, column] * bins[:, :, 2]).sum(axis=0) / sizes for column in (0, 1))
    risk, expected = np.mean([summary["risk"] for summary in kept], axis=0).T
    return Reliability(
        percent,
        len(kept),
        tuple(confidence.tolist()),
        tuple(accuracy.tolist()),
        tuple(int(size) for size in sizes),
        tuple(risk.tolist()),
        tuple(expected.tolist()),
        float(np.mean([summary["ece"] for summary in kept])),
    )
