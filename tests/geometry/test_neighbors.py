"""Nearest rows, against scikit-learn's brute force."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from otprop.geometry import neighbors as module
from otprop.geometry.neighbors import NeighborIndex

# any finite input


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner", "manhattan"])
@pytest.mark.parametrize(
    "X", [np.ones((30, 3)), np.zeros((30, 3)), np.array([[1.0], [2.0]]), np.eye(30), np.ones((2, 1))]
)
def test_any_rows_have_neighbours(X, metric):
    found = NeighborIndex(X, metric).graph(50)
    assert found.indices.shape == found.distances.shape == (len(X), len(X) - 1)
    assert np.isfinite(found.distances).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    for row, neighbors in enumerate(found.indices):
        assert sorted([row, *neighbors]) == list(range(len(X)))


def test_a_single_row_has_none():
    assert NeighborIndex(np.ones((1, 2))).graph(3).indices.shape == (1, 0)


# copies


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_copies_are_neighbours_at_no_distance(rows, metric):
    copies = np.concatenate([np.arange(300), np.full(50, 7), np.arange(20)])
    X = rows[copies]
    found = NeighborIndex(X, metric).graph(5)
    exact = pairwise_distances(X, metric=metric)
    np.fill_diagonal(exact, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(exact, axis=1)[:, :5], atol=1e-7)
    assert (copies[found.indices[copies == 7]] == 7).all()
    assert (found.distances[copies == 7] == 0).all()
    assert (found.indices != np.arange(len(X))[:, None]).all()
    assert all(len(set(line)) == 5 for line in found.indices.tolist())


def test_minus_zero_is_zero():
    found = NeighborIndex(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.1]])).graph(1)
    assert found.indices[:2, 0].tolist() == [1, 0]
    assert found.distances[:2, 0].tolist() == [0.0, 0.0]


# cells


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("work", [0, 1e11])
def test_the_number_of_threads_changes_nothing(monkeypatch, clusters, metric, work):
    monkeypatch.setattr(module, "EXACT_WORK", work)
    one, three = (NeighborIndex(clusters, metric, n_jobs=n).graph(8) for n in (1, 3))
    np.testing.assert_array_equal(one.indices, three.indices)
    np.testing.assert_array_equal(one.distances, three.distances)
    assert one.recall == three.recall


def test_progress_is_told_up_to_the_last_row(clusters, monkeypatch):
    for work in (0, 1e11):
        monkeypatch.setattr(module, "EXACT_WORK", work)
        told = []
        NeighborIndex(clusters).graph(5, progress=lambda *steps, told=told: told.append(steps))
        done = [step for step, _ in told]
        assert done == sorted(done)
        assert told[-1] == (4000, 4000)


# new rows


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner", "manhattan"])
def test_new_rows_find_the_old_ones_and_may_find_themselves(rows, metric):
    index = NeighborIndex(rows, metric)
    found = index.query(rows[:20], 4)
    graph = index.graph(4)
    if metric != "inner":
        assert found.indices[:, 0].tolist() == list(range(20))
        np.testing.assert_array_equal(found.indices[:, 1:], graph.indices[:20, :3])
    assert found.distances.shape == (20, 4)
    sparse = NeighborIndex(sp.csr_array(rows), metric).query(rows[:20], 4)
    np.testing.assert_array_equal(sparse.indices, found.indices)


def test_new_rows_see_the_copies_of_a_row(rows):
    found = NeighborIndex(np.vstack([rows, rows[:1], rows[:1]])).query(rows[:1], 5)
    assert sorted(found.indices[0, :3].tolist()) == [0, 300, 301]
    assert NeighborIndex(rows[:3]).query(rows, 10).indices.shape == (300, 3)


@pytest.mark.parametrize("width", [0, 90])  # with more features, cells are searched in few directions
@pytest.mark.parametrize("n_queries", [1, 1e9])
def test_a_frozen_search_finds_the_same_neighbours_whatever_rows_come_with_a_row(clusters, width, n_queries):
    noise = 0.05 * np.random.default_rng(2).normal(size=(len(clusters), width))
    X = np.hstack([clusters, noise])
    index = NeighborIndex(X[:3000])
    index.freeze(10, n_queries)
    whole = index.query(X[3000:], 10)
    assert whole.exact == (n_queries == 1)
    exact = np.sort(pairwise_distances(X[3000:], X[:3000]), axis=1)[:, 9:10]
    assert (whole.distances <= exact * (1 + 1e-9)).mean() >= (1.0 if whole.exact else 0.95)
    start = 0
    for size in (1, 1, 2, 63, 64, 65, 256, 257, 291):
        part = index.query(X[3000 + start : 3000 + start + size], 10)
        np.testing.assert_array_equal(part.indices, whole.indices[start : start + size])
        np.testing.assert_array_equal(part.distances, whole.distances[start : start + size])
        start += size
    order = np.random.default_rng(3).permutation(1000)
    np.testing.assert_array_equal(index.query(X[3000:][order], 10).indices, whole.indices[order])
    fewer = index.query(X[3000:3100], 4)
    assert fewer.exact == whole.exact


@pytest.mark.usefixtures("through_cells")
def test_an_index_survives_being_pickled(clusters):
    index = NeighborIndex(clusters)
    index.graph(5)
    again = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(again.query(clusters[:500], 5).indices, index.query(clusters[:500], 5).indices)


@pytest.mark.usefixtures("through_cells")
def test_a_search_through_cells_leaves_no_second_copy_of_the_rows_and_still_answers(clusters):
    index = NeighborIndex(clusters[:3500])
    index.graph(5)
    assert not index._exact._standardized
    few = index.query(clusters[3500:3600], 5)  # by brute force
    assert few.exact
    np.testing.assert_allclose(
        few.distances, np.sort(pairwise_distances(clusters[3500:3600], clusters[:3500]), axis=1)[:, :5], rtol=1e-9
    )


# refusals


def test_arguments_are_refused_in_words(rows, sparse_rows):
    with pytest.raises(ValueError, match="k must be an integer >= 1; got 0"):
        NeighborIndex(rows).graph(0)
    with pytest.raises(ValueError, match="did you mean 'euclidean'"):
        NeighborIndex(rows, "euclidian")
    with pytest.raises(ValueError, match="precomputed"):
        NeighborIndex(rows, "precomputed")
    with pytest.raises(ValueError, match="does not take sparse rows"):
        NeighborIndex(sparse_rows, "chebyshev")
    with pytest.raises(ValueError, match="X has 3 features, but the table to search has 12"):
        NeighborIndex(rows).query(rows[:, :3], 2)
