"""Row-level fit, Algorithm 1 of the paper: a plan between rows, and the predictor that carries new rows through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from otprop._labels import Labels
from otprop._progress import ProgressCallback, no_progress
from otprop._saving import saved_as
from otprop.geometry.cost import BLOCK_BYTES, RowCost, cost_summary
from otprop.geometry.pairwise import PairwiseCost, in_user_units, make_pairwise_cost
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.row_matching import LabeledRows, first_of_each, row_keys
from otprop.propagation.config import RoundCallback, RowLevelConfig
from otprop.propagation.rounds import certainty
from otprop.propagation.row_rounds import RowLevelRounds, Snapshot

AUTO_EPSILON = 0.1  # times the median cost from an unlabelled row to its nearest labelled one
MAX_AUTO_ROWS = 2000  # rows used to choose epsilon if no row is unlabelled


class RowLevelFit:
    """A fit of `PaperOTP`: Algorithm 1 over the costs between rows.

    Parameters
    ----------
    config : RowLevelConfig
    progress : callable(done, total, step)

    Attributes
    ----------
    rounds : RowLevelRounds, with labels, distributions, certainty and round of every row
    epsilon : float, in the user's units
    predictor : RowLevelPredictor
    """

    def __init__(self, config: RowLevelConfig, progress: ProgressCallback = no_progress) -> None:
        self.config, self._progress = config, progress

    def fit(self, X: Any, labels: Labels, weights: np.ndarray, on_round: RoundCallback) -> Self:
        """Label every row."""
        config = self.config
        self._progress(0, 0, "costs")
        pairwise = make_pairwise_cost(X, config.cost)
        labeled = labels.labeled[weights[labels.labeled] > 0]
        if config.epsilon is None:
            cost = RowCost(pairwise, labels.unlabeled, labeled)
            epsilon = self._auto_epsilon(cost, X)
            cost.narrow(self._single_precision_limit(epsilon))
            self.epsilon = in_user_units(epsilon, pairwise.scale)
        else:
            epsilon, self.epsilon = in_units_of(pairwise.scale, config.epsilon), config.epsilon
            limit = self._single_precision_limit(epsilon)
            cost = RowCost(pairwise, labels.unlabeled, labeled, float32_below=limit)
        self.rounds = RowLevelRounds(
            cost,
            labels.codes,
            weights,
            len(labels.classes),
            epsilon=epsilon,
            alpha=config.alpha,
            max_rounds=config.max_rounds,
            min_round_share=config.min_round_share,
            tol=config.tol,
            max_iter=config.max_iter,
        )
        self.rounds.run(on_round, self.epsilon)
        snapshots = self.rounds.snapshots
        if not snapshots:  # no row was unlabelled: every labelled row counts with its weight
            f = epsilon * np.log(weights[labeled])
            snapshots = [Snapshot(labeled, labels.codes[labeled], f, threshold=0.0)]
        precomputed = isinstance(config.cost, str) and config.cost == "precomputed"
        known = LabeledRows(labeled, labels.codes[labeled], weights[labeled], None if precomputed else X)
        self.predictor = RowLevelPredictor(X, pairwise, snapshots, epsilon, known, len(labels.classes), precomputed)
        return self

    def _single_precision_limit(self, epsilon: float) -> float:
        """Costs up to this may be rounded to float32: no logarithm of the plan moves by more than twice `tol`."""
        return 2 * self.config.tol * 2.0**24 * epsilon

    def _auto_epsilon(self, cost: RowCost, X: Any) -> float:
        """The automatic epsilon, in the units of `cost`."""
        if len(cost.unlabeled):
            near, near_labeled, mean = cost_summary(cost)
        else:  # nothing to label: distances between the labelled rows, each taken once
            rows = cost.labeled[first_of_each(X[cost.labeled])][:MAX_AUTO_ROWS]
            between = cost.pairs.columns(rows)(rows)
            mean = float(between.mean())
            np.fill_diagonal(between, np.inf)
            near = near_labeled = between.min(axis=1)
        apart = near[np.isfinite(near) & (near > 0)]
        typical = float(np.median(apart)) if len(apart) else mean  # all rows repeat a labelled one: the mean cost
        if typical == 0 or not np.isfinite(near).any():
            return 1.0  # all rows are equal, and any epsilon gives the same plan
        usual = float(near[np.isfinite(near)].mean()) + float(near_labeled[np.isfinite(near_labeled)].mean())
        resolved = 2.0**-52 * usual / self.config.tol  # below it, rounding of the potentials alone would exceed tol
        return max(AUTO_EPSILON * typical, resolved)


def in_units_of(scale: float, epsilon: float) -> float:
    """`epsilon` over `scale`, kept within what a float can hold."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.clip(np.float64(epsilon) / scale, 1e-300, 1e300))


