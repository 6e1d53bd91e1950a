"""The table that the studio opens: how it is read, in the server and in the worker alike."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files import Table, TableError
from otprop.labelling.job import Job, Request, prepare
from otprop.studio.row_votes import MAX_CLASSES, vote_columns
from otprop.table.columns import is_missing
from otprop.table.errors import ColumnError
from otprop.table.frame import table_of_frame, take_rows
from otprop.table.opening import open_table

MAX_ROWS = 2_000_000  # of more, a sample is opened
BYTES_A_ROW = 4_000  # of memory, server and worker together, without the class probabilities
SAMPLE_OFFERED = 200_000


@dataclass(frozen=True)
class Source:
    """A file and how to read it; sent to the worker as it is.

    Attributes
    ----------
    path : str
    request : Request, the target and the columns
    reading : mapping, arguments of `read_table`
    sample : int or None, how many rows drawn at random are opened; None for all
    """

    path: str
    request: Request
    reading: Mapping[str, Any] = field(default_factory=dict)
    sample: int | None = None

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
    request = replace(source.request, votes=(), ignore=[*source.request.ignore, *vote_columns(source.request, table)])
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
