"""Which rows of a table to look at: those to label next, those to review first, and why a row got its label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from otprop._progress import ProgressCallback, no_progress
from otprop._validation import check_count, check_number
from otprop.geometry.diffusion import local_scales
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.row_matching import row_keys
from otprop.labelling.corrections import DIGEST, LABEL, REASON, ROW, has_index, index_name
from otprop.labelling.job import Job, Request
from otprop.labelling.methods import is_class_level
from otprop.labelling.outcome import Outcome
from otprop.loop.labels_needed import LabelsNeeded
from otprop.loop.suggestions import Suggestion, suggest_rows
from otprop.table.errors import RequestError
from otprop.table.frame import take_rows, with_columns

N_NEIGHBORS = 10  # that decide how typical a row is
OWN_COLUMNS = (ROW, REASON, DIGEST)
POOL = 400  # how many of the least certain different rows are compared with each other
N_NEAREST = 5
MAX_LABELLED = 50_000  # of more labelled rows none is compared


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
        seed=(len(candidates), job.request.seed),
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
    found: LabelsNeeded = job.calibrated.labels_needed(error, job.earlier)
    return found


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


def rows_to_review(outcome: Outcome, X: Any, n: int = 20) -> list[int]:
    """Rows to review, in order; fewer than `n` where fewer differ.

    The first is the least certain; each next one has the greatest product of doubt and distance to those chosen, among
    the least certain different rows. Distances are cut off at the median, so that an outlier is not preferred to a
    doubtful row.
    """
    check_count("n", n, least=0)
    candidates = np.flatnonzero(~outcome.given)
    if n < 1 or len(candidates) == 0:
        return []
    sure = np.asarray(outcome.sureness, dtype=np.float64)[candidates]
    pool = candidates[_least_certain_different(X, candidates, sure, max(n, min(POOL, 15 * n)))]
    doubt = 1.0 - outcome.sureness[pool]
    doubt = np.maximum(doubt, 1e-9)  # where all are certain, distance alone decides
    distances = _distances(X[pool])
    chosen = [0]
    nearest = distances[0].copy()
    while len(chosen) < min(n, len(pool)):
        score = doubt * nearest
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return [int(row) for row in pool[chosen]]


def _least_certain_different(X: Any, candidates: np.ndarray, sure: np.ndarray, size: int) -> np.ndarray:
    """Up to `size` numbers of candidates, the least certain first, no two with the same features."""
    asked = 4 * size
    while True:
        order = _least(sure, asked)
        kept: dict[bytes, int] = {}
        for number, key in zip(order, row_keys(X[candidates[order]]), strict=True):
            kept.setdefault(key, int(number))
        if len(kept) >= size or len(order) == len(sure):
            different = np.array(list(kept.values()))
            return different[_least(sure[different], size)]
        asked *= 8


def _least(values: np.ndarray, size: int) -> np.ndarray:
    """Numbers of the `size` smallest values in order; ties at the end are taken evenly from all rows."""
    if size >= len(values):
        return np.argsort(values, kind="stable")
    limit = np.partition(values, size - 1)[size - 1]
    below = np.flatnonzero(values < limit)
    ties = np.flatnonzero(values == limit)
    ties = ties[np.linspace(0, len(ties) - 1, size - len(below)).astype(int)]
    return np.concatenate([below[np.argsort(values[below], kind="stable")], ties])


def _distances(rows: Any) -> np.ndarray:
    """Distances between all rows, in medians, cut off at one."""
    rows = rows.astype(np.float64)
    largest = abs(rows).max()
    distances = pairwise_distances(rows / largest if largest > 0 else rows)
    typical = np.median(distances[np.triu_indices(len(distances), 1)]) if len(distances) > 1 else 0.0
    return np.minimum(distances / typical, 1.0) if typical > 0 else distances


def explain_rows(job: Job, outcome: Outcome, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Explanations of rows of a job that has run, as `Outcome.explanations` has them."""
    if not rows:
        return {}
    by_source: dict[str, np.ndarray] = {}
    if is_class_level(job.estimator):
        by_source = job.estimator.explain(job.vectors[list(rows)], rows)
    nearest = _nearest(job, outcome, rows)
    return {
        row: {
            "sources": {
                name: dict(zip(outcome.classes, shares[place].tolist(), strict=True))
                for name, shares in by_source.items()
            },
            "nearest": nearest[place],
        }
        for place, row in enumerate(rows)
    }


def _nearest(job: Job, outcome: Outcome, rows: Sequence[int]) -> list[list[tuple[int, str, float]]]:
    """For each row the nearest labelled rows, with their label and distance."""
    labelled = np.flatnonzero(outcome.given)
    if not 0 < len(labelled) <= MAX_LABELLED:
        return [[] for _ in rows]
    metric = getattr(job.estimator, "metric", "euclidean")
    metric = "euclidean" if metric == "inner" else metric
    distances = pairwise_distances(job.vectors[list(rows)], job.vectors[labelled], metric=metric)
    order = np.argsort(distances, axis=1, kind="stable")[:, :N_NEAREST]
    return [
        [(int(labelled[j]), outcome.classes[outcome.codes[labelled[j]]], float(far[j])) for j in near]
        for near, far in zip(order, distances, strict=True)
    ]
