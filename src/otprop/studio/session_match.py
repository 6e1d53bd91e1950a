"""A session whose file has changed: which of the file's rows each recorded row is now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from otprop.studio.session_file import SessionError


class Rows(Protocol):
    """What a session needs to know about the table."""

    name: str  # of the file
    digest: str
    n_rows: int
    columns: list[str]

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        """A digest of the cells of each row."""


@dataclass(frozen=True)
class Said:
    """The state of one row, to be found again in a changed file."""

    row: int  # its number in the file that it was last in
    state: int
    drawn: bool
    mark: str  # skipped, kept or ""
    fingerprint: str
    columns: str  # that the fingerprint was made from, in JSON


@dataclass(frozen=True)
class FileBefore:
    """The file that a session was made for."""

    session: Path
    name: str
    digest: str
    columns: list[str]

    def match(self, said: Sequence[Said], labelled: np.ndarray, rows: Rows) -> tuple[np.ndarray, str]:
        """The row for each of `said`, -1 if there is not exactly one, and a note; `labelled`: which are labels.

        Raises SessionError where no label can be matched.
        """
        made_for = "" if self.name == rows.name else f"{self.session} was made for {self.name}: "
        gone = [name for name in self.columns if name not in rows.columns]
        if gone and labelled.any():
            raise self._lost_column(gone[0], rows.name, made_for)
        found = find_rows(said, rows)
        same_file = self.digest.partition("-")[0] == rows.digest.partition("-")[0]  # a sample adds to it
        fits = labelled & (found >= 0)
        n_labels, n_found = int(labelled.sum()), int(fits.sum())
        if n_labels and not n_found:
            rest = f"the sample of {rows.name} that is open now" if same_file else f"{rows.name}, which is another file"
            raise SessionError(
                f"{made_for}none of the {n_labels} labels of {self.session} is of a row of {rest}",
                "name another session with {}",
            )
        if made_for and not n_labels:
            return found, f"{made_for}no label was made there, and it is used for {rows.name} from now on"
        n_moved = int((fits & (found != [one.row for one in said])).sum())
        what = f"another sample of {rows.name} is open than" if same_file else f"{rows.name} has changed since"
        note = f"{made_for or f'{what} the last time: '}{n_found} of {n_labels} labels made here fit"
        note += f", {n_moved} of them in another row" if n_moved else ""
        n_lost = n_labels - n_found
        return found, note + (f"; kept for rows that are not in it now, or not once: {n_lost}" if n_lost else "")

    def _lost_column(self, column: str, name: str, made_for: str) -> SessionError:
        if made_for:
            return SessionError(f"{made_for}{name} has no column {column!r}", "name another session with {}")
        return SessionError(
            f"{name} has lost the column {column!r} since {self.session} was saved, so that its labels cannot be "
            "matched with the rows",
            "restore the column, or name another file with {}",
        )


def find_rows(said: Sequence[Said], rows: Rows) -> np.ndarray:
    """The row of the present file for each recorded row, by its cells; -1 if there is not exactly one."""
    places: dict[str, dict[str, list[int]]] = {}
    for columns in {one.columns for one in said}:
        names = json.loads(columns)
        known = set(names) <= set(rows.columns)
        places[columns] = {}
        for row, fingerprint in enumerate(rows.fingerprints(None, names) if known else []):
            places[columns].setdefault(fingerprint, []).append(row)
    taken: set[int] = set()
    found = []
    for one in said:
        same = places[one.columns].get(one.fingerprint, [])
        row = one.row if one.row in same else same[0] if len(same) == 1 else -1
        found.append(-1 if row in taken else row)
        taken.add(row)
    return np.array(found, dtype=np.int64)
