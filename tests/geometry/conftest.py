"""Rows to search, and scikit-learn's neighbours of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from otprop.geometry import neighbors as module


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(300, 12))


@pytest.fixture
def sparse_rows():
    return sp.random_array((300, 80), density=0.1, rng=np.random.default_rng(0), format="csr")


@pytest.fixture
def clusters():
    """Enough rows, in enough places, for a search through cells to be worth testing."""
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(40, 10)) * 2
    return centers[rng.integers(40, size=4000)] + rng.normal(size=(4000, 10))


@pytest.fixture
def through_cells(monkeypatch):
    monkeypatch.setattr(module, "EXACT_WORK", 0)


def brute_force(X, k, metric="euclidean"):
    distances, indices = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute").fit(X).kneighbors()
    return indices, distances


def true_recall(found, X, k, metric="euclidean"):
    farthest = brute_force(X, k, metric)[1][:, -1:]
    return (found.distances <= farthest * (1 + 1e-9)).mean()
