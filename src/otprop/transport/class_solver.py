"""Newton steps for the potentials of the classes, and stages of falling temperature where those do not get there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from otprop.transport.class_dual import Dual, Point
from otprop.transport.row_sums import TINY, first_reached, spread_sums

RELAXED = 0.999  # the strength of the plan where strength 1 is not feasible
MAX_DIRECT = 6  # steps at the temperature asked for, before the stages
FIRST_STAGE = 8.0  # the first temperature: the range of the potentials over this
COOLING = 2.0  # the temperature is divided by this from stage to stage
MAX_STAGES = 30
STAGE_ERROR = 1e-4  # up to which the stages before the last are solved,
STAGE_RATIO = 0.1  # with the logarithm of each class's mass this near to where it ought to be
WRONG = 0.2  # the error of a start beyond which another is considered
MAX_STALLED = 8  # steps without progress after which a stage gives up
WATCH = 5  # steps between two looks at whether the masses are feasible
REACH = 50.0  # a step is not longer than this or, where that is more, the range of the potentials
USELESS = 1e-6  # the slope, over that of the steepest way, of a shortened step that is not worth a try
SHORT = 0.1  # of a step: where no more can be taken, the next direction is tried as well
MAX_TRIALS = 40  # points tried along one direction,
MAX_WIDER = 6  # so many of them beyond the first
NEGLIGIBLE = 1e-16  # of the mass: classes that ship less take Sinkhorn's step where Newton's is too long
RIDGE = 1e-13
ROUNDING = 1e-12  # of the mass


class _InfeasibleError(Exception):
    """Some classes have to ship more than all rows they reach can take."""


class Solver:
    """Newton steps at one temperature, and stages of falling temperature where those do not get there."""

    def __init__(self, dual: Dual, prior: np.ndarray, reach: np.ndarray, tol: float, max_iter: int) -> None:
        self.dual, self.iterations, self.feasible = dual, 0, True
        self._prior, self._reach, self._tol, self._max_iter = prior, reach, tol, max_iter
        self._watched = dual.strength == 1 and bool((reach[prior > 0] < 1).any())

    def run(self, start: np.ndarray | None) -> Point:
        h = np.zeros(len(self.dual.q))
        if start is not None:
            given = start[self.dual.active]
            finite = np.isfinite(given)
            h = np.where(finite, given, given[finite].min(initial=0.0))
        try:
            if self._watched:
                self._check_excess(self._prior - self._reach)
            return self._solve(h)
        except _InfeasibleError:
            self._watched, self.feasible = False, False
            self.dual = replace(self.dual, strength=RELAXED)
            self._max_iter += self.iterations
            return self._solve(np.zeros(len(self.dual.q)))

    def _solve(self, h: np.ndarray) -> Point:
        point = self._descend(self.dual, [h], self._tol, limit=MAX_DIRECT)
        if point.error <= self._tol or self.iterations >= self._max_iter:
            return point
        return min(point, self._cool(), key=lambda point: point.error)

    def _cool(self) -> Point:
        """Bring the temperature down to one, each stage starting from what the two before it foretell.

        Potentials are followed in units of the cost, less the part that stems from the masses alone: they change
        ever less as the temperature falls, and at last in proportion to it.
        """
        first = np.log(max(self._spread, self.dual.softness, FIRST_STAGE) / FIRST_STAGE)
        n_stages = min(int(first / np.log(COOLING)) + 1, MAX_STAGES)
        log_q = np.log(self.dual.q)
        solved: list[tuple[float, np.ndarray]] = []
        for temperature in np.exp(np.linspace(first, 0.0, n_stages + 1)).tolist():
            final = temperature == 1.0
            if self.iterations >= self._max_iter and not final:
                continue
            dual = self.dual.heated(temperature)
            starts = [solved[-1][1] if solved else np.zeros(len(log_q))]
            if len(solved) > 1:
                (before, older), (last, newer) = solved[-2:]
                starts.insert(0, newer + (newer - older) * ((last - temperature) / (before - last)))
            bounds = (self._tol, np.inf) if final else (STAGE_ERROR, STAGE_RATIO)
            point = self._descend(dual, [h / temperature + dual.strength * log_q for h in starts], *bounds)
            solved.append((temperature, (point.h - dual.strength * log_q) * temperature))
        return point

    def _descend(
        self, dual: Dual, starts: list[np.ndarray], tol: float, ratio: float = np.inf, limit: float = np.inf
    ) -> Point:
        """Take Newton steps until the error and the logarithms of the masses that matter are within bounds.

        From the first start unless another is much better; after `limit` steps only where the end is in sight.
        """
        point = dual.at(starts[0])
        if point.error > WRONG:
            point = min([point, *(dual.at(h) for h in starts[1:])], key=lambda point: point.error)
        best = point
        stalled = 0
        for step in range(self._max_iter):
            matters = point.log_w > np.log(self._tol / len(point.m))
            done = point.error <= tol and np.abs(point.log_ratio[matters]).max(initial=0.0) <= ratio
            slow = stalled > MAX_STALLED or (step >= limit and point.error > STAGE_ERROR)
            if done or slow or self.iterations >= self._max_iter:
                break
            if self._watched and step % WATCH == WATCH - 1:
                self._check_feasible(point)
            self.iterations += 1
            new = self._step(dual, point)
            if new is None:
                break
            point = new
            stalled = 0 if point.error < 0.9 * best.error else stalled + 1
            best = min(best, point, key=lambda point: point.error)
        if self._watched and best.error > tol:
            self._check_feasible(point)
        return best

    def _check_feasible(self, point: Point) -> None:
        """Look for classes that have to ship more than all rows they reach can take: those of the largest potentials.

        Where there are any the dual falls for ever as their potentials rise, so a descent finds them.
        """
        order = np.argsort(-self.dual.full(point.h, -np.inf), kind="stable")
        (taken,) = self.dual.rows.sum(partial(first_reached, order=order))
        self._check_excess(np.cumsum(self._prior[order]) - np.cumsum(taken) / self.dual.mass)

    def _check_excess(self, excess: np.ndarray) -> None:
        if excess.max() > max(self._tol / 2, ROUNDING):  # what is too much here is missing there: half of the error
            raise _InfeasibleError

    def _step(self, dual: Dual, point: Point) -> Point | None:
        """A lower point; None where rounding leaves none."""
        best: Point | None = None
        for direction in self._directions(dual, point):
            new, length = _descend_along(dual, point, direction)
            if new is not None and (best is None or new.value < best.value):
                best = new
            if length > SHORT:
                break
        return best if best is None or best.overlap is not None else dual.at(best.h)

    def _directions(self, dual: Dual, point: Point) -> Iterator[np.ndarray]:
        """Where to go, best first: Newton's way to ``log m = log w``, to ``m = w`` (bounded), Sinkhorn's."""
        assert point.overlap is not None
        m = np.maximum(point.m, TINY)
        system = _NewtonSystem(m * (1.0 + dual.stiffness), np.outer(m, m) - point.overlap)
        direction = system.solve(m * point.log_ratio)
        too_long = direction is not None and np.ptp(direction) > REACH
        if direction is not None and not too_long:
            yield direction
        reach = (REACH + np.ptp(np.log(dual.q))) * (1.0 + dual.softness) + self._spread / dual.temperature
        if direction is not None and too_long:
            direction = np.clip(direction, -reach, reach)
            if -float(point.gradient @ direction) > USELESS * reach * point.error:
                yield direction
        sinkhorn = dual.strength * np.clip(point.log_ratio, -reach, reach)
        large = m > NEGLIGIBLE
        bounded = sinkhorn.copy()
        bounded[large] = system.solve_bounded(-point.gradient, reach, large)
        yield bounded
        yield sinkhorn

    @cached_property
    def _spread(self) -> float:
        """The mean range of a row's logits."""
        dual = self.dual
        return float(dual.rows.sum(partial(spread_sums, used=dual.active))[0]) / dual.mass


