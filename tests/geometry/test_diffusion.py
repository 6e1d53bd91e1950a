"""Diffusion over graphs, against dense solutions and limits known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.geometry import diffusion
from otprop.geometry.diffusion import DiffusionGraph, check_affinity, local_scales, self_tuned_weights
from otprop.geometry.neighbors import NeighborIndex, Neighbors
from tests.geometry.diffusions import labels, line, normalized, series


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(250, 4))


@pytest.fixture(scope="module")
def neighbors(rows):
    return NeighborIndex(rows).graph(10)


@pytest.fixture(scope="module")
def graph(neighbors):
    return DiffusionGraph.from_neighbors(neighbors)


@pytest.fixture(autouse=True)
def no_inverse(monkeypatch):
    """Small graphs are solved as large ones are."""
    monkeypatch.setattr(diffusion, "MAX_INVERSE_ROWS", 0)


# affinities


def test_self_tuned_weights_are_the_formula(neighbors):
    W = self_tuned_weights(neighbors).toarray()
    d, near = neighbors.distances, neighbors.indices
    scales = d[:, 6]
    directed = np.zeros(W.shape)
    for i in range(len(d)):
        directed[i, near[i]] = np.exp(-(d[i] ** 2) / (scales[i] * scales[near[i]]))
    np.testing.assert_allclose(W, np.maximum(directed, directed.T), rtol=1e-12)
    assert (np.diag(W) == 0).all()


def test_fewer_neighbours_can_be_taken_from_a_search_for_more(rows, neighbors):
    for k in (3, 7):
        few = self_tuned_weights(NeighborIndex(rows).graph(k))
        np.testing.assert_allclose(self_tuned_weights(neighbors, k).toarray(), few.toarray(), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e200, 1e300])
def test_affinities_do_not_depend_on_the_unit_of_distance(neighbors, factor):
    scaled = Neighbors(neighbors.indices, neighbors.distances * factor)
    np.testing.assert_allclose(self_tuned_weights(scaled).data, self_tuned_weights(neighbors).data, rtol=1e-9)


def test_a_row_among_many_copies_has_a_scale_and_weight_one_to_them(rows):
    X = np.vstack([np.tile(rows[0], (9, 1)), rows])
    found = NeighborIndex(X).graph(12)
    scales, W = local_scales(found), self_tuned_weights(found)
    assert (scales > 0).all()
    assert scales[0] == found.distances[0][found.distances[0] > 0].min()
    assert W.toarray()[0, 1] == 1.0
    assert np.isfinite(W.data).all()


def test_rows_that_are_all_the_same_are_all_near():
    W = self_tuned_weights(NeighborIndex(np.ones((20, 2))).graph(5))
    assert (W.data == 1.0).all()
    assert np.isfinite(DiffusionGraph(W).solve(labels(20, 2, 1), 0.9).values).all()


def test_a_row_far_from_all_is_still_reached_and_takes_its_neighbours_shares(rows):
    found = NeighborIndex(np.vstack([rows, np.full((1, 4), 1e6)])).graph(10)
    graph = DiffusionGraph.from_neighbors(found)
    values = graph.solve(labels(251), 0.9).values
    shares = values / values.sum(axis=1, keepdims=True)
    near = shares[found.indices[-1]]
    assert values[-1].min() > 0
    assert (shares[-1] >= near.min(axis=0) - 1e-9).all()
    assert (shares[-1] <= near.max(axis=0) + 1e-9).all()


# solving


def test_a_row_without_neighbours_keeps_what_starts_there():
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 1.0
    graph = DiffusionGraph(W)
    assert graph.components[2] not in graph.components[:2]
    assert graph.solve(np.array([[1.0], [0.0], [0.0]]), 0.9).values[2, 0] == 0.0
    assert graph.solve(np.eye(3), 0.9).values[2, 2] == pytest.approx(1.0)


# new rows


def test_a_new_row_takes_the_mean_of_its_neighbours_values(rows, graph):
    index = NeighborIndex(rows)
    new = index.query(rows[:30] + 0.01, 10)
    values = np.random.default_rng(0).random((250, 3))
    extended = graph.extend(new, values)
    own = new.distances[:, 6]
    for row in range(30):
        weights = np.exp(-(new.distances[row] ** 2) / (own[row] * graph.scales[new.indices[row]]))
        np.testing.assert_allclose(extended[row], weights @ values[new.indices[row]] / weights.sum(), rtol=1e-9)


def test_new_rows_however_far_get_a_mean_and_constants_stay(rows, graph):
    index = NeighborIndex(rows)
    new = index.query(np.vstack([rows[:2], np.full((1, 4), 1e8), np.full((1, 4), -1e200)]), 10)
    np.testing.assert_allclose(graph.extend(new, np.ones((250, 2))), 1.0)


def test_new_rows_of_a_given_graph_come_with_affinities(graph):
    given = DiffusionGraph(line(4))
    values = np.arange(4.0)[:, None]
    np.testing.assert_allclose(given.extend(np.array([[0.0, 1.0, 3.0, 0.0], [0.0] * 4]), values), [[1.75], [0.0]])
    with pytest.raises(ValueError, match="need affinities too"):
        given.extend(Neighbors(np.zeros((1, 1), dtype=int), np.zeros((1, 1))), values)
    with pytest.raises(ValueError, match="must have 4 columns; got 2"):
        given.extend(np.ones((1, 2)), values)


# refusals


def test_affinities_are_refused_in_words():
    with pytest.raises(ValueError, match=r"X must be a square matrix.*\(2, 3\)"):
        check_affinity(np.ones((2, 3)), "X")
    with pytest.raises(ValueError, match="affinity holds the negative affinity -1"):
        DiffusionGraph(np.array([[0.0, -1.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="affinity holds an infinite or missing"):
        DiffusionGraph(sp.csr_array(np.array([[0.0, np.nan], [1.0, 0.0]])))


def test_of_two_affinities_the_larger_is_used_and_the_graph_records_it():
    W, symmetric = check_affinity(np.array([[5.0, 2.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(W.toarray(), [[0.0, 2.0], [2.0, 0.0]])
    assert not symmetric
    assert not DiffusionGraph(np.array([[5.0, 2.0], [1.0, 0.0]])).symmetric
    assert DiffusionGraph(np.array([[5.0, 2.0], [2.0, 0.0]])).symmetric


def test_the_largest_floats_are_affinities(neighbors, graph):
    W = self_tuned_weights(neighbors) * 1e308
    np.testing.assert_allclose(
        DiffusionGraph(W).solve(labels(250), 0.9).values, graph.solve(labels(250), 0.9).values, rtol=1e-9
    )


def test_arguments_are_refused_in_words(graph):
    with pytest.raises(ValueError, match="strength must be a finite number > 0 and < 1"):
        graph.solve(labels(250), 1.0)
    with pytest.raises(ValueError, match=r"initial must have shape \(250, n_columns\); got \(250,\)"):
        graph.solve(np.ones(250), 0.5)
    with pytest.raises(ValueError, match="initial must be finite and not negative"):
        graph.solve(-labels(250), 0.5)
    with pytest.raises(ValueError, match="start must have the shape of initial"):
        graph.solve(labels(250), 0.5, start=np.ones((250, 1)))
    with pytest.raises(ValueError, match="scale_neighbor must be"):
        self_tuned_weights(Neighbors(np.ones((2, 1), dtype=int), np.ones((2, 1))), scale_neighbor=0)


# the inverse of a small graph


def test_the_inverse_of_a_small_graph_solves_it(monkeypatch, neighbors):
    monkeypatch.setattr(diffusion, "MAX_INVERSE_ROWS", 250)
    graph, sources = DiffusionGraph.from_neighbors(neighbors), labels(250)
    exact = series(self_tuned_weights(neighbors), 0.95, sources)
    for given in (sources, sp.csr_array(sources)):
        result = graph.solve(given, 0.95)
        assert (result.iterations, result.converged) == (0, True)
        np.testing.assert_allclose(result.values, exact, rtol=1e-9)
    chosen = np.array([3, 200, 7])
    inverse = np.linalg.inv(np.eye(250) - 0.95 * normalized(self_tuned_weights(neighbors)))
    np.testing.assert_allclose(graph.inverse_diagonal(chosen, 0.95).values, np.diag(inverse)[chosen], rtol=1e-9)


def test_the_inverse_knows_tiny_values_and_rows_that_are_not_connected(monkeypatch):
    monkeypatch.setattr(diffusion, "MAX_INVERSE_ROWS", 1000)
    two_lines, sources = sp.block_diag([line(60), line(5)]).tocsr(), np.zeros((65, 2))
    sources[[0, 9], [0, 1]] = 1.0
    values = DiffusionGraph(two_lines).solve(sources, 0.3).values
    np.testing.assert_allclose(values, series(two_lines, 0.3, sources), rtol=1e-9)
    assert 0 < values[59].max() < 1e-20
    assert not values[60:].any()
