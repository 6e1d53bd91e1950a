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

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from otprop._saving import saved_as
from otprop._validation import check_count, check_number
from otprop.transport.class_dual import Dual
from otprop.transport.class_solver import Solver
from otprop.transport.row_sums import LocalRows, RowSums, plan_sums, reach_sums


@saved_as("transport.class_plan", infinite=("h",), nan=("source_error", "target_error"))
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
    mass, reach = rows.sum(partial(reach_sums, used=used))
    active = used & (reach > 0)
    if strength == 0 or not active.any():
        _, m = rows.sum(partial(plan_sums, h=h, scale=1.0, overlap=False))
        error = abs(1.0 - float(m.sum() / mass)) if mass > 0 else 0.0
        return ClassTransport(h, float(strength), 0, 0.0, error, error <= tol, True, m, prior)
    share = float(prior[active].sum())
    dual = Dual(rows, float(mass), active, prior[active] / share, share, float(strength))
    solver = Solver(dual, prior, reach / mass, tol, max_iter)
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
