"""Mean ranks, Friedman's test and Nemenyi's critical difference (Demsar 2006)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from otprop_paper.benchmark.tables import ScoreTable


@dataclass(frozen=True)
class Ranks:
    """Mean ranks over the data sets and percentages in which every method has a result.

    Attributes
    ----------
    methods : tuple of str, the best first
    means : tuple of float, 1 is the best possible
    n_cells : int
    p_value : float, of Friedman's test that all methods are alike; NaN with fewer than three methods or two cells
    critical : float, mean ranks that differ by less are not significantly different at the 5 % level; NaN likewise
    """

    methods: tuple[str, ...]
    means: tuple[float, ...]
    n_cells: int
    p_value: float
    critical: float

    def groups(self) -> list[tuple[int, int]]:
        """Maximal ranges (first, last) of methods that do not differ significantly."""
        out: list[tuple[int, int]] = []
        if np.isnan(self.critical):
            return out
        for first, low in enumerate(self.means):
            last = max(i for i, mean in enumerate(self.means) if mean - low <= self.critical)
            if last > first and (not out or last > out[-1][1]):
                out.append((first, last))
        return out


def mean_ranks(table: ScoreTable) -> Ranks:
    """Rank the methods in every row of a table, ties sharing their ranks."""
    values = [
        [table.entries[dataset, percent, method].ours for method in table.methods]
        for dataset, percent in table.cells
        if all((dataset, percent, method) in table.entries for method in table.methods)
    ]
    scores = np.array(values).reshape(len(values), len(table.methods))
    ranks = stats.rankdata(-np.round(scores, 10), axis=1).mean(axis=0) if len(values) else np.ones(len(table.methods))
    order = np.argsort(ranks, kind="stable")
    p_value, critical = float("nan"), float("nan")
    if len(table.methods) >= 3 and len(values) >= 2:
        with np.errstate(invalid="ignore", divide="ignore"):
            p_value = float(stats.friedmanchisquare(*scores.T).pvalue)
        critical = critical_difference(len(table.methods), len(values))
    methods = tuple(table.methods[i] for i in order)
    return Ranks(methods, tuple(float(ranks[i]) for i in order), len(values), p_value, critical)


def critical_difference(n_methods: int, n_cells: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of two mean ranks.

    Examples
    --------
    >>> from otprop_paper.benchmark.ranks import critical_difference
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_cells)))
