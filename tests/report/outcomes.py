"""Outcomes to show: rows around a few centres, of which some carry a label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from otprop.labelling.next_rows import rows_to_review
from otprop.labelling.outcome import Outcome
from otprop.propagation.calibration import coverage_table
from otprop.propagation.error import ErrorEstimate
from otprop.report.label_page import render_label_page
from otprop.report.row_map import map_rows, rows_to_draw

USES = (
    SimpleNamespace(
        name="lot", role="skipped", skipped=True, why="identifier: a different value in every row", width=0
    ),
    SimpleNamespace(
        name="weight", role="number", skipped=False, why="3 % missing, filled by the median and flagged", width=2
    ),
)


def made_outcome(
    n_rows: int,
    classes: list[str],
    n_rounds: int = 4,
    confidence: bool = True,
    abstain_below: float = 0.0,
    n_given: int | None = None,
) -> tuple[Outcome, np.ndarray]:
    """An outcome and the features it could have come from."""
    rng = np.random.default_rng(0)
    n_classes = len(classes)
    centres = rng.normal(size=(n_classes, 4)) * 3
    true = rng.integers(0, n_classes, n_rows)
    X = centres[true] + rng.normal(size=(n_rows, 4))
    far = np.stack([((X - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    shares = np.exp(-(far - far.min(axis=1, keepdims=True)) / 3)
    shares /= shares.sum(axis=1, keepdims=True)
    given = np.zeros(n_rows, bool)
    given[rng.choice(n_rows, n_given if n_given is not None else max(n_classes, n_rows // 50), replace=False)] = True
    codes = np.where(given, true, shares.argmax(axis=1))
    shares[given] = np.eye(n_classes)[codes[given]]
    sure = shares.max(axis=1)
    done = 1 + np.argsort(np.argsort(-sure, kind="stable"), kind="stable") * n_rounds // n_rows  # the surest first
    error = ErrorEstimate(float(1 - sure[~given].mean()) if not given.all() else 0.0, 40.0, int((~given).sum()))
    outcome = Outcome(
        target="variety",
        classes=classes,
        codes=np.where(~given & (sure < abstain_below), -1, codes),
        given=given,
        distributions=shares,
        certainty=sure**2,
        confidence=sure if confidence else None,
        round=np.where(given, 0, done),
        n_rounds=n_rounds,
        n_held_out=40 if confidence else 0,
        error=error if confidence else None,
        coverage=coverage_table(sure[~given], error) if confidence else [],
        sources=[("diffusion", 0.77, 0.917), ("forest", 0.5, float("nan"))] if confidence else [],
        method="otp",
        params={"cost": "diffusion", "epsilon": "auto (used: 0.0123)"},
        seconds=1.5,
    )
    return outcome, X


def explained(outcome: Outcome) -> Outcome:
    """The outcome with an explanation of every row, and with a confusion of held-out labels."""
    classes, labelled = outcome.classes, np.flatnonzero(outcome.given)
    even = dict.fromkeys(classes, 1 / len(classes))
    nearest = [(int(row), classes[outcome.codes[row]], 0.5 + number) for number, row in enumerate(labelled[:3])]
    why = {
        row: {"sources": {"diffusion": dict(zip(classes, shares, strict=True)), "forest": even}, "nearest": nearest}
        for row, shares in enumerate(outcome.distributions.tolist())
    }
    confusion = 7 * np.eye(len(classes), dtype=int) + np.eye(len(classes), k=1, dtype=int)
    return replace(outcome, explanations=why, confusion=(confusion, classes))


def made_page(
    outcome: Outcome, X: np.ndarray, columns: dict[str, Callable[[int], object]] | None = None, **other: Any
) -> str:
    """The page of an outcome, with these columns in the file."""
    columns = columns or {"lot": lambda row: f"{row:05d}", "weight": lambda row: f"{X[row, 0]:.2f}"}
    review = rows_to_review(outcome, X)
    drawn = rows_to_draw(outcome.given, review)
    shown: dict[str, Any] = {
        "points": map_rows(X, drawn),
        "drawn": drawn,
        "cells": lambda rows: {name: [cell(int(row)) for row in rows] for name, cell in columns.items()},
        "review": review,
        "columns": USES,
        "facts": {"file": "orchard.csv", "rows": str(len(X))},
        "notes": ["a label with a single row: Cox"],
        "command": "otprop label orchard.csv --target variety",
        "versions": {"otprop": "0.1.0"},
    }
    return render_label_page(outcome, **(shown | other))
