"""The dual of class-level transport in the class potentials, and Newton's method for it.

Where Newton's method does not converge directly, the potentials are annealed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from otprop.transport.row_sums import TINY, RowSums, first_reached, plan_sums, spread_sums

RELAXED = 0.999  # the strength that replaces strength 1 where that is infeasible
MAX_DIRECT_STEPS = 6  # Newton steps at temperature 1 before annealing
FIRST_TEMPERATURE = 1 / 8  # times the mean range of the logits
COOLING = 2.0  # factor between two temperatures
MAX_STAGES = 30
STAGE_ERROR = 1e-4  # tolerance of all stages but the last, for the error
STAGE_LOG_RATIO = 0.1  # and for the log ratio of each class mass to its target
BAD_START_ERROR = 0.2  # the error of the first start above which the other starts are tried
MAX_STALLED = 8  # steps without progress after which a stage stops
FEASIBILITY_INTERVAL = 5  # steps between two checks for feasibility
MAX_STEP_LENGTH = 50.0  # in units of the potentials; longer if the potentials' range is larger
MIN_SLOPE = 1e-6  # of a clipped Newton step, relative to the steepest direction, to be tried at all
SHORT_STEP = 0.1  # fraction of a step below which the next direction is tried too
MAX_TRIALS = 40  # points evaluated along one direction
MAX_EXPANSIONS = 6  # how often a step is lengthened
NEGLIGIBLE_MASS = 1e-16  # classes with less mass take Sinkhorn's step where Newton's is too long
RIDGE = 1e-13
ROUNDING = 1e-12  # of the total mass


@dataclass(frozen=True)
class DualPoint:
    """The dual at potentials h: its value and gradient, the class masses m and their target w, and the overlap.

    The overlap of classes k and l is ``sum_j b_j p_jk p_jl``, with the class shares p_j of row j.
    """

    h: np.ndarray
    value: float
    m: np.ndarray
    log_w: np.ndarray
    gradient: np.ndarray
    overlap: np.ndarray | None

    @cached_property
    def error(self) -> float:
        return float(np.abs(self.gradient).sum())

    @property
    def log_ratio(self) -> np.ndarray:
        return np.asarray(self.log_w - np.log(np.maximum(self.m, TINY)))


@dataclass(frozen=True)
class ClassDual:
    """The dual as a function of the potentials of the active classes, which have mass (q) and reach a row.

    A temperature other than one multiplies epsilon; rho stays the same in units of the cost.
    """

    rows: RowSums
    mass: float
    active: np.ndarray
    q: np.ndarray
    share: float
    strength: float
    temperature: float = 1.0

    @property
    def stiffness(self) -> float:
        """One over rho."""
        return (1.0 - self.strength) / max(self.strength, TINY**0.5)

    @property
    def softness(self) -> float:
        """Rho where it is finite."""
        return 1.0 / self.stiffness if self.strength < 1 else 0.0

    def at_temperature(self, temperature: float) -> ClassDual:
        strength = self.strength / (self.strength + (1.0 - self.strength) * temperature)
        return replace(self, strength=strength, temperature=temperature)

    def expand(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Values of the active classes as values of all classes, `fill` for the others."""
        expanded = np.full(len(self.active), fill)
        expanded[self.active] = values
        return expanded

    def evaluate(self, h: np.ndarray, overlap: bool = True) -> DualPoint:
        h = h - float(self.q @ h)
        log_w = np.log(self.q) - self.stiffness * h
        total = _log_sum(log_w)
        log_w -= total
        shift = self.softness * (total + np.log(self.share))
        h = h + shift
        scale = 1.0 / self.temperature
        value, m, *rest = self.rows.sum(partial(plan_sums, h=self.expand(h, -np.inf), scale=scale, overlap=overlap))
        m = m[self.active] / self.mass
        between = rest[0][np.ix_(self.active, self.active)] / self.mass if overlap else None
        value = float(value) / self.mass - shift + self.softness * total
        return DualPoint(h, value, m, log_w, m - np.exp(log_w), between)


def _log_sum(logs: np.ndarray) -> float:
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))


class _InfeasibleError(Exception):
    """Some classes have more mass than all rows that they reach."""


