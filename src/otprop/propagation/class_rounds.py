"""Class-level rounds: class costs from the evidence, class-level transport, certain rows fed back."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from otprop._labels import UNLABELED
from otprop.evidence.combined import Evidence
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.propagation.rounds import MANY_ROWS, TIE, Round, Rounds, certainty, nth_largest
from otprop.transport.class_level import ClassTransport, owed_masses, solve_classes

JOINING_WEIGHT = 0.1  # mean weight of a row labelled in a round; a given label weighs 1
AUTO_PROBABILITY = 0.9  # with alpha="auto", the class probability above which a row is labelled
MIN_SHARE_LEFT = 0.15  # with alpha="auto", each round labels at least this share of the rows left
MIN_SHARE_LEFT_MANY_ROWS = 0.3  # the same in a large table, where half as many rounds are as accurate
MIN_SHARE_ALL = 0.03  # and at least this share of all rows that were unlabelled at the start
SHARE_ERROR = 2.0  # assumed error of the class shares, in standard errors of a random sample of this size
MIN_OWED_SHARE = 0.02  # a class ships at least this part of its share of the rows left
BLOCK_ENTRIES = 2**20  # class shares computed at once


def tempered(logits: np.ndarray, epsilon: float) -> np.ndarray:
    """Logits divided by epsilon, with the largest of each row at 0, so that no epsilon overflows."""
    top = logits.max(axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(over="ignore"):
        return np.asarray((logits - np.where(top > -np.inf, top, 0.0)).astype(np.float64) / epsilon)


class ClassLevelRounds(Rounds):
    """Rounds with class-level transport.

    Parameters
    ----------
    evidence : Evidence, fitted on the given labels
    logits : ndarray of shape (n_rows, n_classes), its log-probabilities of all rows; overwritten
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    weights : ndarray, a weight for every row
    prior : ndarray of shape (n_classes,), the classes' shares of all rows
    strength : float, how strictly the shares hold in the transport, 0 to 1
    epsilon : float, the temperature: divisor of the costs
    alpha : float or None
        The certainty above which a row is labelled. None: rows whose class is more probable than `AUTO_PROBABILITY`,
        and in every round at least 15 % of those left (30 % in a table of more than `MANY_ROWS` rows) and 3 % of those
        left at the start.
    max_rounds : int or None; the last round labels all remaining rows
    min_round_share : float, at least this share of the unlabelled rows is labelled in every round
    tol, max_iter : for the solver

    Attributes
    ----------
    codes, distributions, certainty, round : ndarrays, one entry per row, filled in as rows are labelled
    plan : ClassTransport, of the first round
    """

    def __init__(
        self,
        evidence: Evidence,
        logits: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        prior: np.ndarray,
        *,
        strength: float,
        epsilon: float = 1.0,
        alpha: float | None = None,
        max_rounds: int | None = None,
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        super().__init__(codes, len(prior))
        self._evidence, self._logits, self._prior = evidence, logits, prior
        self.strength, self.epsilon, self._alpha = strength, epsilon, alpha
        self._max_rounds, self._min_round_share = max_rounds, min_round_share
        self._min_share_left = MIN_SHARE_LEFT if len(codes) <= MANY_ROWS else MIN_SHARE_LEFT_MANY_ROWS
        self._tol, self._max_iter = tol, max_iter
        given = codes != UNLABELED
        self._weights = np.where(given, weights, 0.0)
        self._weightless = given & (weights == 0)  # their mass is not counted either
        self._left = np.flatnonzero(~given)
        self.plan: ClassTransport | None = None

    @property
    def n_unlabeled(self) -> int:
        return len(self._left)

    def step(self) -> Round:
        """Run one round: solve the transport, label the certain rows, add them to the evidence."""
        start = perf_counter()
        self.n_rounds += 1
        if self.n_rounds > 1:
            self._logits = self._evidence.update(self.codes, self._weights)
        left, logits = self._left, self._logits
        del self._logits  # with many classes one of the largest arrays, so the rows left are not copied
        for block in self._blocks(len(left)):
            logits[block] = logits[left[block]]  # rows move up, past none that is still needed
        logits = logits[: len(left)]
        if self.epsilon != 1.0:
            logits = tempered(logits, self.epsilon)
        plan = self._solve(logits)
        scores, probable, reached = self._distribute(plan, logits)
        del logits
        chosen, threshold, lowered = self._choose(scores, probable, reached)
        class_gap = self._label_all(left[chosen])
        gaps = np.abs(scores - threshold)
        if self.n_rounds == 1:
            self.plan = plan
        self._left = left[~chosen]
        return Round(
            number=self.n_rounds,
            rows=left[chosen],
            n_labeled=len(self.codes) - len(left),
            n_unlabeled=len(left),
            threshold=threshold,
            lowered=lowered,
            epsilon=self.epsilon,
            iterations=plan.iterations,
            source_error=plan.source_error,
            target_error=plan.target_error,
            converged=plan.converged,
            threshold_gap=float(gaps[gaps > 0].min(initial=np.inf)),
            class_gap=class_gap,
            seconds=perf_counter() - start,
        )

    def _distribute(self, plan: ClassTransport, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Class shares of the rows left, block by block; their certainty, largest share, and whether they are reached.

        Rows that no label reaches have the shares of all rows and no certainty.
        """
        left = self._left
        scores, probable, reached = np.empty(len(left)), np.empty(len(left)), np.empty(len(left), dtype=bool)
        for block in self._blocks(len(left)):
            shares, reached[block] = plan.shares(logits[block]), plan.reached(logits[block])
            shares[~reached[block]] = self._prior
            scores[block] = np.where(reached[block], certainty(shares), 0.0)
            probable[block] = shares.max(axis=1)
            self.distributions[left[block]], self.certainty[left[block]] = shares, scores[block]
        return scores, probable, reached

    def _blocks(self, n_rows: int) -> list[slice]:
        """Blocks of rows that bound the memory if there are many classes."""
        return row_blocks(n_rows, rows_per_block(len(self._prior), BLOCK_ENTRIES))

    def _solve(self, logits: np.ndarray) -> ClassTransport:
        """Eq. 9 at the level of classes: each class ships the mass it has not shipped yet."""
        owed = owed_masses(self._prior, self._shipped(), len(logits), MIN_OWED_SHARE)
        start = None if self.plan is None else self.plan.h
        strength = self.strength * self._trust(len(logits))
        return solve_classes(logits, owed, strength, tol=self._tol, max_iter=self._max_iter, start=start)

    def _shipped(self) -> np.ndarray:
        """The mass that each class has shipped so far: a row labelled with probability 0.9 counts nine tenths.

        If such rows counted in full, the class labelled first would seem to have shipped too much when classes overlap,
        and the last rows would go to the other classes against the evidence. Exact shares count rows.
        """
        labeled = (self.codes != UNLABELED) & ~self._weightless
        if self.strength == 1:
            return np.bincount(self.codes[labeled], minlength=len(self._prior))
        rows = np.flatnonzero(labeled)
        return np.asarray(sum(self.distributions[rows[block]].sum(axis=0) for block in self._blocks(len(rows))))

    def _trust(self, n_left: int) -> float:
        """Factor on the strength: the fewer rows are left, the more an error of the shares weighs on each."""
        if self.strength == 1:
            return 1.0
        n_given = max(int(np.count_nonzero(self.round == 0)), 1)
        error = SHARE_ERROR * len(self.codes) / np.sqrt(len(self._prior) * n_given)
        return float(n_left / (n_left + error))

    def _choose(self, scores: np.ndarray, probable: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, float, bool]:
        """Eq. 12 and 15: the rows labelled now, the threshold, and whether it was lowered.

        Rows that no label reaches wait, since rows labelled now may reach them in the next round.
        """
        n_reached = int(np.count_nonzero(reached))
        least = max(1, int(np.ceil(self._min_round_share * len(scores))))
        if self._alpha is None:
            part = max(self._min_share_left * len(scores), MIN_SHARE_ALL * np.count_nonzero(self.round != 0))
            least = max(least, min(int(np.ceil(part)), n_reached))
        if self.n_rounds == self._max_rounds:
            least = len(scores)
        sure = scores > self._alpha if self._alpha is not None else (probable > AUTO_PROBABILITY) & reached
        if np.count_nonzero(sure) >= least:
            return sure, float(scores[sure].min() if self._alpha is None else self._alpha), False
        if least <= n_reached:
            scores = np.where(reached, scores, -1.0)
        threshold = nth_largest(scores, least)
        return scores >= threshold - TIE, threshold, True

    def _weight_joined_rows(self) -> None:
        """Give the rows labelled so far weights that sum to the prior share in each class.

        Rows of the clearest class are labelled first; with equal weights that class would soon outweigh the others.
        """
        joined = np.flatnonzero(self.round > 0)
        counts = np.bincount(self.codes[joined], minlength=len(self._prior))
        masses = JOINING_WEIGHT * len(joined) * self._prior / np.maximum(counts, 1)
        self._weights[joined] = masses[self.codes[joined]]

    def _label_all(self, rows: np.ndarray) -> float:
        """Label these rows by their class shares; returns the smallest gap between the two best classes of a row."""
        gaps = [self._label(rows[block], self.distributions[rows[block]]) for block in self._blocks(len(rows))]
        self._weight_joined_rows()
        return min(gaps)
