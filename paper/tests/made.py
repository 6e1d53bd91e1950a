"""Data and results that the tests make."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop_paper.datasets import Dataset


def hide(y, share, seed=0):
    """`y` with -1 in place of most labels; every class keeps at least one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(len(y)) >= share
    for label in np.unique(y):
        hidden[rng.choice(np.flatnonzero(y == label))] = False
    return np.where(hidden, -1, y)


def blobs(n_per_class: tuple[int, ...], seed: int = 0, name: str = "blobs") -> Dataset:
    """Gaussian clouds on a line, a little mixed."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(n_per_class)), n_per_class)
    X = rng.normal(size=(len(y), 2)) + 2.5 * np.column_stack([y, y % 2])
    return Dataset(name, X, y, tuple(map(str, range(len(n_per_class)))), None, "drawn")


def line(dataset: str, method: str, percent: float, split: int, value: float, **more: Any) -> dict[str, Any]:
    """A row of results with this value for every score."""
    found = {f"{score}_{where}": value for score in ("nmi", "ari", "accuracy") for where in ("unlabelled", "all")}
    rest = {"labels": "stratified", "tuning": "honest", "n_rows": 150, "n_labelled": 7, "params": {}}
    rest |= {"chosen_by": "nothing to choose", "hidden_score": float("nan"), "n_candidates": 1, "thinned": ""}
    rest |= {"ece": float("nan"), "seconds": 0.1, "version": "0.1.0", "code": "c", "data": "d"}
    return {"dataset": dataset, "method": method, "percent": percent, "split": split, **found, **rest, **more}
