"""Entropic transport from classes to rows: each class ships its share, whichever labelled rows it comes from.

With one potential a class, ``plan_jk = b_j softmax_k(h_k + L_jk)``, where L is minus the cost over epsilon. The rows'
marginal b holds by construction. What the classes ship, m, is held to their shares q by a penalty ``rho KL(m | q)``,
in units of epsilon; in terms of the strength ``rho = t / (1 - t)``, as in Sinkhorn's iteration with its update shrunk
by t. The dual, in which a constant added to h makes no difference, is

    D(h) = sum_j b_j log sum_k exp(h_k + L_jk) + rho log sum_k q_k exp(-h_k / rho),

with ``-<q, h>`` for its second term at t = 1: convex, in K numbers. Its gradient is ``m - w``, where w, proportional
to ``q_k exp(-h_k / rho)``, is what the classes ought to ship at h. Newton's method on ``log m = log w`` is Sinkhorn's
step where a class is far from its share and Newton's on the dual where it is near: two or three steps are the rule.
A step needs K + K x K sums over the rows, from whoever holds them (`RowSums`), and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from otprop._checks import check_count, check_number

RELAXED = 0.999  # the strength of the plan where strength 1 is not feasible
# With few classes, what is computed from a block of rows stays in the processor's cache, and its products are too small
# to be split over threads, which on a busy machine wait for each other. With more they are split: in few large blocks.
FEW_CLASSES = 48
BLOCK_BYTES, LARGE_BLOCK_BYTES = 2**17, 2**23
BLOCK_PRODUCT = 2**18
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
TINY = 1e-300

RowFunction = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


class RowSums(Protocol):
    """Sums over all rows, wherever these are."""

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        """Apply `function` to the logits (rows by classes) and the masses of each part of the rows, add up the results.

        The function can be pickled, takes parts of any size, none at all included, and what it returns does not grow
        with them.
        """
        ...


class LocalRows:
    """Rows in memory, summed over in blocks of a bounded size."""

    def __init__(self, logits: np.ndarray, masses: np.ndarray) -> None:
        self._logits, self._masses = logits, masses
        n_classes = logits.shape[1]
        if n_classes <= FEW_CLASSES:
            self._lines = min(BLOCK_BYTES // (8 * n_classes), BLOCK_PRODUCT // n_classes**2, 2**13)
        else:
            self._lines = max(LARGE_BLOCK_BYTES // (8 * n_classes), 1)

    def sum(self, function: RowFunction) -> tuple[np.ndarray, ...]:
        total: tuple[np.ndarray, ...] = ()
        for start in range(0, max(len(self._logits), 1), self._lines):
            block = slice(start, start + self._lines)
            part = function(self._logits[block], self._masses[block])
            if not total:
                total = tuple(np.zeros_like(piece) for piece in part)
            for whole, piece in zip(total, part, strict=True):
                whole += piece
        return total


@dataclass(frozen=True)
class ClassTransport:
    """Class potentials, and how far to trust them.

    Attributes
    ----------
    h : ndarray of shape (n_classes,), the potentials in units of epsilon, with ``m_k = q_k exp(-h_k / rho)``, or
        ``<q, h> = 0`` at strength 1. Minus infinity for a class without mass (except at strength 0, where masses do
        not count), 0 for one that reaches no row
    strength : float, as asked, or `RELAXED` where 1 is not feasible
    iterations : int, Newton steps
    source_error : float, L1 distance of what the classes ship from what they ought to at this strength, the total
        mass being one; classes that reach no row are left out
    target_error : float, by how much the mass shipped differs from that of the rows reached, which is one
    converged : bool, both errors are within the tolerance
    feasible : bool, False where strength 1 was asked for and some classes were found that have to ship more than all
        rows they reach can take; the rest then describes the relaxed problem. At strength 1, `converged` shows that
        it is; True without that leaves it open
    class_masses : ndarray of shape (n_classes,), what each class ships, in units of the rows' masses
    prior : ndarray of shape (n_classes,), the class masses asked for, summing to one
    """

    h: np.ndarray
    strength: float
    iterations: int
    source_error: float
    target_error: float
    converged: bool
    feasible: bool
    class_masses: np.ndarray
    prior: np.ndarray = field(repr=False)

    def reached(self, logits: np.ndarray) -> np.ndarray:
        """Which rows are reached by a class with mass: an array of bool. The others are no part of the plan."""
        logits = _check_logits(logits, len(self.h))
        return np.asarray((logits[:, self.h > -np.inf] > -np.inf).any(axis=1))

    def shares(self, logits: np.ndarray) -> np.ndarray:
        """Each row's mass by class, summing to one: for the rows that were solved for, or for others.

        Parameters
        ----------
        logits : ndarray of shape (n_rows, n_classes)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), the prior for rows that are not reached
        """
        shares = _check_logits(logits, len(self.h)) + self.h
        top = shares.max(axis=1, keepdims=True)
        shares -= np.where(top > -np.inf, top, 0.0)
        np.exp(shares, out=shares)
        shares[top[:, 0] == -np.inf] = self.prior
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


def solve_classes(
    logits: np.ndarray,
    class_masses: np.ndarray,
    strength: float,
    *,
    row_masses: np.ndarray | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
    start: np.ndarray | None = None,
) -> ClassTransport:
    """Transport classes to rows.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_classes), float32 or float64, minus the cost over epsilon; minus infinity
        where a class does not reach a row
    class_masses : ndarray of shape (n_classes,), not negative; scaled to the mass of the rows that are reached
    strength : float in [0, 1], how far the class masses are enforced: 0 not at all (kernel vote), 1 exactly
    row_masses : ndarray of shape (n_rows,), positive (None: equal, one in total)
    tol : float, the larger of the two L1 errors that is accepted, the total mass being one
    max_iter : int, in Newton steps
    start : ndarray of shape (n_classes,), potentials to start from, such as the h of the last round

    Returns
    -------
    ClassTransport

    Examples
    --------
    >>> import numpy as np
    >>> from otprop.transport.class_level import solve_classes
    >>> logits = np.array([[0.0, -1.0], [0.0, -2.0], [0.0, -3.0]])
    >>> transport = solve_classes(logits, np.array([2.0, 1.0]), strength=1.0)
    >>> transport.converged
    True
    >>> transport.shares(logits).sum(axis=0).round(6)
    array([2., 1.])
    """
    logits = _check_logits(logits, len(np.atleast_1d(class_masses)))
    n_rows = len(logits)
    masses = np.full(n_rows, 1.0 / max(n_rows, 1)) if row_masses is None else np.asarray(row_masses, dtype=np.float64)
    if masses.shape != (n_rows,) or not ((masses > 0) & (masses < np.inf)).all():
        raise ValueError(f"row_masses must be positive and finite, one for each of the {n_rows} rows.")
    unit = float(masses.max(initial=0.0)) or 1.0
    rows = LocalRows(logits, masses / unit)
    transport = solve_rows(rows, class_masses, strength, tol=tol, max_iter=max_iter, start=start)
    return replace(transport, class_masses=transport.class_masses * unit)


def solve_rows(
    rows: RowSums,
    class_masses: np.ndarray,
    strength: float,
    *,
    tol: float = 1e-9,
    max_iter: int = 100,
    start: np.ndarray | None = None,
) -> ClassTransport:
    """Transport classes to rows that are known by their sums alone; see `solve_classes`."""
    check_number("strength", strength, least=0, most=1)
    check_number("tol", tol, above=0, most=1)
    check_count("max_iter", max_iter)
    prior = _check_masses("class_masses", class_masses)
    if start is not None:
        start = np.asarray(start, dtype=np.float64)
        if start.shape != prior.shape or np.isnan(start).any():
            raise ValueError(f"start must hold a potential for each of the {len(prior)} classes; got {start!r}.")
    used = prior > 0 if strength > 0 else np.ones(len(prior), dtype=bool)
    h = np.where(used, 0.0, -np.inf)
    mass, reach = rows.sum(partial(_reach, used=used))
    active = used & (reach > 0)
    if strength == 0 or not active.any():
        _, m = rows.sum(partial(_plan_sums, h=h, scale=1.0, overlap=False))
        error = abs(1.0 - float(m.sum() / mass)) if mass > 0 else 0.0
        return ClassTransport(h, float(strength), 0, 0.0, error, error <= tol, True, m, prior)
    share = float(prior[active].sum())
    dual = _Dual(rows, float(mass), active, prior[active] / share, share, float(strength))
    solver = _Solver(dual, prior, reach / mass, tol, max_iter)
    point = solver.run(start)
    h[active] = point.h
    error = abs(1.0 - float(point.m.sum()))
    return ClassTransport(
        h=h,
        strength=solver.dual.strength,
        iterations=solver.iterations,
        source_error=point.error,
        target_error=error,
        converged=max(point.error, error) <= tol,
        feasible=solver.feasible,
        class_masses=dual.full(point.m, 0.0) * mass,
        prior=prior,
    )


def owed_masses(prior: np.ndarray, n_labeled: np.ndarray, n_left: float, floor: float = 0.02) -> np.ndarray:
    """What each class still has to ship: its share of all rows, less the rows that it has been given.

    Parameters
    ----------
    prior : ndarray of shape (n_classes,), the shares of the classes among all rows, scaled to sum to one
    n_labeled : ndarray of shape (n_classes,), how many rows are labelled, by class
    n_left : float, how many rows are not
    floor : float, the least that a class ships, as a part of its share of the rows left

    Returns
    -------
    ndarray of shape (n_classes,), summing to `n_left`
    """
    check_number("n_left", n_left, least=0)
    check_number("floor", floor, least=0)
    prior = _check_masses("prior", prior)
    n_labeled = np.asarray(n_labeled, dtype=np.float64)
    if n_labeled.shape != prior.shape or not ((n_labeled >= 0) & (n_labeled < np.inf)).all():
        raise ValueError(f"n_labeled must be finite and not negative, one number for each of the {len(prior)} classes.")
    owed = np.maximum(prior * (n_labeled.sum() + n_left) - n_labeled, floor * prior * n_left)
    return np.asarray(owed * (n_left / owed.sum())) if n_left > 0 else np.zeros(len(prior))


@dataclass(frozen=True)
class _Point:
    """The dual at potentials h: its value, what the classes ship (m) and ought to (w), and how they overlap."""

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
class _Dual:
    """The dual as a function of the active classes' potentials: those that have mass (q) and reach a row.

    A temperature other than one multiplies epsilon, rho in units of the cost being the same.
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

    def heated(self, temperature: float) -> _Dual:
        strength = self.strength / (self.strength + (1.0 - self.strength) * temperature)
        return replace(self, strength=strength, temperature=temperature)

    def full(self, values: np.ndarray, rest: float) -> np.ndarray:
        """Values of all classes from those of the active ones."""
        whole = np.full(len(self.active), rest)
        whole[self.active] = values
        return whole

    def at(self, h: np.ndarray, overlap: bool = True) -> _Point:
        h = h - float(self.q @ h)
        log_w = np.log(self.q) - self.stiffness * h
        total = _log_sum(log_w)
        log_w -= total
        shift = self.softness * (total + np.log(self.share))
        h = h + shift
        scale = 1.0 / self.temperature
        value, m, *rest = self.rows.sum(partial(_plan_sums, h=self.full(h, -np.inf), scale=scale, overlap=overlap))
        m = m[self.active] / self.mass
        between = rest[0][np.ix_(self.active, self.active)] / self.mass if overlap else None
        value = float(value) / self.mass - shift + self.softness * total
        return _Point(h, value, m, log_w, m - np.exp(log_w), between)


