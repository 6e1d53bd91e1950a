"""The page of a job: which rows it draws and shows, and what it says of the file."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from otprop.labelling.job import Job
from otprop.labelling.outcome import Outcome
from otprop.labelling.review import rows_to_review
from otprop.report.label_template import labelled_page, map_rows, rows_to_draw

MOST_CELLS = 12  # columns shown of a row
N_REVIEW = 20
_PACKAGES = ("otprop", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "skrub")


def make_page(job: Job, outcome: Outcome, *, command: str, how: str = "pca") -> str:
    """The page as HTML.

    Parameters
    ----------
    job : Job, that has run
    outcome : Outcome, what it found
    command : str, what repeats it
    how : {"pca", "umap"}, how the rows are placed on the map

    Returns
    -------
    str
    """
    table, given = job.table, outcome.given
    review = rows_to_review(outcome, job.vectors, N_REVIEW)
    drawn = rows_to_draw(given, review, seed=job.request.seed)
    shown = _shown(job)
    facts = {
        "file": table.origin,
        "format": table.kind,
        "rows": f"{table.n_rows}",
        "columns": f"{len(table.names)}",
        "target": outcome.target,
        "labels given": f"{int(given.sum())}, in {len(outcome.classes)} classes",
    }
    return labelled_page(
        outcome,
        points=map_rows(job.vectors, drawn, how, job.request.seed),
        drawn=drawn,
        hover=_cells(job, shown, drawn),
        review=review,
        review_cells=_cells(job, shown, np.asarray(review, dtype=np.intp)),
        uses=job.columns,
        facts=facts,
        notes=job.notes,
        command=command,
        versions={"Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        how=how,
    )


def _shown(job: Job) -> list[str]:
    """The columns that tell a person which row it is: what was left out as an identifier first, then what was used."""
    uses = {use.name: use for use in job.features.columns}
    names = [name for name in job.table.names if name != job.request.target]
    telling = [name for name in names if name in uses and uses[name].is_identifier]
    used = [name for name in names if name in uses and not uses[name].left_out]
    return list(dict.fromkeys([*telling, *used]))[:MOST_CELLS]


def _cells(job: Job, names: Sequence[str], rows: np.ndarray) -> dict[str, list[Any]]:
    """These columns of these rows as the file has them."""
    return {name: ["" if cell is None else cell for cell in job.table.cells(name)[rows]] for name in names}
