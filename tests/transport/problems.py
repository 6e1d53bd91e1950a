"""Problems of class-level and row-level transport, and by how much a plan misses its marginals."""

from __future__ import annotations

import numpy as np
import ot


def class_problem(n_rows, n_classes, seed=0, scale=3.0, weights="uniform", holes=0.0):
    """Logits, masses of the classes and masses of the rows (summing to one)."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(n_rows, n_classes))
    logits[rng.random(logits.shape) < holes] = -np.inf
    q = rng.dirichlet(np.full(n_classes, 2.0)) + 1e-3
    b = np.ones(n_rows) if weights == "uniform" else 10 ** rng.uniform(-3, 0, n_rows)
    return logits, q / q.sum(), b / b.sum()


def shipped(transport, logits, b):
    reached = transport.reached(logits)
    return b[reached] @ transport.shares(logits)[reached]


def missed(transport, logits, q, b):
    """The L1 error of the class marginal of the plan that is returned, at unit mass, by its definition."""
    m = shipped(transport, logits, b) / b[transport.reached(logits)].sum()
    q = q / q.sum()
    asked = q if transport.strength == 1 else q * np.exp(-transport.h * (1 - transport.strength) / transport.strength)
    return np.abs(m - asked).sum()


def row_problem(n_sources, n_targets, seed=0, kind="normal", weights="uniform"):
    """A cost between two random clouds and weights for both."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n_sources, 3)), rng.normal(size=(n_targets, 3))
    if kind == "clusters":
        X += 10 * rng.integers(0, 3, (n_sources, 1))
        Y += 10 * rng.integers(0, 3, (n_targets, 1))
    elif kind == "duplicates":
        Y = X[rng.integers(0, n_sources, n_targets)]
    elif kind == "line":
        X[:, 1:], Y[:, 1:] = 0, 0
    cost = ot.dist(X, Y)
    if weights == "uniform":
        return cost, np.full(n_sources, 1 / n_sources), np.full(n_targets, 1 / n_targets)
    a, b = 10 ** rng.uniform(-4, 0, n_sources), 10 ** rng.uniform(-4, 0, n_targets)
    return cost, a / a.sum(), b / b.sum()


def marginal_error(plan, a, b):
    return max(np.abs(plan.sum(axis=1) - a).sum(), np.abs(plan.sum(axis=0) - b).sum())