class _InfeasibleError(Exception):
    """Some classes have to ship more than all rows they reach can take."""


class _Solver:
    """Newton steps at one temperature, and stages of falling temperature where those do not get there."""

    def __init__(self, dual: _Dual, prior: np.ndarray, reach: np.ndarray, tol: float, max_iter: int) -> None:
        self.dual, self.iterations, self.feasible = dual, 0, True
        self._prior, self._reach, self._tol, self._max_iter = prior, reach, tol, max_iter
        self._watched = dual.strength == 1 and bool((reach[prior > 0] < 1).any())

    def run(self, start: np.ndarray | None) -> _Point:
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

    def _solve(self, h: np.ndarray) -> _Point:
        point = self._descend(self.dual, [h], self._tol, limit=MAX_DIRECT)
        if point.error <= self._tol or self.iterations >= self._max_iter:
            return point
        return min(point, self._cool(), key=lambda point: point.error)

    def _cool(self) -> _Point:
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
        self, dual: _Dual, starts: list[np.ndarray], tol: float, ratio: float = np.inf, limit: float = np.inf
    ) -> _Point:
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

    def _check_feasible(self, point: _Point) -> None:
        """Look for classes that have to ship more than all rows they reach can take: those of the largest potentials.

        Where there are any the dual falls for ever as their potentials rise, so a descent finds them.
        """
        order = np.argsort(-self.dual.full(point.h, -np.inf), kind="stable")
        (taken,) = self.dual.rows.sum(partial(_first_reached, order=order))
        self._check_excess(np.cumsum(self._prior[order]) - np.cumsum(taken) / self.dual.mass)

    def _check_excess(self, excess: np.ndarray) -> None:
        if excess.max() > max(self._tol / 2, ROUNDING):  # what is too much here is missing there: half of the error
            raise _InfeasibleError

    def _step(self, dual: _Dual, point: _Point) -> _Point | None:
        """A lower point; None where rounding leaves none."""
        best: _Point | None = None
        for direction in self._directions(dual, point):
            new, length = _descend_along(dual, point, direction)
            if new is not None and (best is None or new.value < best.value):
                best = new
            if length > SHORT:
                break
        return best if best is None or best.overlap is not None else dual.at(best.h)

    def _directions(self, dual: _Dual, point: _Point) -> Iterator[np.ndarray]:
        """Where to go, best first: Newton's way to ``log m = log w``, to ``m = w`` (bounded), Sinkhorn's."""
        assert point.overlap is not None
        m = np.maximum(point.m, TINY)
        system = _System(m * (1.0 + dual.stiffness), np.outer(m, m) - point.overlap)
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
        return float(dual.rows.sum(partial(_spread, used=dual.active))[0]) / dual.mass


