"""The table that the studio opens and the votes in it: how they are read, in the server and in the worker alike."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from otprop._validation import is_missing
from otprop._votes import Voter, Votes, judge_voters
from otprop.files import Table, TableError
from otprop.labelling.job import Job, Request, prepare
from otprop.labelling.votes import hard_votes, read_votes, vote_cells
from otprop.table.errors import ColumnError, RequestError
from otprop.table.frame import table_of_frame, take_rows
from otprop.table.opening import open_table
from otprop.table.target import ClassNames, Target, holds_no_label

MAX_ROWS = 2_000_000  # of more, a sample is opened
BYTES_A_ROW = 4_000  # of memory, server and worker together, without the class probabilities
SAMPLE_OFFERED = 200_000
MAX_CLASSES = 1_000  # of the target and the votes
SILENT = -1  # a voter without a vote on a row


@dataclass(frozen=True)
class Source:
    """A file and how to read it; sent to the worker as it is."""

    path: str
    request: Request  # the target and the columns
    reading: Mapping[str, Any] = field(default_factory=dict)  # arguments of `open_table`
    sample: int | None = None  # how many rows drawn at random are opened; None for all

    @property
    def folder(self) -> Path:
        """The folder of the file, or the folder itself, below which its pictures are."""
        path = Path(self.path).resolve()
        return path if path.is_dir() else path.parent


def read_source(source: Source) -> Table:
    """Read the table, or a sample of its rows in the order of the file."""
    table = open_table(source.path, target=source.request.target, **source.reading)
    if source.sample is None or source.sample >= table.n_rows:
        return table
    rows = np.random.default_rng(source.request.seed).choice(table.n_rows, source.sample, replace=False)
    sampled = table_of_frame(take_rows(table.frame(), np.sort(rows).tolist()).reset_index(drop=True))
    sampled.origin, sampled.folder = table.origin, table.folder or source.folder
    whole = {name: array for name, array in table.arrays.items() if array.shape[:1] == (table.n_rows,)}
    sampled.arrays = {name: array[np.sort(rows)] for name, array in whole.items()}
    sampled.digest = f"{table.digest}-{source.request.seed}-{source.sample}"
    sampled.notes += [*table.notes, f"a sample of {source.sample} of the {table.n_rows} rows is open"]
    return sampled


def prepare_source(source: Source, table: Table) -> Job:
    """Check the target and the columns; there may be no label, no target, or a label in every row.

    Votes are not part of the job, since its classes change; `read_row_votes` reads them.
    """
    check_size(table, 2)  # at least, before much is done with it
    votes = vote_cells(source.request.votes, table, source.request.target)  # not features
    request = replace(source.request, votes=(), ignore=[*source.request.ignore, *votes.columns])
    job = prepare(table, request, allow_few=True, allow_complete=True)
    job.groups = groups_of_their_own(job, table)
    if len(job.target.classes) > MAX_CLASSES:
        raise ColumnError(
            source.request.target,
            f"the target {source.request.target!r} has {len(job.target.classes)} classes; the studio takes up to "
            f"{MAX_CLASSES}. Is it an identifier? Name another column, or put the classes into groups first.",
        )
    check_size(table, max(len(job.target.classes), 2))
    return job


def groups_of_their_own(job: Job, table: Table) -> np.ndarray | None:
    """The groups; a row without one is its own group, since it may be labelled later."""
    if job.groups is None or not isinstance(job.request.groups, str):
        return job.groups
    missing = [row for row, cell in enumerate(table.cells(job.request.groups)) if is_missing(cell)]
    groups = job.groups.copy()
    groups[missing] = [f"row {row + 1}, in no group" for row in missing]
    return groups


def check_size(table: Table, n_classes: int, memory: float | None = None) -> None:
    """Refuse a table that needs more memory than there is, and offer a sample."""
    need = table.n_rows * (BYTES_A_ROW + 3 * 8 * n_classes)
    memory = _memory() if memory is None else memory
    if table.n_rows <= MAX_ROWS and need <= memory:
        return
    limit = f"takes up to {MAX_ROWS}" if table.n_rows > MAX_ROWS else f"has {memory / 1e9:.0f} GB here"
    raise TableError(
        f"{table.origin} has {table.n_rows} rows, for which the studio needs about {need / 1e9:.0f} GB of memory; it "
        f"{limit}",
        "open a sample with {}, export the model, and label all rows with `otprop predict`",
        file=table.origin,
        arguments=[("sample", SAMPLE_OFFERED)],
    )


def _memory() -> float:
    """The memory of this machine in bytes; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def with_kept_options(source: Source, session: Path, names: Sequence[str]) -> tuple[Source, list[str]]:
    """The source with the options that the session has and the request has not, and notes on them.

    Columns that the table no longer has are skipped.
    """
    kept, notes = _read_options(session), []
    more: dict[str, Any] = {}
    for option in ("groups", "votes"):
        columns = kept.get(option, [])
        if getattr(source.request, option) or not columns:
            continue
        here = [name for name in columns if name in names and name != source.request.target]
        if gone := [name for name in columns if name not in here]:
            notes.append(f"{option}: the session has {', '.join(gone)}, which is not a column any more")
        if here:
            more[option] = here[0] if option == "groups" else here
            notes.append(f"{option}: {', '.join(here)}, as the last time with this session")
    return replace(source, request=replace(source.request, **more)), notes


def _read_options(session: Path) -> dict[str, list[str]]:
    """The columns by option; none where the file is not a session, which is said when it is opened."""
    if not session.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{session.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            found = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('groups', 'votes')").fetchall())
        votes = json.loads(found.get("votes", "[]"))
    except (sqlite3.Error, ValueError, RecursionError):
        return {}
    groups = found.get("groups")
    if not isinstance(votes, list) or not all(isinstance(name, str) for name in votes):
        return {}
    return {"groups": [groups] if isinstance(groups, str) else [], "votes": votes}


@dataclass(frozen=True)
class RowVotes:
    """Votes by row and voter, including votes for classes without a label."""

    voters: list[str]
    classes: list[str]  # those of the target and all others that somebody votes for
    codes: np.ndarray  # of shape (n_rows, n_voters), numbers of `classes`, SILENT where a voter is silent

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
