"""Details of single rows on the page: rows like no labelled class, and votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from otprop.labelling.job import Job
from otprop.labelling.outcome import Outcome

MIN_NOVELTY = 0.95  # fewer than one in twenty rows of a labelled class are so unlike it
N_NOVEL = 20


@dataclass(frozen=True)
class NovelRows:
    """Rows that look like no labelled class.

    Attributes
    ----------
    share, low, high : float, estimated share of such rows among those without a given label, and its 90 % interval
    rows : list of int, the strangest first
    """

    share: float
    low: float
    high: float
    rows: list[int] = field(default_factory=list)


def novel_rows(job: Job, outcome: Outcome, shown: Collection[int]) -> NovelRows | None:
    """The rows to look at, without those that are shown already; None where no new class is expected."""
    share = float(getattr(job.estimator, "novel_share_", 0.0))
    if outcome.novelty is None or share <= 0:
        return None
    low, high = job.estimator.novel_range_
    rows = np.flatnonzero(~outcome.given & (outcome.novelty >= MIN_NOVELTY))
    rows = rows[np.lexsort((rows, outcome.sureness[rows], -outcome.novelty[rows]))]
    known = set(shown)
    return NovelRows(share, float(low), float(high), [int(row) for row in rows if int(row) not in known][:N_NOVEL])


def vote_sentences(job: Job, rows: Iterable[int]) -> dict[int, str]:
    """The votes on some rows, by row: "3 of 4 say Elstar, 1 says Gala"; empty without votes."""
    if job.votes is None:
        return {}
    return {row: _sentence(job.votes.iloc[row].dropna().astype(int).tolist(), job.target.classes) for row in rows}


def _sentence(codes: list[int], classes: list[str]) -> str:
    if not codes:
        return "no voter says anything"
    counts = Counter(codes).most_common()
    words = [f"{n} {'says' if n == 1 else 'say'} {classes[code]}" for code, n in counts]
    return ", ".join([words[0].replace(" ", f" of {len(codes)} ", 1), *words[1:]])
