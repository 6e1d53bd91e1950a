"""Nearness, as in the paper: the Gibbs kernel of the cost, summed over the labelled rows of each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, log_likelihood
from otprop.geometry.cost import BLOCK_BYTES
from otprop.geometry.pairwise import PairwiseCost
from otprop.geometry.parallel import row_blocks, rows_per_block

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # times the median cost of a row to its nearest labelled one
USUAL_EPSILON = 1.0
EPSILON_PULL = 0.5
MOST_SEEN = 1000  # unlabelled rows that say what a usual cost is


class NearnessSource:
    """Class potentials ``log sum_i w_i exp(-C_ij / epsilon)`` over the labelled rows i of a class.

    They grow only by the rows labelled last, so that all rounds together cost one pass over the pairs. Rows that join
    after the first round weigh the same within a class, but not the same in every round.

    Parameters
    ----------
    pairs : PairwiseCost
    n_rows, n_classes : int
    epsilon : float or None
        In the units of the pairs. None: the one under which the hidden labels are most probable.
    """

    name = "nearness"
    converged = True

    def __init__(self, pairs: PairwiseCost, n_rows: int, n_classes: int, epsilon: float | None = None) -> None:
        self._pairs, self._n_rows, self._n_classes, self.epsilon = pairs, n_rows, n_classes, epsilon
        self._sources = np.empty(0, dtype=np.intp)

    def fit(self, codes: np.ndarray, weights: np.ndarray, hidden: HeldOut) -> SourceOutput:
        """Sum over the given labels; where epsilon is open, take the one that suits the hidden ones best."""
        sources = np.flatnonzero((codes >= 0) & (weights > 0))
        between = self._pairs.columns(sources)
        costs = between(hidden.rows) if len(hidden) else np.empty((0, len(sources)))
        fold_of = np.full(self._n_rows, -1)
        fold_of[hidden.rows] = hidden.fold
        costs[fold_of[sources] == hidden.fold[:, None]] = np.inf
        lift = np.log(hidden.lift())
        if self.epsilon is None:
            usual = self._usual_cost(codes, sources)
            tried = [usual * factor for factor in EPSILONS]
            scores = []
            for epsilon in tried:
                logs = _normalised(self._potentials(costs, sources, codes, weights, epsilon) + lift)
                pull = EPSILON_PULL * np.log(epsilon / (usual * USUAL_EPSILON)) ** 2
                scores.append(log_likelihood(logs, hidden.codes) - pull)
            self.epsilon = tried[int(np.argmax(scores))]
        unseen = _normalised(self._potentials(costs, sources, codes, weights, self.epsilon) + lift)
        self._given = self._summed(sources, codes, weights)
        self._joined = np.full((self._n_rows, self._n_classes), -np.inf)
        self._first, self._sources = sources, sources
        self._codes, self._weights = codes.copy(), weights.copy()
        return SourceOutput(_normalised(self._given).astype(np.float32), unseen)

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add what the rows labelled since then say: logarithms of the class probabilities of all rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        added = np.setdiff1d(labeled, self._sources, assume_unique=True)
        if len(added):
            self._joined = np.logaddexp(self._joined, self._summed(added, codes, np.ones(self._n_rows)))
            self._sources = labeled
        joined = np.setdiff1d(labeled, self._first, assume_unique=True)
        each = np.ones(self._n_classes)
        each[codes[joined]] = weights[joined]
        self._codes, self._weights = codes.copy(), weights.copy()
        return _normalised(np.logaddexp(self._given, self._joined + np.log(each))).astype(np.float32)

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Logarithms of the class probabilities of new rows."""
        assert self.epsilon is not None
        between = self._pairs.columns(self._sources, rows)
        found = np.empty((rows.shape[0], self._n_classes))
        for block in row_blocks(len(found), rows_per_block(len(self._sources), BLOCK_BYTES // 8)):
            here = np.arange(block.start, block.stop)
            found[block] = self._potentials(between(here), self._sources, self._codes, self._weights, self.epsilon)
        return _normalised(found)

    def reached(self) -> np.ndarray:
        """Which rows some label reaches: all, since a cost is finite."""
        return np.ones(self._n_rows, dtype=bool)

    def _summed(self, sources: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The potentials of all rows from these sources."""
        assert self.epsilon is not None
        between = self._pairs.columns(sources)
        found = np.empty((self._n_rows, self._n_classes))
        for block in row_blocks(self._n_rows, rows_per_block(len(sources), BLOCK_BYTES // 8)):
            here = np.arange(block.start, block.stop)
            found[block] = self._potentials(between(here), sources, codes, weights, self.epsilon)
        return found

    def _potentials(
        self, costs: np.ndarray, sources: np.ndarray, codes: np.ndarray, weights: np.ndarray, epsilon: float
    ) -> np.ndarray:
        with np.errstate(over="ignore"):
            logs = np.log(weights[sources]) - costs / epsilon
        found = np.full((len(costs), self._n_classes), -np.inf)
        for code in np.unique(codes[sources]):
            found[:, code] = np.logaddexp.reduce(logs[:, codes[sources] == code], axis=1)
        return found

    def _usual_cost(self, codes: np.ndarray, sources: np.ndarray) -> float:
        others = np.flatnonzero(codes < 0)
        if len(others) == 0:
            others = sources
        seen = others[:: max(1, len(others) // MOST_SEEN)]
        costs = self._pairs.columns(sources)(seen)
        costs[seen[:, None] == sources] = np.inf
        nearest = costs.min(axis=1)
        apart = nearest[(nearest > 0) & np.isfinite(nearest)]
        return float(np.median(apart)) if len(apart) else 1.0


def _normalised(logs: np.ndarray) -> np.ndarray:
    """Logarithms that sum to one as shares, with what lies beyond a float cut off."""
    top = logs.max(axis=1, keepdims=True, initial=-np.inf)
    logs = np.where(top > -np.inf, np.maximum(logs - np.where(top > -np.inf, top, 0.0), -100.0), 0.0)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
