"""Entropic optimal transport between two weighted sets of rows (Eq. 9).

The marginal b is met exactly in every step, as after half a Sinkhorn iteration. What remains is a concave function of
the potentials f, maximised by Newton steps at one epsilon (`stage`). Epsilon is lowered in stages from the range of the
cost, each stage starting from the potentials of the one before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from otprop._validation import InputError, check_count, check_number
from otprop.geometry.cost import ArrayCost, Cost
from otprop.transport.kernel import Kernel
from otprop.transport.result import TransportResult
from otprop.transport.stage import Stage

FIRST_EPSILON = 1 / 8  # times the range of the cost
MAX_STAGES = 60
WARM_START_ERROR = 0.2  # initial potentials with a larger error are replaced by the schedule
MIN_WEIGHT = 1e-30  # lower bound of a and b, far below any tolerance: ratios of weights stay finite
# (factor between two epsilons, tolerance of all stages but the last). The fine schedule is for problems in which the
# coarse one leaves mass in groups of rows that no longer exchange any.
COARSE, FINE = (4.0, 1e-2), (2.0, 0.0)


def sinkhorn(
    cost: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    epsilon: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 20_000,
    f: np.ndarray | None = None,
) -> TransportResult:
    """Solve entropic optimal transport for a cost matrix (Eq. 9).

    Parameters
    ----------
    cost : ndarray of shape (len(a), len(b))
    a, b : ndarray, positive weights of the rows and columns of `cost`; each is normalised to sum to one
    epsilon : float > 0
    tol : float, tolerance for the L1 error of each marginal
    max_iter : int, in units of one Sinkhorn iteration
    f : ndarray of shape (len(a),), initial potentials (None: start from epsilon scaling)

    Returns
    -------
    TransportResult

    Examples
    --------
    >>> import numpy as np
    >>> from otprop.transport import sinkhorn
    >>> result = sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), np.ones(2), epsilon=0.1)
    >>> result.converged
    True
    >>> result.plan().round(4)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    check_number("epsilon", epsilon, above=0)
    check_number("tol", tol, above=0, most=1)
    check_count("max_iter", max_iter)
    cost = np.asarray(cost, dtype=np.float64)
    a, b = (np.atleast_1d(np.asarray(weights, dtype=np.float64)) for weights in (a, b))
    if cost.shape != (len(a), len(b)) or cost.size == 0:
        raise InputError(
            f"cost has shape {cost.shape}, expected (len(a), len(b)) = {(len(a), len(b))}, both 1 or more."
        )
    if not np.isfinite(cost).all():
        raise InputError("cost contains NaN or infinity; every entry must be finite.")
    for name, weights in (("a", a), ("b", b)):
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError(f"{name} must be positive and finite, got values from {weights.min()} to {weights.max()}.")
    if f is not None:
        f = np.asarray(f, dtype=np.float64)
        if f.shape != a.shape or not np.isfinite(f).all():
            raise InputError(f"f must hold {len(a)} finite potentials, one for each entry of a; got shape {f.shape}.")
    a, b = a / a.max(), b / b.max()  # their sums do not overflow
    blocked = ArrayCost(np.ascontiguousarray(cost.T))
    result = solve(blocked, a / a.sum(), b / b.sum(), float(epsilon), tol=tol, max_iter=max_iter, f=f)
    return result.without_kernel()


def solve(
    cost: Cost,
    a: np.ndarray,
    b: np.ndarray,
    epsilon: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 20_000,
    f: np.ndarray | None = None,
    kernel: Kernel | None = None,
) -> TransportResult:
    """Solve Eq. 9 for a blocked cost of shape (len(b), len(a)) and weights that sum to one; see `sinkhorn`.

    `kernel` is that of the previous round, advanced to this cost, if there is one that can be used with `f`.
    """
    a, b = np.maximum(a, MIN_WEIGHT), np.maximum(b, MIN_WEIGHT)
    results: list[TransportResult] = []
    used = 0
    if f is not None:
        stage = Stage(cost, a, b, epsilon, f, tol, kernel)
        del kernel  # freed if the schedule starts over
        if stage.error <= WARM_START_ERROR or len(_schedule(cost, epsilon, COARSE[0])) == 1:
            stage.run(tol, max_iter)
            results.append(stage.result(tol, stage.iterations))
        used = stage.iterations
        del stage
    for factor, stage_tol in (COARSE, FINE):
        if results and (results[-1].converged or used >= max_iter):
            break
        results = [result.without_kernel() for result in results]
        stage, used = _descend(cost, a, b, epsilon, tol, factor, max(stage_tol, tol), used, max_iter)
        results.append(stage.result(tol, used))
        del stage  # only the result holds its kernel
    best = min(results, key=lambda result: result.source_error)
    return replace(best, iterations=used)


def _descend(
    cost: Cost,
    a: np.ndarray,
    b: np.ndarray,
    epsilon: float,
    tol: float,
    factor: float,
    stage_tol: float,
    used: int,
    max_iter: int,
) -> tuple[Stage, int]:
    """Lower epsilon stage by stage. Returns the last stage and the iterations used so far."""
    log_a = np.log(a)
    phi = np.zeros(len(a))  # plan = a_i b_j exp((phi_i + psi_j - C_ij) / epsilon): phi hardly depends on epsilon
    for stage_epsilon in _schedule(cost, epsilon, factor):
        last = stage_epsilon == epsilon
        stage = Stage(cost, a, b, stage_epsilon, phi + stage_epsilon * log_a, tol)
        stage.run(tol if last else stage_tol, max_iter - used, last)
        used += stage.iterations
        if last:
            return stage, used
        phi = stage.f - stage_epsilon * log_a
        del stage  # frees its kernel before the next one is built
    raise AssertionError("the schedule ends with epsilon itself")


def _schedule(cost: Cost, epsilon: float, factor: float) -> list[float]:
    """The epsilons of the stages, from FIRST_EPSILON times the range of the cost down to `epsilon`."""
    low, high = np.inf, -np.inf
    for _, block in cost.blocks():
        low, high = min(low, float(block.min())), max(high, float(block.max()))
    first = FIRST_EPSILON * (high - low)
    if first <= epsilon:
        return [epsilon]
    distance = np.log(first) - np.log(epsilon)
    n_stages = min(int(distance / np.log(factor)), MAX_STAGES)
    return [*(float(np.exp(np.log(epsilon) + distance * k / (n_stages + 1))) for k in range(n_stages, 0, -1)), epsilon]
