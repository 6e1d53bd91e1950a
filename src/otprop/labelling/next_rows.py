"""Which rows of a table to label next, as a table to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from otprop._progress import ProgressCallback, no_progress
from otprop._validation import check_count, check_number
from otprop.geometry.diffusion import local_scales
from otprop.geometry.neighbors import NeighborIndex
from otprop.labelling.corrections import DIGEST, LABEL, REASON, ROW, has_index, index_name
from otprop.labelling.job import Job, Request
from otprop.labelling.methods import is_class_level
from otprop.loop.labels_needed import LabelsNeeded
from otprop.loop.suggestions import Suggestion, suggest_rows
from otprop.table.errors import RequestError
from otprop.table.frame import take_rows, with_columns

N_NEIGHBORS = 10  # that decide how typical a row is
OWN_COLUMNS = (ROW, REASON, DIGEST)


def suggest_next(
    job: Job, n: int = 20, *, random_share: float = 0.2, progress: ProgressCallback = no_progress
) -> list[Suggestion]:
    """Rows to label next; a job with two classes or more is run where it has not been.

    With fewer classes, typical rows of different regions; else uncertain and typical ones.
    """
    check_count("n", n)
    check_number("random_share", random_share, least=0, most=1)
    candidates = np.flatnonzero(~job.target.given)
    if len(candidates) == 0:
        raise RequestError("target", f"has a label in every row of {job.table.origin}: there is no row to suggest.")
    distributions = None
    if len(job.target.classes) > 1:
        if job.vectors is None:
            job.run(progress)
        check_is_fitted(job.estimator)
        if is_class_level(job.estimator):
            return list(job.estimator.suggest(n, random_share=random_share))
        distributions = job.estimator.label_distributions_
    vectors = job.make_vectors(progress)
    progress(0, 0, "looking for typical rows")
    return suggest_rows(
        vectors,
        candidates,
        n,
        distributions=distributions,
        labeled=np.flatnonzero(job.target.given),
        typicality=typicality(vectors, job.request),
        random_share=random_share,
        seed=job.request.seed + len(candidates),
    )


def typicality(vectors: Any, request: Request) -> np.ndarray | None:
    """Larger in dense regions: minus the distance to a near neighbour."""
    k = min(N_NEIGHBORS, vectors.shape[0] - 1)
    if k < 1:
        return None
    neighbors = NeighborIndex(vectors, request.metric or "euclidean", n_jobs=request.jobs).graph(k)
    return -local_scales(neighbors)


def needed_for(job: Job, error: float) -> LabelsNeeded:
    """How many more labels to an error of the unlabelled rows, of a job that was run."""
    if not is_class_level(job.estimator):
        raise RequestError("method", f"{job.request.method!r} does not estimate its error.")
    return job.estimator.labels_needed(error, job.earlier)


def rows_to_fill_in(job: Job, suggestions: Sequence[Suggestion], *, numbered: bool = True) -> Any:
    """A DataFrame of the suggested rows with an empty target to fill in, in the shape that corrections have.

    Columns `reason`, the target, the other columns of its frame or else the cells of the table as they are in the file,
    and `file_digest`. Rows are `numbered` from 1 in a column `row`, or else named by the index: that of the frame, or
    counted from 0.
    """
    rows, frame = [one.row for one in suggestions], job.frame
    target = label_name(job)
    there = job.table.names if frame is None else list(frame.columns)  # the vectors of cells are not in their frame
    names = [name for name in there if str(name) not in (*OWN_COLUMNS, job.request.target)]
    if frame is None:
        import pandas as pd  # optional, and slow to import

        cells = {name: pd.Series(job.table.cells(name)[rows], index=rows, dtype=object) for name in names}
        data: Any = pd.DataFrame(cells, index=rows, columns=names)
    else:
        data = take_rows(frame, rows)
    named = index_name(frame, job.table)
    counted = numbered or (has_index(frame) and not frame.index.is_unique)
    first = {ROW: np.array(rows) + 1} if counted else {} if has_index(data) else {named: np.array(rows)}
    own = {
        **first,
        REASON: np.array([one.reason for one in suggestions], dtype=object),
        target: np.full(len(rows), None, dtype=object),
        DIGEST: np.full(len(rows), job.table.digest, dtype=object),
    }
    found = with_columns(data, own)[[*first, REASON, target, *names, DIGEST]]
    if numbered:
        return found.reset_index(drop=True)
    return found.rename_axis(index=named) if has_index(data) and not counted else found


def label_name(job: Job) -> str:
    """The column of `rows_to_fill_in` that the labels go into."""
    return job.request.target if job.request.target not in OWN_COLUMNS else LABEL


def best_classes(job: Job, row: int) -> list[tuple[str, float]]:
    """The two most probable classes of a row with their probabilities; empty where there was no fit."""
    distributions = getattr(job.estimator, "label_distributions_", None)
    if distributions is None:
        return []
    best = np.argsort(-distributions[row], kind="stable")[:2]
    return [(job.target.classes[code], float(distributions[row, code])) for code in best]
