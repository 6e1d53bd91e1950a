"""Why a row got its label: the class probabilities of each source, and the nearest labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from otprop.labelling.job import Job
from otprop.labelling.methods import is_class_level
from otprop.labelling.outcome import Outcome

N_NEAREST = 5
MAX_LABELLED = 50_000  # of more labelled rows none is compared


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
