"""Breiman's waveform data, version 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._validation import check_count

_POINTS = np.arange(1, 22)
_WAVES = np.stack([np.maximum(6 - np.abs(_POINTS - peak), 0) for peak in (7, 15, 11)]).astype(np.float64)
_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])  # the two waves each class mixes


def draw_waveform(n_rows: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows x = u h + (1 - u) h' + e: two of three triangular waves mixed by u ~ U(0, 1), e ~ N(0, 1) per point.

    The classes are equally likely.
    """
    check_count("n_rows", n_rows)
    rng = np.random.default_rng(random_state)
    y = rng.integers(3, size=n_rows)
    u = rng.random((n_rows, 1))
    first, second = _WAVES[_PAIRS[y, 0]], _WAVES[_PAIRS[y, 1]]
    return u * first + (1 - u) * second + rng.standard_normal((n_rows, 21)), y.astype(np.intp)