@saved_as("otp.row_predictor")
class RowLevelPredictor:
    """Carries new rows through the rounds as unlabelled rows without mass, which change nothing for the others.

    The class probabilities of a row in a round follow from the potentials of the labelled rows. So a round is stored
    as these potentials and its threshold. A row takes its probabilities from the first round whose threshold it
    passes, or else from the round in which it was most certain. If all rounds are stored, this gives the unlabelled
    rows of the training table the probabilities they got in the fit.
    """

    def __init__(
        self,
        rows: Any,
        pairs: PairwiseCost,
        snapshots: list[Snapshot],
        epsilon: float,
        labeled: LabeledRows,
        n_classes: int,
        precomputed: bool,
    ) -> None:
        self.pairs, self.snapshots, self.epsilon, self.n_classes = pairs, snapshots, epsilon, n_classes
        self.labeled, self._precomputed, self._sparse = labeled, precomputed, sp.issparse(rows)

    def predict(self, new: Any) -> np.ndarray:
        """Class probabilities of new rows."""
        if sp.issparse(new) != self._sparse:  # rows are matched in the form of the training rows
            new = sp.csr_array(new) if self._sparse else new.toarray()
        labeled = self.snapshots[-1].sources  # those of the earlier rounds are the first of these
        columns = self.pairs.columns(labeled, new)
        out = np.empty((new.shape[0], self.n_classes))
        for block in row_blocks(len(out), rows_per_block(len(labeled), BLOCK_BYTES // 2)):
            out[block] = self._through_rounds(columns(np.arange(block.start, block.stop)))
        self._keep_labels(new, out)
        return out

    def _through_rounds(self, costs: np.ndarray) -> np.ndarray:
        found = np.full((len(costs), self.n_classes), 1.0 / self.n_classes)
        most = np.full(len(costs), -1.0)
        left = np.arange(len(costs))
        for snapshot in self.snapshots:
            shares = self._shares(costs[left, : len(snapshot.f)], snapshot)
            scores = certainty(shares)
            better = (scores > most[left]) | (scores >= snapshot.threshold)
            found[left[better]] = shares[better]
            most[left[better]] = scores[better]
            left = left[scores < snapshot.threshold]
            if len(left) == 0:
                break
        return found

    def _shares(self, costs: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        """Eq. 10 and 11 from the potentials of the labelled rows."""
        logs = snapshot.f - costs
        logs -= logs.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):
            logs /= self.epsilon
        shares = np.exp(logs, out=logs) @ np.eye(self.n_classes)[snapshot.classes]
        return shares / shares.sum(axis=1, keepdims=True)

    def _keep_labels(self, new: Any, out: np.ndarray) -> None:
        """Give rows equal to labelled ones their label; several different labels are weighted."""
        for row, labeled in enumerate(self._matches(new)):
            if len(labeled):
                out[row] = self.labeled.votes(labeled, self.n_classes)

    def _matches(self, new: Any) -> Iterator[Any]:
        """For each new row the labelled rows it is equal to."""
        if self._precomputed:
            for costs in new[:, self.labeled.rows]:
                yield np.flatnonzero(costs == 0)
        else:
            for key in row_keys(new):
                yield self.labeled.like(key)