class _NewtonSystem:
    """The Newton system, `diagonal` on the diagonal plus `rest`, scaled to a diagonal of about one."""

    def __init__(self, diagonal: np.ndarray, rest: np.ndarray) -> None:
        self._scale = 1.0 / np.sqrt(diagonal)
        self._matrix = rest * self._scale * self._scale[:, None]
        self._matrix[np.diag_indices_from(rest)] += 1.0 + RIDGE

    def solve(self, right: np.ndarray) -> np.ndarray | None:
        try:
            factor = cho_factor(self._matrix, lower=True, check_finite=False)
        except LinAlgError:  # not positive definite, by rounding
            return None
        return np.asarray(self._scale * cho_solve(factor, self._scale * right, check_finite=False))

    def solve_bounded(self, right: np.ndarray, most: float, part: np.ndarray) -> np.ndarray:
        """The solution of a part with the share of each eigenvector at most so long: some are hardly determined."""
        values, vectors = eigh(self._matrix[np.ix_(part, part)], check_finite=False)
        shares = (self._scale * right)[part] @ vectors / np.maximum(values, RIDGE)
        vectors *= self._scale[part, None]
        bound = most / np.abs(vectors).max(axis=0)
        return np.asarray(vectors @ np.clip(shares, -bound, bound))


def _descend_along(dual: Dual, point: Point, direction: np.ndarray) -> tuple[Point | None, float]:
    """A lower point in this direction, about halfway at least to the lowest, and how far it is; None if there is none.

    The dual is convex, so the slope tells on which side of the lowest point a trial is. The full step is tried first,
    and it is the only trial where Newton's model holds.
    """
    slope = float(point.gradient @ direction)
    kept: tuple[Point | None, float] = None, 0.0
    length, low, high = 1.0, 0.0, np.inf
    for trial in range(MAX_TRIALS if slope < 0 else 0):
        new = dual.at(point.h + length * direction, overlap=trial == 0)
        steepness = float(new.gradient @ direction) / -slope  # -1 at the start, 0 at the lowest point
        gain = (point.value - new.value) / (-length * slope)
        drowned = -length * slope < 1e-13 * (1.0 + abs(point.value))  # in rounding: the value, but not yet the slope
        near = abs(steepness) <= 0.5 and (steepness <= 0 or gain > 0 or drowned)
        if near or (steepness > 0 and gain >= 0.3):
            return new, length
        if steepness <= 0:
            kept, low = (new, length), length
        else:
            high = length
            if low == 0 and gain > 0:
                kept = new, length
        if high == np.inf:
            if trial == MAX_WIDER:
                break
            length *= 4.0
        elif low == 0:
            length *= min(max(1.0 / (1.0 + steepness), 0.1), 0.5)
        else:
            length = float(np.sqrt(low * high)) if high > 4.0 * low else 0.5 * (low + high)
    return kept