class ClassSolver:
    """Newton's method at temperature 1, with annealing where it does not converge."""

    def __init__(self, dual: ClassDual, prior: np.ndarray, reach: np.ndarray, tol: float, max_iter: int) -> None:
        self.dual, self.iterations, self.feasible = dual, 0, True
        self._prior, self._reach, self._tol, self._max_iter = prior, reach, tol, max_iter
        self._may_be_infeasible = dual.strength == 1 and bool((reach[prior > 0] < 1).any())

    def run(self, start: np.ndarray | None) -> DualPoint:
        h = np.zeros(len(self.dual.q))
        if start is not None:
            start = start[self.dual.active]
            finite = np.isfinite(start)
            h = np.where(finite, start, start[finite].min(initial=0.0))
        try:
            if self._may_be_infeasible:
                self._check_excess(self._prior - self._reach)
            return self._solve(h)
        except _InfeasibleError:
            self._may_be_infeasible, self.feasible = False, False
            self.dual = replace(self.dual, strength=RELAXED)
            self._max_iter += self.iterations
            return self._solve(np.zeros(len(self.dual.q)))

    def _solve(self, h: np.ndarray) -> DualPoint:
        point = self._descend(self.dual, [h], self._tol, limit=MAX_DIRECT_STEPS)
        if point.error <= self._tol or self.iterations >= self._max_iter:
            return point
        return min(point, self._anneal(), key=lambda point: point.error)

    def _anneal(self) -> DualPoint:
        """Lower the temperature to 1 in stages, each starting from an extrapolation of the two before it.

        The extrapolated quantity is ``temperature (h - strength log q)``: it changes less and less as the temperature
        falls, in the end linearly with it.
        """
        first = np.log(max(FIRST_TEMPERATURE * max(self._mean_range, self.dual.softness), 1.0))
        n_stages = min(int(first / np.log(COOLING)) + 1, MAX_STAGES)
        log_q = np.log(self.dual.q)
        solved: list[tuple[float, np.ndarray]] = []
        for temperature in np.exp(np.linspace(first, 0.0, n_stages + 1)).tolist():
            final = temperature == 1.0
            if self.iterations >= self._max_iter and not final:
                continue
            dual = self.dual.at_temperature(temperature)
            starts = [solved[-1][1] if solved else np.zeros(len(log_q))]
            if len(solved) > 1:
                (before, older), (last, newer) = solved[-2:]
                starts.insert(0, newer + (newer - older) * ((last - temperature) / (before - last)))
            bounds = (self._tol, np.inf) if final else (STAGE_ERROR, STAGE_LOG_RATIO)
            point = self._descend(dual, [h / temperature + dual.strength * log_q for h in starts], *bounds)
            solved.append((temperature, (point.h - dual.strength * log_q) * temperature))
        return point

    def _descend(
        self, dual: ClassDual, starts: list[np.ndarray], tol: float, ratio: float = np.inf, limit: float = np.inf
    ) -> DualPoint:
        """Take Newton steps until the error is within `tol` and the log ratios of relevant masses within `ratio`.

        Starts from the first of `starts` unless its error is large and another one's is smaller. After `limit` steps it
        continues only if it is close to convergence.
        """
        point = dual.evaluate(starts[0])
        if point.error > BAD_START_ERROR:
            point = min([point, *(dual.evaluate(h) for h in starts[1:])], key=lambda point: point.error)
        best = point
        stalled = 0
        for step in range(self._max_iter):
            relevant = point.log_w > np.log(self._tol / len(point.m))
            done = point.error <= tol and np.abs(point.log_ratio[relevant]).max(initial=0.0) <= ratio
            slow = stalled > MAX_STALLED or (step >= limit and point.error > STAGE_ERROR)
            if done or slow or self.iterations >= self._max_iter:
                break
            if self._may_be_infeasible and step % FEASIBILITY_INTERVAL == FEASIBILITY_INTERVAL - 1:
                self._check_feasible(point)
            self.iterations += 1
            new = self._step(dual, point)
            if new is None:
                break
            point = new
            stalled = 0 if point.error < 0.9 * best.error else stalled + 1
            best = min(best, point, key=lambda point: point.error)
        if self._may_be_infeasible and best.error > tol:
            self._check_feasible(point)
        return best

    def _check_feasible(self, point: DualPoint) -> None:
        """Check whether the classes with the largest potentials have more mass than all rows that they reach.

        If such classes exist the dual is unbounded in the direction of their potentials, so a descent finds them.
        """
        order = np.argsort(-self.dual.expand(point.h, -np.inf), kind="stable")
        (taken,) = self.dual.rows.sum(partial(first_reached, order=order))
        self._check_excess(np.cumsum(self._prior[order]) - np.cumsum(taken) / self.dual.mass)

    def _check_excess(self, excess: np.ndarray) -> None:
        if excess.max() > max(self._tol / 2, ROUNDING):  # excess mass counts twice in the L1 error
            raise _InfeasibleError

    def _step(self, dual: ClassDual, point: DualPoint) -> DualPoint | None:
        """One Newton step with line search; None if rounding leaves no lower point."""
        best: DualPoint | None = None
        for direction in self._directions(dual, point):
            new, length = _descend_along(dual, point, direction)
            if new is not None and (best is None or new.value < best.value):
                best = new
            if length > SHORT_STEP:
                break
        return best if best is None or best.overlap is not None else dual.evaluate(best.h)

    def _directions(self, dual: ClassDual, point: DualPoint) -> Iterator[np.ndarray]:
        """Descent directions, best first: Newton's for ``log m = log w``, Newton's for ``m = w``, Sinkhorn's."""
        assert point.overlap is not None
        m = np.maximum(point.m, TINY)
        system = _NewtonSystem(m * (1.0 + dual.stiffness), np.outer(m, m) - point.overlap)
        direction = system.solve(m * point.log_ratio)
        too_long = direction is not None and np.ptp(direction) > MAX_STEP_LENGTH
        if direction is not None and not too_long:
            yield direction
        longest = (MAX_STEP_LENGTH + np.ptp(np.log(dual.q))) * (
            1.0 + dual.softness
        ) + self._mean_range / dual.temperature
        if direction is not None and too_long:
            direction = np.clip(direction, -longest, longest)
            if -float(point.gradient @ direction) > MIN_SLOPE * longest * point.error:
                yield direction
        sinkhorn = dual.strength * np.clip(point.log_ratio, -longest, longest)
        large = m > NEGLIGIBLE_MASS
        bounded = sinkhorn.copy()
        bounded[large] = system.solve_bounded(-point.gradient, longest, large)
        yield bounded
        yield sinkhorn

    @cached_property
    def _mean_range(self) -> float:
        """The mean range of a row's logits."""
        dual = self.dual
        return float(dual.rows.sum(partial(spread_sums, used=dual.active))[0]) / dual.mass


