"""How many more labels an expected error needs: a power law, with a slope learnt on other tables.

With n labels the error is about e; with n + m of them about ``e * (n / (n + m)) ** slope``. The slope differs from
table to table, and no single fit shows it: it has a Gamma distribution, learnt on development tables
(``python benchmarks/active.py --summary``). Earlier fits of the same table with fewer labels show it: slopes that agree
with their expected errors weigh more. The error itself is known by its range. The estimate is that of the expected
error and of the median slope; its range is over both, and where it is too wide to plan by, that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaincinv

SLOPE_SHAPE, SLOPE_SCALE = 1.3, 0.25  # of the Gamma distribution of the slope
TAIL = 0.1  # of the distribution, beyond either end of the range; docs/loop-results.md has how often ranges hold
N_QUANTILES = 40  # of the error and of the slope
MIN_SLOPE = 1e-3
EARLIER_NOISE = 0.3  # standard deviation of the logarithm of an expected error about the power law
MIN_GROWTH = 1.2  # of the labels since an earlier fit, for it to tell the slope
WIDEST = 10.0  # high to low, above which the range is too wide to plan by


class LabelsNeeded(NamedTuple):
    """Number of additional labels needed to reach an error.

    Attributes
    ----------
    value : int, the estimate; the number of unlabelled rows if probably only labelling all of them is enough
    low, high : int, the 80 % interval: the number is as likely to be below `low` as above `high`, one in ten each
    """

    value: int
    low: int
    high: int

    @property
    def is_known(self) -> bool:
        """Whether the range is narrow enough to plan by: its ends at most ten times apart."""
        return self.high + 1 <= WIDEST * (self.low + 1)


def estimate_labels_needed(
    goal: float,
    expected: float,
    concentration: float,
    n_labels: int,
    n_rows: int,
    earlier: Sequence[tuple[int, float]] = (),
) -> LabelsNeeded:
    """Number of suggested rows to label until the error of the unlabelled rows is at most `goal`.

    Parameters
    ----------
    goal : float
    expected : float, the expected error now
    concentration : float, of the Beta distribution of the error; 0: nothing is known
    n_labels : int, labels given
    n_rows : int, rows without a label
    earlier : pairs of the number of labels and the expected error of earlier fits with fewer labels
    """
    if n_rows == 0:
        return LabelsNeeded(0, 0, 0)
    if n_labels == 0:  # votes alone: how the error falls with labels cannot be told
        return LabelsNeeded(n_rows, 0, n_rows)
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    slopes = np.maximum(SLOPE_SCALE * gammaincinv(SLOPE_SHAPE, levels), MIN_SLOPE)
    mean = min(max(expected, 1e-9), 1.0 - 1e-9)
    known = concentration > 0
    errors = betaincinv(mean * concentration, (1.0 - mean) * concentration, levels) if known else np.array([mean])
    weights = _slope_weights(slopes, mean, n_labels, earlier)
    median = slopes[np.searchsorted(np.cumsum(weights), 0.5)]
    with np.errstate(over="ignore"):
        factors = np.maximum(errors[:, None] / goal, 1.0) ** (1.0 / slopes)
        typical = np.maximum(expected / goal, 1.0) ** (1.0 / median)  # 1 only where the goal is reached
    more = np.minimum(np.ceil(n_labels * (factors - 1.0)), n_rows)
    value = min(np.ceil(n_labels * (typical - 1.0)), n_rows)
    order = np.argsort(more, axis=None)
    reached = np.cumsum(np.broadcast_to(weights, more.shape).ravel()[order]) / len(errors)
    low, high = more.ravel()[order][np.searchsorted(reached, (TAIL, 1.0 - TAIL - 1e-9))]
    return LabelsNeeded(int(value), int(min(low, value)) if known else 0, int(max(high, value)) if known else n_rows)


def _slope_weights(slopes: np.ndarray, error: float, n_labels: int, earlier: Sequence[tuple[int, float]]) -> np.ndarray:
    """How well each slope agrees with earlier fits; they sum to 1, and are equal where there were none."""
    misfit, n_used = np.zeros(len(slopes)), 0
    for n_before, before in earlier:
        if 0 < MIN_GROWTH * n_before <= n_labels and before > 0:
            expected = np.log(error) + slopes * np.log(n_labels / n_before)
            misfit += ((np.log(before) - expected) / EARLIER_NOISE) ** 2 / 2.0
            n_used += 1
    misfit /= max(1.0, n_used**0.5)  # expected errors of one walk err alike
    weights = np.exp(misfit.min() - misfit)
    return np.asarray(weights / weights.sum())
