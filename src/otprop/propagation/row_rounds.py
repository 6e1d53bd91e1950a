"""Rounds of Algorithm 1: solve the plan, label the certain rows, make them labelled rows of the next round."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from otprop._saving import saved_as
from otprop.geometry.cost import RowCost
from otprop.propagation.rounds import TIE, Round, Rounds, certainty, nth_largest
from otprop.transport.kernel import DenseKernel
from otprop.transport.result import TransportResult
from otprop.transport.sinkhorn import solve
from otprop.transport.stage import f_from_g

SNAPSHOT_NUMBERS = 2**21  # potentials kept for prediction before rounds are skipped
MAX_LABELED_SHARE = 0.25  # of the unlabelled rows; if a round labels more, the next one starts without its potentials
EXACT_MARGIN = 1e-3  # rough certainties this close to the threshold are computed again exactly


@saved_as("otp.snapshot", infinite=("f", "threshold"))
@dataclass(frozen=True)
class Snapshot:
    """A round as prediction needs it: labelled rows, their classes and potentials, and the threshold."""

    sources: np.ndarray
    classes: np.ndarray
    f: np.ndarray
    threshold: float  # a certainty of at least this much is enough


class RowLevelRounds(Rounds):
    """Algorithm 1, one round at a time.

    Parameters
    ----------
    cost : RowCost, between the unlabelled and the labelled rows
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    weights : ndarray, a positive weight for every row; the labelled rows' become the marginal a
    n_classes : int
    epsilon : float
    alpha : float, the threshold
    max_rounds : int or None; the last round labels all remaining rows
    min_round_share : float, at least this share of the unlabelled rows is labelled in every round
    tol, max_iter : for the solver

    Attributes
    ----------
    codes, distributions, certainty, round : ndarrays, one entry per row, filled in as rows are labelled
    snapshots : list of Snapshot, for prediction
    """

    def __init__(
        self,
        cost: RowCost,
        codes: np.ndarray,
        weights: np.ndarray,
        n_classes: int,
        *,
        epsilon: float,
        alpha: float,
        max_rounds: int | None = None,
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 20_000,
    ) -> None:
        super().__init__(codes, n_classes)
        self.cost, self.weights, self.n_classes = cost, weights, n_classes
        self.epsilon, self.alpha, self.tol, self.max_iter = epsilon, alpha, tol, max_iter
        self.max_rounds, self.min_round_share = max_rounds, min_round_share
        self.snapshots: list[Snapshot] = []
        self._potentials: np.ndarray | None = None
        self._kernel: DenseKernel | None = None  # of the round before, if it can be reused
        self._stayed = np.ones(0, dtype=bool)  # the unlabelled rows of the round before that are still unlabelled
        self._rows_since_snapshot = 0  # rows labelled since the last snapshot

    @property
    def n_unlabeled(self) -> int:
        return len(self.cost.unlabeled)

    def step(self) -> Round:
        """Run one round."""
        start = perf_counter()
        self.n_rounds += 1
        n_unlabeled, n_labeled = self.cost.shape
        plan = self._solve()
        shares, scores, threshold, lowered = self._decide(plan)
        chosen = scores > threshold if not lowered else scores >= threshold - TIE
        self._kernel = _reusable_kernel(plan, int(chosen.sum()))
        plan = plan.without_kernel()
        others = scores[~chosen]
        rows = self.cost.unlabeled[chosen]
        self.distributions[self.cost.unlabeled] = shares
        self.certainty[self.cost.unlabeled] = scores
        class_gap = self._label(rows, shares[chosen])
        gaps = np.concatenate([scores[chosen] - threshold if not lowered else [], threshold - others, [np.inf]])
        self._keep_snapshot(plan, threshold - TIE if lowered else np.nextafter(threshold, 2.0), len(rows))
        self._advance(plan, chosen)
        return Round(
            number=self.n_rounds,
            rows=rows,
            n_labeled=n_labeled,
            n_unlabeled=n_unlabeled,
            threshold=float(threshold),
            lowered=bool(lowered),
            epsilon=self.epsilon,
            iterations=plan.iterations,
            source_error=plan.source_error,
            target_error=plan.target_error,
            converged=plan.converged,
            threshold_gap=float(gaps.min()),
            class_gap=class_gap,
            seconds=perf_counter() - start,
        )

    def _solve(self) -> TransportResult:
        """Eq. 7 and 9: the plan between the current two sides."""
        n_targets = len(self.cost.unlabeled)
        return solve(
            self.cost,
            self._source_marginal(),
            np.full(n_targets, 1.0 / n_targets),
            self.epsilon,
            tol=self.tol,
            max_iter=self.max_iter,
            f=self._potentials,
            kernel=self._advanced_kernel(),
        )

    def _advanced_kernel(self) -> DenseKernel | None:
        """The kernel of the round before for the current cost; the solver becomes its only owner."""
        kernel, self._kernel = self._kernel, None
        if kernel is None or self._potentials is None or not self.cost.stored:
            return None
        kernel.advance(self.cost, self._stayed, self._potentials[len(kernel.f) :])
        return kernel

    def _source_marginal(self) -> np.ndarray:
        """The marginal a: the weights of the current labelled rows, scaled to a mass of one."""
        weights = self.weights[self.cost.labeled]
        weights = weights / weights.max()  # so that their sum cannot overflow
        return weights / weights.sum()

    def _decide(self, plan: TransportResult) -> tuple[np.ndarray, np.ndarray, float, bool]:
        """Eq. 10-12 and 15: class shares and certainty of unlabelled rows, the threshold, whether it was lowered."""
        classes = self.codes[self.cost.labeled]
        shares = plan.rough_class_shares(classes, self.n_classes)
        scores = certainty(shares)
        n_least = max(1, int(np.ceil(self.min_round_share * len(scores))))
        if self.n_rounds == self.max_rounds:
            n_least = len(scores)
        matters = scores > min(self.alpha, nth_largest(scores, n_least)) - EXACT_MARGIN
        shares[matters] = plan.class_shares(classes, self.n_classes, matters)
        scores[matters] = certainty(shares[matters])
        if np.count_nonzero(scores > self.alpha) >= n_least:
            return shares, scores, self.alpha, False
        return shares, scores, nth_largest(scores, n_least), True

    def _advance(self, plan: TransportResult, chosen: np.ndarray) -> None:
        """Carry costs and potentials over to the next round (Eq. 14)."""
        self.cost.advance(chosen)
        n_new, n_left = int(chosen.sum()), len(self.cost.unlabeled)
        self._stayed = ~chosen
        if n_new > MAX_LABELED_SHARE * len(chosen) or n_left == 0:
            self._potentials = None
            return
        new = slice(len(self.cost.labeled) - n_new, None)
        f_new = f_from_g(self.cost, self._source_marginal()[new], plan.g[self._stayed], self.epsilon, new)
        self._potentials = np.concatenate([plan.f, f_new])

    def _keep_snapshot(self, plan: TransportResult, threshold: float, n_rows: int) -> None:
        """Keep the round for prediction: every round at first, later one per hundredth of the rows."""
        self._rows_since_snapshot += n_rows
        last = n_rows == len(self.cost.unlabeled)
        kept = len(self.snapshots) * len(self.snapshots[-1].f) if self.snapshots else 0
        if kept <= SNAPSHOT_NUMBERS or last or 100 * self._rows_since_snapshot >= len(self.codes):
            sources = self.cost.labeled.copy()
            self.snapshots.append(Snapshot(sources, self.codes[sources], plan.f, threshold))
            self._rows_since_snapshot = 0


def _reusable_kernel(plan: TransportResult, n_new: int) -> DenseKernel | None:
    """The kernel of the plan, if it has room for `n_new` columns and for further scalings."""
    kernel = plan.kernel
    if not isinstance(kernel, DenseKernel) or n_new > kernel.n_spare_columns:
        return None
    log_scaling = (plan.f - kernel.f) / plan.epsilon
    return kernel if np.ptp(log_scaling) <= kernel.max_log_scaling / 2 else None
