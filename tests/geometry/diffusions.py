"""Sources and graphs of diffusion, and their solutions by power series."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def labels(n_rows, n_classes=3, each=4, seed=0):
    sources = np.zeros((n_rows, n_classes))
    chosen = np.random.default_rng(seed).choice(n_rows, n_classes * each, replace=False)
    sources[chosen, np.arange(len(chosen)) % n_classes] = 1.0
    return sources


def normalized(W):
    W = W.toarray() if sp.issparse(W) else W
    degrees = W.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    return W / roots[:, None] / roots


def series(W, strength, sources):
    """The sum of all powers of the diffusion: nothing is subtracted, so the smallest values are exact too."""
    step, values = strength * normalized(W), sources
    for _ in range(20):
        values = values + step @ values
        step = step @ step
    return values


def assert_close_by_rows(values, exact, tol):
    sums = exact.sum(axis=1, keepdims=True)
    assert (np.abs(values - exact) <= tol * sums).all()


def line(n_rows):
    """A chain in which every row knows the next only: values fall fast with the steps from a source."""
    return sp.diags_array([np.ones(n_rows - 1), np.ones(n_rows - 1)], offsets=[-1, 1]).tocsr()
