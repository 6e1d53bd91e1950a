"""From lines to tables: means over the splits, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.benchmark.methods import METHODS
from otprop.benchmark.paper import printed

Line = dict[str, Any]
TITLES = {"nmi": "NMI", "ari": "ARI", "accuracy": "accuracy"}
NOT_RUN = "not run"
WHERE_TITLES = {"unlabelled": "on the unlabelled rows", "all": "on all rows"}
TIE = 5e-5  # two means that print alike are alike


@dataclass(frozen=True)
class Entry:
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
class Table:
    """Means of one score.

    Attributes
    ----------
    score, where : str
    methods : tuple of str, the columns
    cells : tuple of (str, float), the rows: data set and percentage
    entries : dict of (dataset, percent, method) to Entry
    averages : dict of method to (ours, paper or None), over all rows in which it was run
    """

    score: str
    where: str
    methods: tuple[str, ...]
    cells: tuple[tuple[str, float], ...]
    entries: dict[tuple[str, float, str], Entry]
    averages: dict[str, tuple[float, float | None]]

    @property
    def title(self) -> str:
        """What the table holds, in words."""
        return f"{TITLES[self.score]} {WHERE_TITLES[self.where]}"

    def mean_text(self, method: str) -> str:
        """A method's mean over the rows, with their number where it was not run in all of them.

        Parameters
        ----------
        method : str

        Returns
        -------
        str
        """
        n_cells = sum(key[2] == method for key in self.entries)
        return f"{self.averages[method][0]:.4f}" + (f" ({n_cells} cells)" if n_cells < len(self.cells) else "")

    @property
    def notes(self) -> list[str]:
        """What was thinned, method by method."""
        found: dict[tuple[str, str], list[str]] = {}
        for (dataset, _, method), entry in self.entries.items():
            if entry.thinned:
                names = found.setdefault((method, entry.thinned), [])
                if dataset not in names:
                    names.append(dataset)
        return [f"{METHODS[method].title} on {', '.join(names)}: {what}" for (method, what), names in found.items()]


def make_table(lines: Sequence[Line], score: str, where: str = "unlabelled") -> Table:
    """The means of a score for every data set, percentage and method.

    Parameters
    ----------
    lines : sequence of dict, of one way of tuning and of drawing labels
    score : {"nmi", "ari", "accuracy"}
    where : {"unlabelled", "all"}

    Returns
    -------
    Table
    """
    methods = tuple(dict.fromkeys(line["method"] for line in lines))
    cells = tuple(dict.fromkeys((line["dataset"], line["percent"]) for line in lines))
    groups: dict[tuple[str, float, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["dataset"], line["percent"], line["method"]), []).append(line)
    column = f"{score}_{where}"
    means = {key: float(np.mean([line[column] for line in group])) for key, group in groups.items()}
    tops: dict[tuple[str, float], float] = {}
    for (dataset, percent, _), mean in means.items():
        tops[dataset, percent] = max(mean, tops.get((dataset, percent), -np.inf))
    entries = {}
    for key, group in groups.items():
        dataset, percent, method = key
        paper = printed(score, dataset, percent, METHODS[method].paper) if score in ("nmi", "ari") else None
        spread = float(np.std([line[column] for line in group]))
        is_best = means[key] >= tops[dataset, percent] - TIE
        entries[key] = Entry(means[key], spread, paper, is_best, group[0]["thinned"], len(group))
    averages = {method: _average([e for key, e in entries.items() if key[2] == method]) for method in methods}
    return Table(score, where, methods, cells, entries, averages)


def _average(entries: list[Entry]) -> tuple[float, float | None]:
    papers = [entry.paper for entry in entries if entry.paper is not None]
    paper = float(np.mean(papers)) if papers and len(papers) == len(entries) else None
    return float(np.mean([entry.ours for entry in entries])), paper


def mean_seconds(lines: Sequence[Line]) -> dict[str, float]:
    """The mean time of a labelling, method by method.

    Parameters
    ----------
    lines : sequence of dict

    Returns
    -------
    dict of str to float
    """
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(line["method"], []).append(line["seconds"])
    return {method: float(np.mean(values)) for method, values in found.items()}
