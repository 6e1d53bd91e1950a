"""The results of the paper's experiment as docs/reproduction.md needs them, and how figures are written there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common import PAPER_DATASETS, PERCENTAGES
from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.output import read_csv
from otprop_paper.benchmark.paper import published_score
from otprop_paper.benchmark.tables import make_table

DATASETS = PAPER_DATASETS
PERCENTS = tuple(map(float, PERCENTAGES))
CELLS = [(dataset, percent) for dataset in DATASETS for percent in PERCENTS]
TUNINGS = ("honest", "oracle")
SCORES = ("nmi", "ari")
WHERE = ("unlabelled", "all")
SEALS = re.compile("# (code|data|complete|accepted): ")  # of tools/results.py, for programs

Means = dict[tuple[str, str, str, str, float, str], float]  # tuning, score, where, data set, percentage, method


@dataclass(frozen=True)
class Results:
    """What was read.

    Attributes
    ----------
    means : dict, the mean over the splits of every cell that was run
    thinned : set of (str, str, float, str), tuning, data set, percentage and method of the cells that were thinned
    notes : list of str, what thinning was
    origins : dict of tuning to list of str, the heads of the files
    """

    means: Means
    thinned: set[tuple[str, str, float, str]]
    notes: list[str]
    origins: dict[str, list[str]]

    def get(
        self, tuning: str, score: str, dataset: str, percent: float, method: str, where: str = "unlabelled"
    ) -> float:
        """The mean of a cell, NaN where it was not run."""
        return self.means.get((tuning, score, where, dataset, percent, method), np.nan)

    def gaps(self, tuning: str, method: str, where: str = "unlabelled") -> np.ndarray:
        """Ours minus the paper's in all cells and both scores, NaN where not run."""
        return np.array(
            [
                self.get(tuning, score, *at, method, where) - paper(score, *at, method)
                for score in SCORES
                for at in CELLS
            ]
        )


def paper(score: str, dataset: str, percent: float, method: str) -> float:
    """What the paper prints for the column that a method answers to, NaN where it has none."""
    return in_paper(score, dataset, percent, METHODS[method].paper)


def in_paper(score: str, dataset: str, percent: float, column: str | None) -> float:
    """A figure of the paper's tables, NaN where they have none."""
    value = published_score(score, dataset, percent, column)
    return np.nan if value is None else value


def read(folder: Path) -> Results:
    """The results in a folder; a file that is not there is a way of tuning that was not run."""
    means: Means = {}
    thinned: set[tuple[str, str, float, str]] = set()
    notes: dict[str, None] = {}
    origins = {}
    for tuning in TUNINGS:
        path = folder / f"stratified-{tuning}.csv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8") as file:
            origins[tuning] = [line[2:].strip() for line in file if line.startswith("# ") and not SEALS.match(line)]
        lines = [line for line in read_csv(path) if (line["dataset"], line["percent"]) in CELLS]
        for score in SCORES:
            for where in WHERE:
                table = make_table(lines, score, where)
                notes |= dict.fromkeys(table.notes)
                for (dataset, percent, method), entry in table.entries.items():
                    means[tuning, score, where, dataset, percent, method] = entry.ours
                    if entry.thinned:
                        thinned.add((tuning, dataset, percent, method))
    return Results(means, thinned, list(notes), origins)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column to the left, the others to the right."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float, form: str = ".4f", absent: str = "not run") -> str:
    """A figure, or what stands for one that is not there."""
    return absent if np.isnan(value) else format(value, form)


def share(count: int, total: int) -> str:
    """So many of so many."""
    return f"{count} of {total}" if total else "not run"


def mean(values: Iterable[float]) -> float:
    """The mean of those that are there, NaN where none is."""
    there = [value for value in values if not np.isnan(value)]
    return float(np.mean(there)) if there else np.nan


def title(method: str) -> str:
    """A method's name in the text."""
    return "OTP()" if method == "otp" else METHODS[method].title


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
