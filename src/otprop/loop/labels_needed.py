"""How many more labels an expected error takes: a power law, its slope known from other tables only.

With n labels the error is about e; with n + m of them about ``e * (n / (n + m)) ** slope``. The slope differs from
table to table, and no single fit shows it: it has a Gamma distribution, learnt on development tables
(``python benchmarks/active.py --summary``). The error itself is known by its range. The estimate is that of the
expected error and of the median slope; its range, over both, is wide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaincinv

SLOPE_SHAPE, SLOPE_SCALE = 1.3, 0.25  # of the Gamma distribution of the slope
TAIL = 0.05  # of the 90 % interval, at either end
N_QUANTILES = 40  # of the error and of the slope
MIN_SLOPE = 1e-3


class LabelsNeeded(NamedTuple):
    """More labels that an error takes.

    Attributes
    ----------
    value : int, about so many; the number of unlabelled rows where only labelling all of them is likely to do
    low, high : int, the 90 % interval
    """

    value: int
    low: int
    high: int


def estimate_labels_needed(
    goal: float, expected: float, concentration: float, n_labels: int, n_rows: int
) -> LabelsNeeded:
    """More labels until the error of the unlabelled rows is at most `goal`, suggested rows being labelled.

    Parameters
    ----------
    goal : float
    expected : float, the expected error now
    concentration : float, of the Beta distribution of the error; 0: nothing is known
    n_labels : int, labels given
    n_rows : int, rows without a label
    """
    if n_rows == 0:
        return LabelsNeeded(0, 0, 0)
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    slopes = np.maximum(SLOPE_SCALE * gammaincinv(SLOPE_SHAPE, levels), MIN_SLOPE)
    mean = min(max(expected, 1e-9), 1.0 - 1e-9)
    known = concentration > 0
    errors = betaincinv(mean * concentration, (1.0 - mean) * concentration, levels) if known else np.array([mean])
    with np.errstate(over="ignore"):
        factors = np.maximum(errors[:, None] / goal, 1.0) ** (1.0 / slopes)
        typical = np.maximum(expected / goal, 1.0) ** (1.0 / np.median(slopes))  # 1 only where the goal is reached
    more = np.minimum(np.ceil(n_labels * (factors - 1.0)), n_rows)
    value = min(np.ceil(n_labels * (typical - 1.0)), n_rows)
    low, high = np.quantile(more, (TAIL, 1.0 - TAIL), method="inverted_cdf")
    return LabelsNeeded(int(value), int(low) if known else 0, int(high) if known else n_rows)
