"""Search through cells: its recall, against scikit-learn's brute force."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from otprop.geometry.neighbors import NeighborIndex
from tests.geometry.conftest import brute_force, true_recall


@pytest.mark.usefixtures("through_cells")
def test_thousands_of_copies_do_not_spoil_the_cells(clusters):
    X = np.vstack([np.tile(clusters[0], (3000, 1)), clusters])
    found = NeighborIndex(X).graph(10)
    assert (found.distances[:3001] == 0).all()
    assert found.recall >= 0.95
    apart = NeighborIndex(clusters).graph(10)
    assert true_recall(found.first(1), X, 1) >= 0.95
    assert (found.distances[3001:, 0] <= apart.distances[1:, 0] + 1e-12).mean() > 0.97


@pytest.mark.usefixtures("through_cells")
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_cells_find_what_they_say_they_find(clusters, metric):
    found = NeighborIndex(clusters, metric).graph(10)
    assert not found.exact
    true = true_recall(found, clusters, 10, metric)
    assert true >= 0.95
    assert found.recall == pytest.approx(true, abs=0.02)
    exact = pairwise_distances(clusters, metric=metric)
    np.testing.assert_allclose(found.distances, np.take_along_axis(exact, found.indices, axis=1), rtol=1e-6)
    assert (found.indices != np.arange(len(clusters))[:, None]).all()


@pytest.mark.usefixtures("through_cells")
def test_many_features_are_searched_in_few_directions(clusters):
    X = np.hstack([clusters, 0.05 * np.random.default_rng(2).normal(size=(len(clusters), 90))])
    index = NeighborIndex(X)
    found = index.graph(10)
    assert next(iter(index._approximate.values())).points.shape[1] < 50
    assert true_recall(found, X, 10) >= 0.95


@pytest.mark.usefixtures("through_cells")
def test_rows_without_any_structure_are_searched_by_brute_force():
    X = np.random.default_rng(0).normal(size=(1500, 60))
    found = NeighborIndex(X).graph(5)
    assert found.exact
    np.testing.assert_array_equal(found.indices, brute_force(X, 5)[0])


@pytest.mark.usefixtures("through_cells")
def test_cells_resolve_what_single_precision_does_not(clusters):
    tight = clusters[:2000] * 1e-6
    X = np.vstack([tight, tight + 1.0])
    found = NeighborIndex(X).graph(5)
    some = np.arange(0, 4000, 20)
    exact = np.sqrt(((X[some, None] - X[None]) ** 2).sum(axis=2))
    kth = np.sort(exact, axis=1)[:, 5:6]
    assert (found.distances[some] <= kth * (1 + 1e-9)).mean() >= 0.95
    assert found.recall >= 0.95


@pytest.mark.usefixtures("through_cells")
def test_many_new_rows_are_searched_for_through_cells(clusters):
    index = NeighborIndex(clusters[:3000])
    found = index.query(clusters[3000:], 10)
    assert not found.exact
    exact = np.sort(pairwise_distances(clusters[3000:], clusters[:3000]), axis=1)[:, :10]
    assert (found.distances <= exact[:, -1:] * (1 + 1e-9)).mean() >= 0.95
    assert found.recall >= 0.95


def test_a_search_that_would_take_too_long_ends_with_fewer_of_the_neighbours_and_says_so(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 30))  # no cell is like another
    monkeypatch.setattr("otprop.geometry.neighbors.EXACT_WORK", 0.0)
    patient = NeighborIndex(X).graph(10)
    monkeypatch.setattr("otprop.geometry.approximate_search.MAX_WORK", 0.1 * 3000**2 * 70)
    hasty = NeighborIndex(X).graph(10)
    assert patient.recall >= 0.95
    assert not hasty.exact
    assert 0.05 < hasty.recall < 0.95
    assert hasty.indices.shape == (3000, 10)
    assert (np.diff(hasty.distances, axis=1) >= 0).all()
