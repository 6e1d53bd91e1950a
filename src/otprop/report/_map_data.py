"""What the script of the page needs to draw the map and play the rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from otprop.labelling.outcome import Outcome
from otprop.report._looks import RAMP, clean

CELLS, LENGTH = 12, 80  # of a row, at most
BUDGET = 6_000_000  # bytes of cells; beyond, they are shorter or fewer
GRID = 10_000


def map_data(
    outcome: Outcome,
    points: np.ndarray,
    drawn: np.ndarray,
    hover: Mapping[str, Sequence[object]],
    looks: list[tuple[str, str]],
    review: Sequence[int],
) -> dict[str, Any]:
    """The drawn rows, column by column.

    Parameters
    ----------
    outcome : Outcome
    points : ndarray of shape (n_drawn, 2)
    drawn : ndarray of int of shape (n_drawn,), row numbers
    hover : mapping of a column's name to the cells of the drawn rows
    looks : list of (color, shape), of the classes
    review : sequence of int, row numbers

    Returns
    -------
    dict
    """
    first, second = leaders(outcome.distributions[drawn])
    lines = np.arange(len(drawn))
    shares = outcome.distributions[drawn]
    x, y = _on_grid(points)
    names, cells = _cells(hover)
    where = {int(row): place for place, row in enumerate(drawn)}
    return {
        "classes": [clean(name) for name in outcome.classes],
        "looks": looks,
        "ramp": RAMP,
        "low": scales(outcome),
        "grid": GRID,
        "row": (drawn + 1).tolist(),
        "x": x.tolist(),
        "y": y.tolist(),
        "code": outcome.codes[drawn].tolist(),
        "first": first.tolist(),
        "second": second.tolist(),
        "p1": _rounded(shares[lines, first]),
        "p2": _rounded(shares[lines, second]),
        "given": outcome.given[drawn].astype(int).tolist(),
        "round": outcome.round[drawn].tolist(),
        "certainty": _rounded(outcome.certainty[drawn]),
        "confidence": None if outcome.confidence is None else _rounded(outcome.confidence[drawn]),
        "total": len(outcome.codes),
        "rounds": rows_by_round(outcome),
        "names": names,
        "cells": cells,
        "review": [where[row] for row in review if row in where],
    }


def leaders(distributions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of every row, and its runner-up.

    Parameters
    ----------
    distributions : ndarray of shape (n_rows, n_classes)

    Returns
    -------
    first, second : ndarray of int; the same where there is one class only
    """
    first = distributions.argmax(axis=1)
    if distributions.shape[1] < 2:
        return first, first
    rest = distributions.copy()
    rest[np.arange(len(rest)), first] = -1.0
    return first, rest.argmax(axis=1)


def scales(outcome: Outcome) -> dict[str, float]:
    """Where the scale of colours starts, for what rows can be coloured by: at the tenth under the least sure row.

    Parameters
    ----------
    outcome : Outcome

    Returns
    -------
    dict of "certainty" and, where there is one, "confidence" to float
    """
    shown = {"certainty": outcome.certainty}
    if outcome.confidence is not None:
        shown["confidence"] = outcome.confidence
    least = {name: float(values[~outcome.given].min(initial=1.0)) for name, values in shown.items()}
    return {name: round(min(0.8, max(0.0, np.floor(low * 10) / 10)), 1) for name, low in least.items()}


def rows_by_round(outcome: Outcome) -> list[int]:
    """How many rows of the file were labelled in each round; round 0 are the given ones.

    Parameters
    ----------
    outcome : Outcome

    Returns
    -------
    list of int
    """
    labelled = outcome.round[~outcome.abstained]
    return np.bincount(labelled, minlength=outcome.n_rounds + 1).tolist()


def _on_grid(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """OutputPaths as whole numbers; both axes on one scale, the picture in the middle."""
    points = np.nan_to_num(np.asarray(points, dtype=np.float64))
    low, high = points.min(axis=0, initial=np.inf), points.max(axis=0, initial=-np.inf)
    span = float((high - low).max(initial=0.0)) or 1.0
    placed = 0.5 + (points - (low + high) / 2) / span
    whole = np.rint(placed * GRID).astype(int)
    return whole[:, 0], GRID - whole[:, 1]


def _rounded(values: np.ndarray) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def _cells(hover: Mapping[str, Sequence[object]]) -> tuple[list[str], list[list[str]]]:
    """The first columns, cut so that the page stays small enough to open."""
    most, length = min(CELLS, len(hover)), LENGTH
    names = [clean(name, 60) for name in list(hover)[:most]]
    cells = [[clean(cell, length) for cell in column] for column in list(hover.values())[:most]]
    while len(json.dumps(cells, ensure_ascii=False).encode()) > BUDGET:
        if length > 20:
            length //= 2
            cells = [[clean(cell, length) for cell in column] for column in cells]
        else:
            most -= 1
            names, cells = names[:most], cells[:most]
    return names, cells
