"""The map of the rows: which rows are drawn, where, and the data that the script draws from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD

from otprop._errors import install_command
from otprop._validation import ParameterError
from otprop.labelling.outcome import Outcome
from otprop.report.charts import RAMP, ClassMarker
from otprop.report.page import display_text

MAX_DRAWN = 20_000
MAX_LABELLED_DRAWN = 5_000
MAX_COLUMNS, MAX_CELL_LENGTH = 12, 1000
CELLS_BUDGET = 6_000_000  # bytes of cells on the page; above it, cells are cut shorter or columns dropped
GRID = 10_000  # coordinates on the page are integers from 0 to this


def rows_to_draw(
    given: np.ndarray,
    always: Sequence[int] = (),
    n: int = MAX_DRAWN,
    n_given: int = MAX_LABELLED_DRAWN,
    seed: int = 0,
) -> np.ndarray:
    """Sorted numbers of at most `n` rows: labelled rows (at most `n_given`), `always`, and a sample of the others."""
    if len(given) <= n:
        return np.arange(len(given))
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(given)
    if len(labelled) > n_given:
        labelled = rng.choice(labelled, n_given, replace=False)
    first = np.union1d(labelled, np.asarray(always, dtype=np.intp))
    rest = np.setdiff1d(np.flatnonzero(~given), first, assume_unique=True)
    sample = rng.choice(rest, min(len(rest), max(0, n - len(first))), replace=False)
    return np.sort(np.concatenate([first, sample]))


def map_rows(X: Any, drawn: np.ndarray, how: str = "pca", seed: int = 0) -> np.ndarray:
    """Coordinates of the rows `drawn` in two dimensions, by "pca" or "umap"."""
    rows = X[drawn]
    if how == "umap":
        return _umap(rows, seed)
    if how != "pca":
        raise ParameterError("map", f"is {how!r}; the map of the rows is made by 'pca' or 'umap'.")
    if min(rows.shape) < 2:
        found = (rows.toarray() if issparse(rows) else np.asarray(rows))[:, :1]
    else:
        reduction = TruncatedSVD(2, random_state=seed) if issparse(rows) else PCA(2, random_state=seed)
        with np.errstate(invalid="ignore", divide="ignore"):  # explained variance ratios of constant rows, unused here
            found = reduction.fit_transform(rows)
    points = np.zeros((rows.shape[0], 2))
    points[:, : found.shape[1]] = found
    return points


def _umap(rows: Any, seed: int) -> np.ndarray:
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError(f"a map of the rows by UMAP needs umap-learn: {install_command('umap')}") from error
    n_rows = rows.shape[0]
    if n_rows < 4:
        return np.column_stack([np.arange(n_rows, dtype=np.float64), np.zeros(n_rows)])
    init = "spectral" if n_rows > 10 else "random"
    reduction = UMAP(n_neighbors=min(15, n_rows - 1), init=init, random_state=seed, n_jobs=1)
    return np.asarray(reduction.fit_transform(rows), dtype=np.float64)


def map_data(
    outcome: Outcome,
    points: np.ndarray,
    drawn: np.ndarray,
    cells: Mapping[str, Sequence[object]],
    markers: list[ClassMarker],
) -> dict[str, Any]:
    """What the script of the page needs, as JSON has it; `cells` are those of the drawn rows by column."""
    shares = outcome.distributions[drawn]
    first, second = top_two_classes(shares)
    rows = np.arange(len(drawn))
    x, y = _grid_coordinates(points)
    names, texts = _cell_texts(cells)
    return {
        "classes": [display_text(name) for name in outcome.classes],
        "markers": markers,
        "ramp": RAMP,
        "low": color_scales(outcome),
        "row": (drawn + 1).tolist(),
        "x": x.tolist(),
        "y": y.tolist(),
        "code": outcome.codes[drawn].tolist(),
        "first": first.tolist(),
        "second": second.tolist(),
        "p1": _rounded(shares[rows, first]),
        "p2": _rounded(shares[rows, second]),
        "given": outcome.given[drawn].astype(int).tolist(),
        "round": outcome.round[drawn].tolist(),
        "certainty": _rounded(outcome.certainty[drawn]),
        "confidence": None if outcome.confidence is None else _rounded(outcome.confidence[drawn]),
        "total": len(outcome.codes),
        "rounds": np.bincount(outcome.round[~outcome.abstained], minlength=outcome.n_rounds + 1).tolist(),
        "names": names,
        "cells": texts,
    }


def top_two_classes(distributions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the most and the second most probable class of every row; the same where there is one class."""
    first = distributions.argmax(axis=1)
    if distributions.shape[1] < 2:
        return first, first
    rest = distributions.copy()
    rest[np.arange(len(rest)), first] = -1.0
    return first, rest.argmax(axis=1)


def color_scales(outcome: Outcome) -> dict[str, float]:
    """Where the colour scale of certainty, and of confidence where there is one, starts; it ends at 1."""
    shown = {"certainty": outcome.certainty}
    if outcome.confidence is not None:
        shown["confidence"] = outcome.confidence
    lowest = {name: float(values[~outcome.given].min(initial=1.0)) for name, values in shown.items()}
    return {name: round(min(0.8, max(0.0, np.floor(low * 10) / 10)), 1) for name, low in lowest.items()}


def _grid_coordinates(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates as integers, both axes on one scale, centred, y downwards."""
    points = np.nan_to_num(np.asarray(points, dtype=np.float64))
    low, high = points.min(axis=0, initial=np.inf), points.max(axis=0, initial=-np.inf)
    span = float((high - low).max(initial=0.0)) or 1.0
    scaled = np.rint((0.5 + (points - (low + high) / 2) / span) * GRID).astype(int)
    return scaled[:, 0], GRID - scaled[:, 1]


def _rounded(values: np.ndarray) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def _cell_texts(cells: Mapping[str, Sequence[object]]) -> tuple[list[str], list[list[str]]]:
    """The first columns as text, cut so that they fit in the budget."""
    length = MAX_CELL_LENGTH
    names = [display_text(name, 60) for name in cells][:MAX_COLUMNS]
    texts = [[display_text(cell, length) for cell in column] for column in list(cells.values())[:MAX_COLUMNS]]
    while sum(len(cell.encode()) + 3 for column in texts for cell in column) > CELLS_BUDGET:
        if length > 20:
            length //= 2
            texts = [[display_text(cell, length) for cell in column] for column in texts]
        else:
            names, texts = names[:-1], texts[:-1]
    return names, texts
