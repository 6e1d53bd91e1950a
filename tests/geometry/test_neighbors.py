"""Nearest rows, against scikit-learn's brute force."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from otprop.geometry import exact_search
from otprop.geometry import neighbors as module
from otprop.geometry.neighbors import NeighborIndex


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


# exact search


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


# any finite input


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


def test_rows_of_zeros_are_near_one_another_by_their_cosines(sparse_rows):
    X = sp.vstack([sparse_rows, sp.csr_array((3, 80))]).tocsr()
    for table in (X, X.toarray()):
        found = NeighborIndex(table, "cosine").graph(2)
        assert {tuple(sorted(line)) for line in found.indices[-3:].tolist()} == {(300, 301), (300, 302), (301, 302)}
        assert (found.distances[-3:] == 0).all()


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


@pytest.mark.usefixtures("through_cells")
def test_thousands_of_copies_do_not_spoil_the_cells(clusters):
    X = np.vstack([np.tile(clusters[0], (3000, 1)), clusters])
    found = NeighborIndex(X).graph(10)
    assert (found.distances[:3001] == 0).all()
    assert found.recall >= 0.95
    apart = NeighborIndex(clusters).graph(10)
    assert true_recall(found.first(1), X, 1) >= 0.95
    assert (found.distances[3001:, 0] <= apart.distances[1:, 0] + 1e-12).mean() > 0.97


# cells


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


@pytest.mark.usefixtures("through_cells")
def test_many_new_rows_are_searched_for_through_cells(clusters):
    index = NeighborIndex(clusters[:3000])
    found = index.query(clusters[3000:], 10)
    assert not found.exact
    exact = np.sort(pairwise_distances(clusters[3000:], clusters[:3000]), axis=1)[:, :10]
    assert (found.distances <= exact[:, -1:] * (1 + 1e-9)).mean() >= 0.95
    assert found.recall >= 0.95


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
