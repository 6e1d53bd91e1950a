"""A frame with columns of several kinds, and settings for a quick fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import lots, read_rows  # noqa: F401

pd = pytest.importorskip("pandas")

KINDS = np.array(["a", "b", "c"], dtype=object)


FAST = {"evidence": None}  # the geometry alone


def mixed_frame(n_rows: int = 90) -> Any:
    """Numbers, categories, dates, truth values and text, with gaps; a tenth of the rows labelled."""
    rng = np.random.default_rng(0)
    kind = np.arange(n_rows) % 3
    frame = pd.DataFrame(
        {
            "weight": np.round(rng.normal(10 * kind, 2), 3),
            "count": rng.integers(0, 50, n_rows) + 7 * kind,
            "colour": np.array(["green", "red", "yellow"], dtype=object)[np.where(rng.random(n_rows) < 0.7, kind, 0)],
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
            "ripe": rng.random(n_rows) < 0.3 + 0.2 * kind,
            "note": [" ".join(rng.choice(["soft", "hard", "round", "sweet", "sour"], 4)) for _ in range(n_rows)],
            "kind": np.where(np.arange(n_rows) < 12, np.array(["a", "b", "c"], dtype=object)[kind], None),
        }
    )
    frame.loc[3:5, "weight"] = None
    frame.loc[7:8, "colour"] = None
    return frame


def truth(rows: Any) -> Any:
    return KINDS[np.asarray(rows) % 3]


def filled(suggested: Any) -> Any:
    """Suggested rows with their labels filled in."""
    suggested = suggested.copy()
    suggested["kind"] = truth(suggested.index)
    return suggested
