"""Entropic transport from classes to rows.

With one potential per class, ``plan_jk = b_j softmax_k(h_k + L_jk)``, where L is minus the cost over epsilon. The
marginal b of the rows holds by construction. The class masses m of the plan are held to their shares q by a penalty
``rho KL(m | q)``, in units of epsilon. The strength t in [0, 1] determines ``rho = t / (1 - t)``; this is Sinkhorn's
iteration with the update of h multiplied by t. The dual, which is invariant to adding a constant to h, is

    D(h) = sum_j b_j log sum_k exp(h_k + L_jk) + rho log sum_k q_k exp(-h_k / rho),

with ``-<q, h>`` as its second term at t = 1. It is convex in K variables. Its gradient is ``m - w``, where w is
proportional to ``q_k exp(-h_k / rho)``. Newton's method for ``log m = log w`` acts like Sinkhorn's step for a class far
from its target and like Newton's step on the dual for a class near it; it usually takes two or three steps. A step
needs only K + K x K sums over the rows (`RowSums`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from otprop._saving import saved_as
from otprop._validation import InputError, check_count, check_number
from otprop.transport.class_solver import ClassDual, ClassSolver
from otprop.transport.row_sums import LocalRows, RowSums, plan_sums, reach_sums


@saved_as("transport.class_plan", infinite=("h",), nan=("source_error", "target_error"))
@dataclass(frozen=True)
class ClassTransport:
    """The result of class-level transport.

    Attributes
    ----------
    h : ndarray of shape (n_classes,), the potentials in units of epsilon, with ``m_k = q_k exp(-h_k / rho)``, or
        ``<q, h> = 0`` at strength 1. Minus infinity for a class without mass (except at strength 0, where masses are
        ignored), 0 for a class that reaches no row
    strength : float, as given, or `RELAXED` where strength 1 is infeasible
    iterations : int, Newton steps
    source_error : float, L1 distance between the class masses and their target at this strength, for a total mass of
        one; without classes that reach no row
    target_error : float, difference between the mass of the plan and that of the reached rows, which is one
    converged : bool, both errors are within the tolerance
    feasible : bool, False if strength 1 was given and some classes have more mass than all rows that they reach; the
        result is then that of the relaxed problem. At strength 1, True is proven only if `converged` is True
        as well
    class_masses : ndarray of shape (n_classes,), the mass of each class in the plan, in units of the row masses
    prior : ndarray of shape (n_classes,), the requested class masses, summing to one
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
        """Boolean mask of the rows that a class with mass reaches; the others are not part of the plan."""
        logits = _check_logits(logits, len(self.h))
        return np.asarray((logits[:, self.h > -np.inf] > -np.inf).any(axis=1))

    def shares(self, logits: np.ndarray) -> np.ndarray:
        """Class shares of each row, summing to one; the rows need not be those solved for.

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
    """Solve the transport from classes to rows.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_classes), float32 or float64, minus the cost over epsilon; minus infinity
        where a class does not reach a row
    class_masses : ndarray of shape (n_classes,), nonnegative; scaled to the mass of the rows that are reached
    strength : float in [0, 1], how strictly the class masses are enforced: 0 not at all (kernel vote), 1 exactly
    row_masses : ndarray of shape (n_rows,), positive (None: equal, one in total)
    tol : float, tolerance for the L1 error of each marginal, for a total mass of one
    max_iter : int, in Newton steps
    start : ndarray of shape (n_classes,), initial potentials, such as the h of the previous round

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
        raise InputError(f"row_masses must be positive and finite, one for each of the {n_rows} rows.")
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
    """Solve the transport from classes to rows given as `RowSums`; see `solve_classes`."""
    check_number("strength", strength, least=0, most=1)
    check_number("tol", tol, above=0, most=1)
    check_count("max_iter", max_iter)
    prior = _check_masses("class_masses", class_masses)
    if start is not None:
        start = np.asarray(start, dtype=np.float64)
        if start.shape != prior.shape or np.isnan(start).any():
            raise InputError(f"start must hold a potential for each of the {len(prior)} classes; got {start!r}.")
    used = prior > 0 if strength > 0 else np.ones(len(prior), dtype=bool)
    h = np.where(used, 0.0, -np.inf)
    mass, reach = rows.sum(partial(reach_sums, used=used))
    active = used & (reach > 0)
    if strength == 0 or not active.any():
        _, m = rows.sum(partial(plan_sums, h=h, scale=1.0, overlap=False))
        error = abs(1.0 - float(m.sum() / mass)) if mass > 0 else 0.0
        return ClassTransport(h, float(strength), 0, 0.0, error, error <= tol, True, m, prior)
    share = float(prior[active].sum())
    dual = ClassDual(rows, float(mass), active, prior[active] / share, share, float(strength))
    solver = ClassSolver(dual, prior, reach / mass, tol, max_iter)
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
        class_masses=dual.expand(point.m, 0.0) * mass,
        prior=prior,
    )


def owed_masses(prior: np.ndarray, n_labeled: np.ndarray, n_left: float, floor: float = 0.02) -> np.ndarray:
    """The mass left for each class: its share of all rows minus its labelled rows, at least `floor` of its share.

    Parameters
    ----------
    prior : ndarray of shape (n_classes,), the class shares of all rows, scaled to sum to one
    n_labeled : ndarray of shape (n_classes,), the number of labelled rows of each class
    n_left : float, the number of unlabelled rows
    floor : float, the smallest mass of a class, relative to its share of the unlabelled rows

    Returns
    -------
    ndarray of shape (n_classes,), summing to `n_left`
    """
    check_number("n_left", n_left, least=0)
    check_number("floor", floor, least=0)
    prior = _check_masses("prior", prior)
    n_labeled = np.asarray(n_labeled, dtype=np.float64)
    if n_labeled.shape != prior.shape or not ((n_labeled >= 0) & (n_labeled < np.inf)).all():
        raise InputError(f"n_labeled must be finite and not negative, one number for each of the {len(prior)} classes.")
    owed = np.maximum(prior * (n_labeled.sum() + n_left) - n_labeled, floor * prior * n_left)
    return np.asarray(owed * (n_left / owed.sum())) if n_left > 0 else np.zeros(len(prior))


def _check_logits(logits: np.ndarray, n_classes: int) -> np.ndarray:
    logits = np.asarray(logits)
    if logits.dtype not in (np.float32, np.float64):
        logits = logits.astype(np.float64)
    if logits.ndim != 2 or logits.shape[1] != n_classes:
        raise InputError(f"logits has shape {logits.shape}, expected (n_rows, {n_classes}), a column for each class.")
    if not logits.max(initial=-np.inf) < np.inf:
        raise InputError("logits contains NaN or plus infinity; every entry must be finite or minus infinity.")
    return logits


def _check_masses(name: str, masses: np.ndarray) -> np.ndarray:
    """Validate class masses and scale them to sum to one."""
    masses = np.asarray(masses, dtype=np.float64)
    if masses.ndim != 1 or not ((masses >= 0) & (masses < np.inf)).all() or not masses.any():
        raise InputError(f"{name} must be finite and not negative, with a positive sum; got {masses!r}.")
    masses = masses / masses.max()
    return np.asarray(masses / masses.sum())
