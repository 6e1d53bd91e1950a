"""Small pictures of rows inside the page, which loads nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from otprop.labelling.job import Job
from otprop.table.row_pictures import NoPictureError, RowPictures, pictures_of_table

SIDE = 112  # pixels
MAX_PICTURES = 250
MAX_BYTES = 3_000_000  # of all pictures of a page


def job_pictures(job: Job) -> RowPictures:
    """The pictures of the rows of a job whose features are fitted: of its image column, or of an array."""
    table = job.table
    folder = table.folder or (Path() if table.path is None else table.path.parent)
    column = next((use.name for use in job.features.columns if use.role == "image"), None)
    cells = None if column is None else table.cells(column)
    return pictures_of_table(table, folder, column, lambda row: None if cells is None else cells[row])


def page_pictures(pictures: RowPictures, rows: Iterable[int]) -> dict[int, str]:
    """Addresses that hold the pictures of some rows, by row, the first ones until the page would get too large.

    A picture that cannot be shown is missing; the notes of the run name those that cannot be read.
    """
    found: dict[int, str] = {}
    left = MAX_BYTES
    for row in dict.fromkeys(rows):
        if not pictures.has(row) or len(found) >= MAX_PICTURES or left <= 0:
            continue
        try:
            data, kind = pictures.of_row(row, SIDE)
        except NoPictureError:
            continue
        if len(data) <= left:  # without Pillow a picture comes as it is
            found[row] = f"data:{kind};base64,{b64encode(data).decode()}"
            left -= len(data)
    return found