class _System:
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


def _descend_along(dual: _Dual, point: _Point, direction: np.ndarray) -> tuple[_Point | None, float]:
    """A lower point in this direction, about halfway at least to the lowest, and how far it is; None if there is none.

    The dual is convex, so the slope tells on which side of the lowest point a trial is. The full step is tried first,
    and it is the only trial where Newton's model holds.
    """
    slope = float(point.gradient @ direction)
    kept: tuple[_Point | None, float] = None, 0.0
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


def _plan_sums(
    logits: np.ndarray, masses: np.ndarray, h: np.ndarray, scale: float, overlap: bool
) -> tuple[np.ndarray, ...]:
    """``sum_j b_j log sum_k exp(h_k + scale L_jk)``, ``m_k = sum_j b_j p_jk`` and ``sum_j b_j p_jk p_jl``.

    Rows that no class reaches count for nothing.
    """
    x = np.empty(logits.shape[::-1])  # classes by rows: sums over classes are then sums of long stretches
    if scale == 1.0:
        np.add(logits.T, h[:, None], out=x)
    else:
        np.multiply(logits.T, scale, out=x, dtype=np.float64)
        x += h[:, None]
    top = x.max(axis=0)
    top[top == -np.inf] = 0.0
    x -= top
    np.exp(x, out=x)
    total = x.sum(axis=0)
    total[total == 0] = 1.0
    value = np.array(masses @ (top + np.log(total)))
    masses = masses / total
    m = x @ masses
    if not overlap:
        return value, m
    masses /= total
    x *= np.sqrt(masses, out=masses)
    return value, m, x @ x.T


