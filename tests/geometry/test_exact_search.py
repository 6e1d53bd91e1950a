"""Exact search, against scikit-learn's brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from otprop.geometry import exact_search
from otprop.geometry.neighbors import NeighborIndex
from tests.geometry.conftest import brute_force


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "chebyshev", "correlation"])
def test_the_neighbours_are_those_of_scikit_learn(rows, metric):
    found = NeighborIndex(rows, metric).graph(7)
    indices, distances = brute_force(rows, 7, metric)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-9, atol=1e-12)
    assert found.exact
    assert found.recall == 1.0


def test_squared_distances_have_the_same_neighbours_and_are_not_squared(rows):
    plain, squared = NeighborIndex(rows, "euclidean").graph(5), NeighborIndex(rows, "sqeuclidean").graph(5)
    np.testing.assert_array_equal(plain.indices, squared.indices)
    np.testing.assert_array_equal(plain.distances, squared.distances)


def test_a_callable_is_a_metric(rows):
    found = NeighborIndex(rows[:60], lambda a, b: np.abs(a - b).sum()).graph(4)
    np.testing.assert_array_equal(found.indices, brute_force(rows[:60], 4, "manhattan")[0])


def test_the_rows_that_count_for_a_metric_are_all_rows_copies_too(rows):
    copied = np.vstack([rows, rows[:100], rows[:50]])
    found = NeighborIndex(copied, "seuclidean").graph(9)
    distances = np.sort(pairwise_distances(copied, metric="seuclidean"), axis=1)[:, 1:10]
    np.testing.assert_allclose(found.distances, distances, atol=1e-7)


def test_inner_products_are_distances_below_the_largest_squared_length(rows):
    products = rows @ rows.T
    np.fill_diagonal(products, -np.inf)
    found = NeighborIndex(rows, "inner").graph(6)
    best = -np.sort(-products, axis=1)[:, :6]
    np.testing.assert_allclose(found.distances, 1 - best / (rows**2).sum(axis=1).max(), atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(products, found.indices, axis=1), best)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner", "manhattan"])
def test_sparse_and_dense_rows_have_the_same_neighbours(sparse_rows, metric):
    sparse, dense = NeighborIndex(sparse_rows, metric).graph(6), NeighborIndex(sparse_rows.toarray(), metric).graph(6)
    np.testing.assert_allclose(sparse.distances, dense.distances, atol=1e-12)
    np.testing.assert_array_equal(sparse.indices, dense.indices)


@pytest.mark.parametrize("metric", ["cosine", "inner"])
def test_sparse_rows_that_share_little_are_still_given_enough_neighbours(metric):
    X = sp.csr_array(np.kron(np.eye(60), np.ones((3, 2))) * np.arange(1, 181)[:, None])
    found = NeighborIndex(X, metric).graph(5)
    dense = NeighborIndex(X.toarray(), metric).graph(5)
    np.testing.assert_allclose(found.distances, dense.distances, atol=1e-12)
    assert (found.indices != np.arange(180)[:, None]).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_few_features_are_searched_with_a_tree_and_give_the_same(monkeypatch, metric):
    X = np.random.default_rng(0).normal(size=(700, 3))
    plain = NeighborIndex(X, metric).graph(8)
    monkeypatch.setattr(exact_search, "TREE_ROWS", 100)
    index = NeighborIndex(X * 1e200, metric)
    assert isinstance(index._exact, exact_search.TreeSearch)
    np.testing.assert_array_equal(index.graph(8).indices, plain.indices)
    np.testing.assert_allclose(index.graph(8).distances / 1e200, plain.distances, rtol=1e-9)
    np.testing.assert_array_equal(index.query(X[:9] * 1e200, 8).indices[:, 1:], plain.indices[:9, :7])


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner", "manhattan"])
@pytest.mark.parametrize("factor", [1e-150, 1e-30, 1e30, 1e150])
def test_no_scale_changes_the_neighbours(rows, metric, factor):
    plain, scaled = NeighborIndex(rows, metric).graph(5), NeighborIndex(rows * factor, metric).graph(5)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    units = factor if metric in ("euclidean", "manhattan") else 1.0
    np.testing.assert_allclose(scaled.distances / units, plain.distances, rtol=1e-9)


def test_a_shift_does_not_drown_the_distances(rows):
    plain, shifted = NeighborIndex(rows).graph(5), NeighborIndex(rows + 1e9).graph(5)
    np.testing.assert_allclose(shifted.distances, plain.distances, atol=1e-6)


def test_neither_outliers_nor_the_largest_floats_matter_to_the_others(rows):
    far = np.vstack([rows, np.full((1, 12), 1e40), np.full((1, 12), -1.7e308)])
    found = NeighborIndex(far).graph(5)
    np.testing.assert_array_equal(found.indices[:300], NeighborIndex(rows).graph(5).indices)
    assert np.isfinite(found.distances).all()


@pytest.mark.parametrize("spread", [1e-5, 1e-9, 1e-12])
def test_tight_clusters_are_resolved(rows, spread):
    tight = np.vstack([rows[:100] * spread, rows[:100] * spread + 1.0, rows[:100] * spread - 1.0])
    found = NeighborIndex(tight).graph(5)
    exact = np.sqrt(((tight[:, None] - tight[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(found.distances, np.sort(exact, axis=1)[:, 1:6], rtol=1e-9)


def test_rows_of_zeros_are_near_one_another_by_their_cosines(sparse_rows):
    X = sp.vstack([sparse_rows, sp.csr_array((3, 80))]).tocsr()
    for table in (X, X.toarray()):
        found = NeighborIndex(table, "cosine").graph(2)
        assert {tuple(sorted(line)) for line in found.indices[-3:].tolist()} == {(300, 301), (300, 302), (301, 302)}
        assert (found.distances[-3:] == 0).all()


def test_inner_products_with_an_outlier_are_searched_without_overflow():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[3] = 1e100
    near = NeighborIndex(rows, "inner").graph(4)
    assert np.isfinite(near.distances).all()
    assert (near.indices[:3] == 3).any(axis=1).sum() == (rows[:3].sum(axis=1) > 0).sum()
