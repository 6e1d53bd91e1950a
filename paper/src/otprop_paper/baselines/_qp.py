"""Many small quadratic programs with non-negative variables, solved exactly and together."""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize

PATIENCE = 3  # full exchanges allowed without progress (Kim & Park 2011), then one variable at a time


def nonnegative_programs(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Minimise x'Gx / 2 - b'x over x >= 0, for a stack of problems.

    Block principal pivoting (Kim & Park 2011): guess which variables are positive, solve for them, swap those that
    violate their sign condition, repeat. A problem is finished when all its Karush-Kuhn-Tucker conditions hold. The
    few that cycle are handed to Lawson and Hanson's method.

    Parameters
    ----------
    G : ndarray of shape (n_problems, k, k), symmetric positive definite
    b : ndarray of shape (n_problems, k)

    Returns
    -------
    ndarray of shape (n_problems, k)
    """
    n_problems, k = b.shape
    x = np.zeros((n_problems, k))
    positive = b > 0
    best = np.full(n_problems, k + 1)
    patience = np.full(n_problems, PATIENCE)
    open_ = np.arange(n_problems)
    for _ in range(20 + 10 * k):
        value, violation = _trial(G[open_], b[open_], positive[open_])
        count = violation.sum(axis=1)
        x[open_] = np.where(positive[open_], np.maximum(value, 0.0), 0.0)
        unsolved = count > 0
        open_, violation, count = open_[unsolved], violation[unsolved], count[unsolved]
        if open_.size == 0:
            return x
        better = count < best[open_]
        patience[open_] = np.where(better, PATIENCE, patience[open_] - 1)
        best[open_] = np.minimum(best[open_], count)
        positive[open_] ^= np.where((patience[open_] >= 0)[:, None], violation, _last_only(violation))
    for i in open_:
        x[i] = _lawson_hanson(G[i], b[i])
    return x


def _trial(G: np.ndarray, b: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve for the variables taken to be positive; and mark the variables that violate their sign condition."""
    both = positive[:, :, None] & positive[:, None, :]
    A = np.where(both, G, 0.0)
    diagonal = np.arange(G.shape[1])
    A[:, diagonal, diagonal] = np.where(positive, G[:, diagonal, diagonal], 1.0)
    value = np.linalg.solve(A, np.where(positive, b, 0.0)[:, :, None])[:, :, 0]
    gradient = np.einsum("nij,nj->ni", G, value) - b
    slack = 1e-12 * np.abs(value).max(axis=1, keepdims=True)
    flat = 1e-12 * np.maximum(np.abs(b), np.abs(b).max(axis=1, keepdims=True))
    return value, np.where(positive, value < -slack, gradient < -flat)


def _last_only(violation: np.ndarray) -> np.ndarray:
    """Only the violating variable of the largest index: the exchange rule that cannot cycle."""
    out = np.zeros_like(violation)
    last = violation.shape[1] - 1 - violation[:, ::-1].argmax(axis=1)
    out[np.arange(len(violation)), last] = True
    return out


def _lawson_hanson(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One program as non-negative least squares on the Cholesky factor."""
    factor = linalg.cholesky(G, lower=True)
    return optimize.nnls(factor.T, linalg.solve_triangular(factor, b, lower=True))[0]


def simplex_programs(G: np.ndarray) -> np.ndarray:
    """Minimise w'Gw over the simplex, for a stack of problems: w >= 0 and sum w = 1.

    At the optimum Gw = mu + lambda with lambda >= 0 orthogonal to w, so w / mu solves the program without the sum
    constraint for b = 1. Where G is zero all weights are equally good and are given equally.

    Parameters
    ----------
    G : ndarray of shape (n_problems, k, k), symmetric positive definite, or zero

    Returns
    -------
    ndarray of shape (n_problems, k)
    """
    n_problems, k, _ = G.shape
    w = np.full((n_problems, k), 1.0 / k)
    trace = np.trace(G, axis1=1, axis2=2)
    proper = trace > 0
    if proper.any():
        z = nonnegative_programs(G[proper] * (k / trace[proper])[:, None, None], np.ones((int(proper.sum()), k)))
        w[proper] = z / z.sum(axis=1, keepdims=True)
    return w