def _reach(logits: np.ndarray, masses: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mass of the rows that a class in use reaches, and of those that each class reaches."""
    if logits.min(initial=0.0) > -np.inf:
        total = masses.sum()
        return np.array(total), np.full(len(used), total)
    reached = logits > -np.inf
    return np.array(masses[reached[:, used].any(axis=1)].sum()), masses @ reached


def _spread(logits: np.ndarray, masses: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """The sum over the rows of the range of their finite logits."""
    finite = (logits > -np.inf) & used
    top = logits.max(axis=1, where=finite, initial=-np.inf).astype(np.float64)
    low = logits.min(axis=1, where=finite, initial=np.inf)
    return (np.array(masses @ np.clip(top - low, 0.0, 1.0 / TINY)),)


def _first_reached(logits: np.ndarray, masses: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mass of the rows by the first class, in this order, that reaches them."""
    reached = logits[:, order] > -np.inf
    first = reached.argmax(axis=1)
    return (np.bincount(first, weights=masses * reached.any(axis=1), minlength=len(order)),)


def _log_sum(logs: np.ndarray) -> float:
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))


def _check_logits(logits: np.ndarray, n_classes: int) -> np.ndarray:
    logits = np.asarray(logits)
    if logits.dtype not in (np.float32, np.float64):
        logits = logits.astype(np.float64)
    if logits.ndim != 2 or logits.shape[1] != n_classes:
        raise ValueError(f"logits has shape {logits.shape}, expected (n_rows, {n_classes}), a column for each class.")
    if not logits.max(initial=-np.inf) < np.inf:
        raise ValueError("logits contains NaN or plus infinity; every entry must be finite or minus infinity.")
    return logits


def _check_masses(name: str, masses: np.ndarray) -> np.ndarray:
    """Scaled to sum to one."""
    masses = np.asarray(masses, dtype=np.float64)
    if masses.ndim != 1 or not ((masses >= 0) & (masses < np.inf)).all() or not masses.any():
        raise ValueError(f"{name} must be finite and not negative, with a positive sum; got {masses!r}.")
    masses = masses / masses.max()
    return np.asarray(masses / masses.sum())
