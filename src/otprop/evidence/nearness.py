"""Nearness source, as in the paper: the Gibbs kernel of the cost, summed over the labelled rows of each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.evidence.base import SourceOutput
from otprop.evidence.held_out import HeldOut
from otprop.geometry.cost import BLOCK_BYTES
from otprop.geometry.pairwise import Columns, PairwiseCost
from otprop.geometry.parallel import row_blocks, rows_per_block

EPSILON_FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # times the median cost of a row to its nearest labelled one
START_FACTOR = 1.0
EPSILON_PENALTY = 0.5  # in log-likelihood, for a factor that differs from START_FACTOR by a factor of e
MAX_SAMPLED_ROWS = 1000  # unlabelled rows that the median cost is taken from
MIN_LOG = -100.0


@saved_as("evidence.nearness")
class NearnessSource:
    """Class potentials ``log sum_i w_i exp(-C_ij / epsilon)`` over the labelled rows i of each class.

    Each round adds only the rows labelled last, so all rounds together cost one pass over the pairs. Rows that join
    after the first round have one weight per class, which may change from round to round.

    Parameters
    ----------
    cost : PairwiseCost
    n_rows, n_classes : int
    epsilon : float or None
        In the units of `cost`. None: the one under which the held-out labels are most probable.
    """

    name = "nearness"
    converged = True

    def __init__(self, cost: PairwiseCost, n_rows: int, n_classes: int, epsilon: float | None = None) -> None:
        self._cost, self._n_rows, self._n_classes, self.epsilon = cost, n_rows, n_classes, epsilon
        self._labeled = np.empty(0, dtype=np.intp)

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Sum over the labelled rows; choose epsilon on the held-out labels where it is not set."""
        self.held_out_reached = np.ones(len(held_out), dtype=bool)
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        costs = self._cost.columns(labeled)(held_out.rows) if len(held_out) else np.empty((0, len(labeled)))
        fold_of = held_out.hidden_fold
        if fold_of is None:
            fold_of = np.full(self._n_rows, -1)
            fold_of[held_out.rows] = held_out.fold
        costs[fold_of[labeled] == held_out.fold[:, None]] = np.inf
        correction = np.log(held_out.class_mass_correction())

        def held_out_logs(epsilon: float) -> np.ndarray:
            return _normalised(self._potentials(costs, labeled, codes, weights, epsilon) + correction)

        if self.epsilon is None:
            typical = self._typical_cost(codes, labeled)
            logs = [held_out_logs(typical * factor) for factor in EPSILON_FACTORS]
            best, cross_fitted = _choose_epsilon(logs, held_out)
            self.epsilon, found = typical * EPSILON_FACTORS[best], logs[best]
        else:
            found = cross_fitted = held_out_logs(self.epsilon)
        self._given = self._summed(labeled, codes, weights)
        self._joined = np.full((self._n_rows, self._n_classes), -np.inf)
        self._first, self._labeled = labeled, labeled
        self._codes, self._weights = codes.copy(), weights.copy()
        return SourceOutput(_normalised(self._given).astype(np.float32), found, cross_fitted)

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add the rows labelled since the last call; log-probabilities of all rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        added = np.setdiff1d(labeled, self._labeled, assume_unique=True)
        if len(added):
            self._joined = np.logaddexp(self._joined, self._summed(added, codes, np.ones(self._n_rows)))
            self._labeled = labeled
        joined = np.setdiff1d(labeled, self._first, assume_unique=True)
        class_weights = np.ones(self._n_classes)
        class_weights[codes[joined]] = weights[joined]
        self._codes, self._weights = codes.copy(), weights.copy()
        return _normalised(np.logaddexp(self._given, self._joined + np.log(class_weights))).astype(np.float32)

    def end_rounds(self) -> None:
        """Nothing to forget: given labels reach every row."""

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        columns = self._cost.columns(self._labeled, rows)
        return _normalised(self._in_blocks(columns, rows.shape[0], self._labeled, self._codes, self._weights))

    def reached(self) -> np.ndarray:
        """Which rows are reached by some label: all, since every cost is finite."""
        return np.ones(self._n_rows, dtype=bool)

    def _summed(self, labeled: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Potentials of all rows from these labelled rows."""
        return self._in_blocks(self._cost.columns(labeled), self._n_rows, labeled, codes, weights)

    def _in_blocks(
        self, columns: Columns, n_rows: int, labeled: np.ndarray, codes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        assert self.epsilon is not None
        found = np.empty((n_rows, self._n_classes))
        for block in row_blocks(n_rows, rows_per_block(len(labeled), BLOCK_BYTES // 8)):
            costs = columns(np.arange(block.start, block.stop))
            found[block] = self._potentials(costs, labeled, codes, weights, self.epsilon)
        return found

    def _potentials(
        self, costs: np.ndarray, labeled: np.ndarray, codes: np.ndarray, weights: np.ndarray, epsilon: float
    ) -> np.ndarray:
        with np.errstate(over="ignore"):
            logs = np.log(weights[labeled]) - costs / epsilon
        found = np.full((len(costs), self._n_classes), -np.inf)
        for code in np.unique(codes[labeled]):
            found[:, code] = np.logaddexp.reduce(logs[:, codes[labeled] == code], axis=1)
        return found

    def _typical_cost(self, codes: np.ndarray, labeled: np.ndarray) -> float:
        """Median cost of an unlabelled row to its nearest labelled one."""
        others = np.flatnonzero(codes < 0)
        if len(others) == 0:
            others = labeled
        sample = others[:: max(1, len(others) // MAX_SAMPLED_ROWS)]
        costs = self._cost.columns(labeled)(sample)
        costs[sample[:, None] == labeled] = np.inf
        nearest = costs.min(axis=1)
        apart = nearest[(nearest > 0) & np.isfinite(nearest)]
        return float(np.median(apart)) if len(apart) else 1.0

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in vars(self).items() if name not in ("_given", "_joined", "held_out_reached")
        }


def _choose_epsilon(logs: list[np.ndarray], held_out: HeldOut) -> tuple[int, np.ndarray]:
    """The number of the best factor, and the log-probabilities where it is chosen without the row's group."""
    likelihoods = held_out.weights * np.array([one[np.arange(len(held_out)), held_out.codes] for one in logs])
    penalty = EPSILON_PENALTY * np.log(np.array(EPSILON_FACTORS) / START_FACTOR) ** 2
    group, weighting = held_out.group, held_out.weighting
    cross_fitted = np.empty_like(logs[0])
    for one in np.unique(group):
        here = group == one
        best = int(np.argmax(likelihoods[:, ~here & weighting].sum(axis=1) - penalty))
        cross_fitted[here] = logs[best][here]
    return int(np.argmax(likelihoods[:, weighting].sum(axis=1) - penalty)), cross_fitted


def _normalised(logs: np.ndarray) -> np.ndarray:
    """Normalised log-probabilities, clipped at -MIN_LOG below the largest."""
    top = logs.max(axis=1, keepdims=True, initial=-np.inf)
    logs = np.where(top > -np.inf, np.maximum(logs - np.where(top > -np.inf, top, 0.0), MIN_LOG), 0.0)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
