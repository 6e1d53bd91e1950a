"""Votes in the studio: the votes on each row, including votes for classes without a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from otprop._votes import Voter, Votes, judge_voters
from otprop.files import Table
from otprop.labelling.job import Request
from otprop.labelling.votes import hard_votes, read_votes, vote_cells
from otprop.table.errors import RequestError
from otprop.table.target import ClassNames, Target, holds_no_label

SILENT = -1
MAX_CLASSES = 1_000  # of the target and the votes


@dataclass(frozen=True)
class RowVotes:
    """Votes by row and voter.

    Attributes
    ----------
    voters : list of str
    classes : list of str, those of the target and all others that somebody votes for
    codes : ndarray of int of shape (n_rows, n_voters), numbers of `classes`, SILENT where a voter is silent
    """

    voters: list[str]
    classes: list[str]
    codes: np.ndarray

    def of_row(self, row: int) -> list[tuple[str, str | None]]:
        """Each voter and the class it votes for; None where it is silent."""
        return [
            (voter, None if code == SILENT else self.classes[code])
            for voter, code in zip(self.voters, self.codes[row].tolist(), strict=True)
        ]

    def frame(self, names: Sequence[str]) -> pd.DataFrame | None:
        """The votes by the numbers of `names`, NaN where a voter is silent or means another class; None if all are.

        A voter without any such vote is skipped.
        """
        place = {name: number for number, name in enumerate(names)}
        numbers = np.array([*(place.get(name, np.nan) for name in self.classes), np.nan])
        found = pd.DataFrame(numbers[self.codes], columns=self.voters).dropna(axis=1, how="all")
        return None if found.empty else found

    def judged(self, names: Sequence[str], labels: np.ndarray) -> list[Voter]:
        """How often each voter agrees with labels, numbers of `names` and -1 for none; votes for any class count."""
        classes = [*self.classes, *(name for name in names if name not in self.classes)]
        numbers = np.array([*(classes.index(name) for name in names), SILENT])
        found = judge_voters(Votes(self.codes, self.voters), numbers[labels], np.array(classes, dtype=object))
        return [replace(one, by_class={}) for one in found]

    @property
    def voted(self) -> list[str]:
        """The classes that somebody votes for."""
        return [self.classes[code] for code in np.unique(self.codes[self.codes != SILENT])]


def vote_columns(request: Request, table: Table) -> list[str]:
    """The columns of votes, which are not features; raises RequestError where one cannot be."""
    return vote_cells(request.votes, table, request.target).columns


def read_row_votes(request: Request, table: Table, target: Target) -> RowVotes | None:
    """The votes that the request names; None without."""
    cells = vote_cells(request.votes, table, request.target)
    if not cells:
        return None
    classes = list(target.classes)
    folded = {_folded(name) for name in classes}
    texts = dict.fromkeys(
        str(cell) for column in cells.labels.values() for cell in column if not holds_no_label(cell, request.unlabeled)
    )
    texts |= dict.fromkeys(text for columns in cells.probabilities.values() for text in columns)
    matched = ClassNames(classes)
    for text in texts:
        if _folded(text) not in folded and matched.matching(text) is None:
            classes.append(text)
            folded.add(_folded(text))
            matched = ClassNames(classes)
        if len(classes) > MAX_CLASSES:
            raise RequestError(
                "votes", f"name more than {MAX_CLASSES} classes; votes are labels, one per row and voter."
            )
    known = Target(target.name, target.codes, classes, list(classes), target.given, [])
    found: Any = hard_votes(read_votes(cells, known, request.unlabeled))
    return RowVotes(list(found.columns), classes, found.fillna(SILENT).to_numpy(dtype=np.int64))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
