"""Tables of mean scores over the splits, with the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.paper import published_score

ResultRow = dict[str, Any]
TITLES = {"nmi": "NMI", "ari": "ARI", "accuracy": "accuracy"}
NOT_RUN = "not run"
WHERE_TITLES = {"unlabelled": "on the unlabelled rows", "all": "on all rows"}
TIE = 5e-5  # means that are equal as printed


@dataclass(frozen=True)
class ScoreEntry:
    """A method's mean in one cell of a table.

    Attributes
    ----------
    ours : float, mean over the splits
    spread : float, their standard deviation
    paper : float or None
    best : bool, no method of the run has a better mean here
    thinned : str, what was left out; empty where nothing was
    n_splits : int
    """

    ours: float
    spread: float
    paper: float | None
    best: bool
    thinned: str
    n_splits: int

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class ScoreTable:
    """Means of one score.

    Attributes
    ----------
    score, where : str
    methods : tuple of str, the columns
    cells : tuple of (str, float), the rows: data set and percentage
    entries : dict of (dataset, percent, method) to ScoreEntry
    averages : dict of method to (ours, paper or None), over the cells in which it was run
    """

    score: str
    where: str
    methods: tuple[str, ...]
    cells: tuple[tuple[str, float], ...]
    entries: dict[tuple[str, float, str], ScoreEntry]
    averages: dict[str, tuple[float, float | None]]

    @property
    def title(self) -> str:
        """The score and the rows it is taken on."""
        return f"{TITLES[self.score]} {WHERE_TITLES[self.where]}"

    def mean_text(self, method: str) -> str:
        """A method's mean over the cells, with their number where it was not run in all of them."""
        n_cells = sum(key[2] == method for key in self.entries)
        return f"{self.averages[method][0]:.4f}" + (f" ({n_cells} cells)" if n_cells < len(self.cells) else "")

    @property
    def notes(self) -> list[str]:
        """What was thinned for each method."""
        found: dict[tuple[str, str], list[str]] = {}
        for (dataset, _, method), entry in self.entries.items():
            if entry.thinned:
                names = found.setdefault((method, entry.thinned), [])
                if dataset not in names:
                    names.append(dataset)
        return [f"{METHODS[method].title} on {', '.join(names)}: {what}" for (method, what), names in found.items()]


def make_table(rows: Sequence[ResultRow], score: str, where: str = "unlabelled") -> ScoreTable:
    """The means of a score for every data set, percentage and method."""
    methods = tuple(dict.fromkeys(row["method"] for row in rows))
    cells = tuple(dict.fromkeys((row["dataset"], row["percent"]) for row in rows))
    groups: dict[tuple[str, float, str], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["percent"], row["method"]), []).append(row)
    column = f"{score}_{where}"
    means = {key: float(np.mean([row[column] for row in group])) for key, group in groups.items()}
    tops: dict[tuple[str, float], float] = {}
    for (dataset, percent, _), mean in means.items():
        tops[dataset, percent] = max(mean, tops.get((dataset, percent), -np.inf))
    entries = {}
    for key, group in groups.items():
        dataset, percent, method = key
        paper = published_score(score, dataset, percent, METHODS[method].paper) if score in ("nmi", "ari") else None
        spread = float(np.std([row[column] for row in group]))
        is_best = means[key] >= tops[dataset, percent] - TIE
        entries[key] = ScoreEntry(means[key], spread, paper, is_best, group[0]["thinned"], len(group))
    averages = {method: _average([e for key, e in entries.items() if key[2] == method]) for method in methods}
    return ScoreTable(score, where, methods, cells, entries, averages)


def _average(entries: list[ScoreEntry]) -> tuple[float, float | None]:
    papers = [entry.paper for entry in entries if entry.paper is not None]
    paper = float(np.mean(papers)) if papers and len(papers) == len(entries) else None
    return float(np.mean([entry.ours for entry in entries])), paper


def mean_seconds(rows: Sequence[ResultRow]) -> dict[str, float]:
    """Mean time of a labelling for each method."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row["seconds"])
    return {method: float(np.mean(values)) for method, values in found.items()}