class _NewtonSystem:
    """The linear system ``diag(diagonal) + rest`` of a Newton step, scaled to a diagonal of about one."""

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
        """Solve for the classes in `part`, each eigenvector contributing at most `most`: some are ill-conditioned."""
        values, vectors = eigh(self._matrix[np.ix_(part, part)], check_finite=False)
        coefficients = (self._scale * right)[part] @ vectors / np.maximum(values, RIDGE)
        vectors *= self._scale[part, None]
        bound = most / np.abs(vectors).max(axis=0)
        return np.asarray(vectors @ np.clip(coefficients, -bound, bound))


def _descend_along(dual: ClassDual, point: DualPoint, direction: np.ndarray) -> tuple[DualPoint | None, float]:
    """Line search: a lower point, at least about halfway to the minimum, and its step length; None if there is none.

    The dual is convex, so the slope at a trial shows on which side of the minimum it lies. The full step is tried
    first; near the solution it is accepted.
    """
    slope = float(point.gradient @ direction)
    kept: tuple[DualPoint | None, float] = None, 0.0
    length, low, high = 1.0, 0.0, np.inf
    for trial in range(MAX_TRIALS if slope < 0 else 0):
        new = dual.evaluate(point.h + length * direction, overlap=trial == 0)
        steepness = float(new.gradient @ direction) / -slope  # -1 at the start, 0 at the minimum
        gain = (point.value - new.value) / (-length * slope)
        rounded = -length * slope < 1e-13 * (1.0 + abs(point.value))  # the gain is below rounding, the slope is not
        near = abs(steepness) <= 0.5 and (steepness <= 0 or gain > 0 or rounded)
        if near or (steepness > 0 and gain >= 0.3):
            return new, length
        if steepness <= 0:
            kept, low = (new, length), length
        else:
            high = length
            if low == 0 and gain > 0:
                kept = new, length
        if high == np.inf:
            if trial == MAX_EXPANSIONS:
                break
            length *= 4.0
        elif low == 0:
            length *= min(max(1.0 / (1.0 + steepness), 0.1), 0.5)
        else:
            length = float(np.sqrt(low * high)) if high > 4.0 * low else 0.5 * (low + high)
    return kept
