"""The paper's way: a plan between rows, every labelled row shipping its own mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._labels import Labels
from otprop.geometry.cost import RowCost, cost_summary
from otprop.geometry.pairwise import in_user_units, make_pairwise_cost
from otprop.geometry.row_matching import LabeledRows, first_of_each
from otprop.propagation.row_predictor import RowLevelPredictor
from otprop.propagation.row_rounds import Propagation, Snapshot

AUTO_EPSILON = 0.1  # times the median cost from an unlabelled row to its nearest labelled one
AUTO_ALPHA = 0.9
MAX_AUTO_ROWS = 2000  # how many rows decide on epsilon where none is unlabelled


class RowLevelFit:
    """What `OTP` runs with ``marginals="balanced"``: Algorithm 1 over the costs between rows.

    Attributes
    ----------
    run : Propagation, to iterate over
    epsilon : float, in the user's units
    """

    def __init__(self, model: Any, X: Any, labels: Labels, weights: np.ndarray) -> None:
        self._X, self._labels, self._tol = X, labels, model.tol
        self._precomputed = isinstance(model.cost, str) and model.cost == "precomputed"
        self._pairs = make_pairwise_cost(X, model.cost)
        self._sources = labels.labeled[weights[labels.labeled] > 0]
        if isinstance(model.epsilon, str):
            row_cost = RowCost(self._pairs, labels.unlabeled, self._sources)
            epsilon = self._auto_epsilon(row_cost)
            row_cost.narrow(self._single_precision_limit(epsilon))
        else:
            epsilon = in_units_of(self._pairs.scale, model.epsilon)
            limit = self._single_precision_limit(epsilon)
            row_cost = RowCost(self._pairs, labels.unlabeled, self._sources, float32_below=limit)
        auto = isinstance(model.epsilon, str)
        self.epsilon = in_user_units(epsilon, self._pairs.scale) if auto else float(model.epsilon)
        self.run = Propagation(
            row_cost,
            labels.codes,
            weights,
            len(labels.classes),
            epsilon=epsilon,
            alpha=AUTO_ALPHA if isinstance(model.alpha, str) else model.alpha,
            max_rounds=None if isinstance(model.max_rounds, str) else model.max_rounds,
            min_round_share=model.min_round_share,
            tol=model.tol,
            max_iter=model.max_iter,
        )

    def answers(self) -> RowLevelPredictor:
        """What answers for new rows, once the rounds are over."""
        run, labels, sources = self.run, self._labels, self._sources
        snapshots = run.snapshots
        if not snapshots:  # nothing was unlabelled: every given row has its say, by its weight
            f = run.epsilon * np.log(run.weights[sources])
            snapshots = [Snapshot(sources, labels.codes[sources], f, threshold=0.0)]
        table = None if self._precomputed else self._X
        given = LabeledRows(sources, labels.codes[sources], run.weights[sources], table)
        n_classes = len(labels.classes)
        return RowLevelPredictor(self._X, self._pairs, snapshots, run.epsilon, given, n_classes, self._precomputed)

    def _single_precision_limit(self, epsilon: float) -> float:
        """Costs up to this may be rounded to float32: no logarithm of the plan moves by more than twice `tol`."""
        return 2 * self._tol * 2.0**24 * epsilon

    def _auto_epsilon(self, cost: RowCost) -> float:
        """The automatic epsilon, in the units of `cost`."""
        if len(cost.unlabeled):
            near, near_sources, mean = cost_summary(cost)
        else:  # nothing to label: distances between the given rows, each taken once
            rows = cost.labeled[first_of_each(self._X[cost.labeled])][:MAX_AUTO_ROWS]
            between = cost.pairs.columns(rows)(rows)
            mean = float(between.mean())
            np.fill_diagonal(between, np.inf)
            near = near_sources = between.min(axis=1)
        apart = near[np.isfinite(near) & (near > 0)]
        wanted = float(np.median(apart)) if len(apart) else mean  # all rows repeat a labelled one: the usual distance
        if wanted == 0 or not np.isfinite(near).any():
            return 1.0  # all rows are the same row, and any epsilon gives the same plan
        usual = float(near[np.isfinite(near)].mean()) + float(near_sources[np.isfinite(near_sources)].mean())
        resolved = 2.0**-52 * usual / self._tol  # below it, rounding of the potentials alone would exceed tol
        return max(AUTO_EPSILON * wanted, resolved)


def in_units_of(scale: float, epsilon: float) -> float:
    """`epsilon` over `scale`, kept within what a float can hold."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.clip(np.float64(epsilon) / scale, 1e-300, 1e300))
