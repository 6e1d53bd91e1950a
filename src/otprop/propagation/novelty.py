"""Novelty: rows that do not look like any labelled class.

Label mass diffuses less to rows of a class without labels than to rows of the others. The mass
that reaches the unlabelled rows is compared with the mass that reaches labelled rows whose own label is held out. The
excess of rows with little mass is a lower bound on the share of rows of new classes (the proportion of a mixture;
Garg, Wu, Smola, Balakrishnan and Lipton 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaincinv, ndtr
from sklearn.isotonic import isotonic_regression

from otprop._saving import saved_as

MIN_HELD_OUT = 10  # fewer held-out labels are not enough
MIN_ABOVE = 0.6  # a threshold counts only if this share of the held-out labels is above it
LEVEL = 0.95  # confidence level of each end of the interval
SHARE_LEVEL = 0.7  # of the bound that estimates the share with the least bias: a minimum over thresholds is too low
SURE_LEVEL, LIKELY_LEVEL = 0.999, 0.99  # of the test for new classes
LIKELY_WEIGHT = 0.25  # of the share if it passes the test at the second level only
USUAL_SPREAD = 1.4826  # standard deviations of a normal distribution in one median absolute deviation
MIN_SPREAD = 1e-3  # smaller differences of log-masses, as between copies of one row, are errors of the solver
MAX_SHARE = 0.75  # of rows of new classes; if more rows are far from all labels, there is another cause
MAX_KNOTS = 64  # values of the reach at which the probability of a new class is stored


@saved_as("otp.novelty", infinite=("knots",))
@dataclass(frozen=True)
class Novelty:
    """How much label mass reaches held-out labels, as a reference for other rows.

    Attributes
    ----------
    centre, spread : float, of the logarithm of the mass that reaches held-out labels
    share : float, of the unlabelled rows that belong to no class with a label
    low, high : float, 90 % interval of that share
    knots, probabilities : ndarrays, ascending log-masses, and the probability of a new class from each knot on
    """

    centre: float = 0.0
    spread: float = 0.0
    share: float = 0.0
    low: float = 0.0
    high: float = 1.0
    knots: np.ndarray = field(default_factory=lambda: np.zeros(1))
    probabilities: np.ndarray = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(cls, held_out: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> Novelty:
        """Compare the log-mass that reaches held-out labels and unlabelled rows; minus infinity where none does.

        `weights` is the number of rows that each held-out label represents, up to a common factor.
        """
        if len(held_out) < MIN_HELD_OUT or len(rows) == 0 or not np.isfinite(held_out).any():
            return cls()
        finite = held_out[np.isfinite(held_out)]
        centre = float(np.median(finite))
        spread = USUAL_SPREAD * float(np.median(np.abs(finite - centre)))
        bounds = _Bounds(held_out, weights, rows)
        levels = (SURE_LEVEL, LIKELY_LEVEL, LEVEL, SHARE_LEVEL, 1.0 - LEVEL)
        sure, likely, low, share, high = (max(bounds.excess(level), 0.0) for level in levels)
        if likely <= 0.0 or share > MAX_SHARE:
            return cls(centre, spread, 0.0, 0.0, high)
        knots, probabilities = bounds.probabilities(share)
        if sure <= 0.0:
            low, share, probabilities = 0.0, LIKELY_WEIGHT * share, LIKELY_WEIGHT * probabilities
        return cls(centre, spread, share, low, high, knots, probabilities)

    def __call__(self, log_mass: np.ndarray) -> np.ndarray:
        """Novelty of rows, 0 to 1: near 1 where less mass reaches a row than nearly all held-out labels."""
        if self.spread <= 0.0:
            return np.zeros(len(log_mass))
        return np.asarray(ndtr((self.centre - log_mass) / max(self.spread, MIN_SPREAD)))

    def probability(self, log_mass: np.ndarray) -> np.ndarray:
        """Probability that rows belong to no class with a label; 0 for all rows if the share is 0."""
        place = np.searchsorted(self.knots, log_mass, side="right") - 1
        return self.probabilities[np.clip(place, 0, len(self.knots) - 1)]


class _Bounds:
    """Difference between the shares of rows and of held-out labels below thresholds of the log-mass."""

    def __init__(self, held_out: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> None:
        order = np.argsort(-held_out, kind="stable")
        self._thresholds, self._rows = held_out[order], np.sort(rows)
        self._above = np.minimum(np.cumsum(weights[order]) / weights.sum(), 1.0)
        self._n = weights.sum() ** 2 / (weights @ weights)
        self._m = len(rows)

    def excess(self, level: float) -> float:
        """Bound of the share of rows that are reached worse than held-out labels, over all thresholds."""
        used = self._above >= MIN_ABOVE
        above = self._above[used] * self._n
        reached = self._m - np.searchsorted(self._rows, self._thresholds[used], side="left")
        high = np.where(reached == self._m, 1.0, betaincinv(reached + 1.0, np.maximum(self._m - reached, 1), level))
        low = betaincinv(above, np.maximum(self._n - above, 0.0) + 1.0, 1.0 - level)
        return float(1.0 - min((high / low).min(), 1.0))

    def probabilities(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower ends of intervals of the log-mass, and the share of rows of new classes in each."""
        knots = np.unique(np.quantile(self._rows, np.linspace(0.0, 1.0, MAX_KNOTS + 1), method="lower")[:-1])
        rows = np.diff(np.append(np.searchsorted(self._rows, knots, side="left"), self._m)) / self._m
        above = [self._above[self._thresholds >= knot].max(initial=0.0) for knot in knots]
        labels = -np.diff(np.append(above, 0.0))
        labels[0] += 1.0 - above[0]
        found = isotonic_regression(1.0 - (1.0 - share) * labels / rows, sample_weight=rows, increasing=False)
        return knots, np.clip(found, 0.0, 1.0)
