"""Solving the diffusion, against dense solutions and limits known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.geometry import diffusion, diffusion_solver
from otprop.geometry.diffusion import DiffusionGraph, self_tuned_weights
from otprop.geometry.neighbors import NeighborIndex
from tests.geometry.diffusions import assert_close_by_rows, labels, line, normalized, series


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


@pytest.mark.parametrize("strength", [0.3, 0.9, 0.99, 0.999])
def test_the_solution_is_the_dense_one_row_by_row(neighbors, graph, strength):
    sources = labels(250)
    result = graph.solve(sources, strength)
    exact = series(self_tuned_weights(neighbors), strength, sources)
    matrix = np.eye(250) - strength * normalized(self_tuned_weights(neighbors))
    np.testing.assert_allclose(exact, np.linalg.solve(matrix, sources), rtol=1e-8)
    assert result.converged
    assert result.residual <= 1e-6
    assert_close_by_rows(result.values, exact, 1e-6)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_a_tolerance_is_kept(neighbors, graph, tol):
    result = graph.solve(labels(250), 0.97, tol=tol)
    assert_close_by_rows(result.values, series(self_tuned_weights(neighbors), 0.97, labels(250)), tol)


@pytest.mark.parametrize("strength", [0.5, 0.9, 0.99])
def test_shares_are_right_however_small_the_values(strength):
    sources = np.zeros((200, 2))
    sources[0, 0] = sources[20, 1] = 1.0
    result = DiffusionGraph(line(200)).solve(sources, strength)
    exact = series(line(200), strength, sources)
    assert result.converged
    assert exact.sum(axis=1).min() < 1e-9
    assert_close_by_rows(result.values, exact, 1e-6)


def test_values_too_small_for_any_number_keep_their_shares():
    sources = np.zeros((1500, 2))
    sources[0, 0] = sources[1, 1] = 1.0
    result = DiffusionGraph(line(1500)).solve(sources, 0.2)
    shares = result.values / result.values.sum(axis=1, keepdims=True)
    assert result.converged
    np.testing.assert_allclose(shares[50:], np.broadcast_to(shares[50], (1450, 2)), atol=1e-6)


@pytest.mark.parametrize("strength", [0.5, 0.95, 0.999])
def test_single_precision_keeps_a_loose_tolerance(strength):
    sources = np.zeros((200, 2))
    sources[0, 0] = sources[20, 1] = 1.0
    result = DiffusionGraph(line(200)).solve(sources, strength, tol=3e-2)
    assert result.converged
    assert_close_by_rows(result.values, series(line(200), strength, sources), 3e-2)


def test_where_single_precision_fails_double_precision_goes_on(graph, monkeypatch):
    iterate = diffusion_solver.DiffusionSystem.iterate

    def fail_in_single(system, rhs, *others):
        values, iterations, error = iterate(system, rhs, *others)
        return (values, iterations, error) if rhs.dtype == np.float64 else (0 * values, iterations, 1.0)

    expected = graph.solve(labels(250), 0.9).values
    monkeypatch.setattr(diffusion_solver.DiffusionSystem, "iterate", fail_in_single)
    result = graph.solve(labels(250), 0.9, tol=3e-2)
    assert result.converged
    assert_close_by_rows(result.values, expected, 3e-2)


@pytest.mark.parametrize("weight", [1e-150, 1e-60, 1e150])
def test_single_precision_is_not_tried_with_numbers_that_it_cannot_hold(weight):
    W = line(200).tolil()
    W[:, 100:] *= weight
    W[100:] *= weight
    sources = np.zeros((200, 2))
    sources[0, 0] = sources[20, 1] = 1.0
    loose = DiffusionGraph(W.tocsr()).solve(sources, 0.9, tol=3e-2)
    assert loose.converged
    assert np.isfinite(loose.values).all()
    assert_close_by_rows(loose.values[:99], DiffusionGraph(W.tocsr()).solve(sources, 0.9).values[:99], 3e-2)


def test_start_in_single_precision_does_not_overflow_far_from_all_sources():
    sources = np.zeros((1500, 2))
    sources[0, 0] = sources[1, 1] = 1.0
    graph = DiffusionGraph(line(1500))
    start = np.full((1500, 2), 1e30, dtype=np.float32)
    result = graph.solve(sources, 0.2, start=start, tol=3e-2)
    assert result.converged
    assert_close_by_rows(result.values[:50], graph.solve(sources, 0.2).values[:50], 3e-2)


def test_a_link_too_weak_for_single_precision_does_not_stop_the_solver():
    weights = line(200)
    weights[199, 198] = weights[198, 199] = 1e-200  # as of a row far from all others
    sources = np.zeros((200, 2))
    sources[0, 0] = sources[20, 1] = 1.0
    expected = DiffusionGraph(weights).solve(sources, 0.9)
    result = DiffusionGraph(weights).solve(sources, 0.9, tol=3e-2)
    assert result.converged
    assert result.iterations <= expected.iterations
    assert_close_by_rows(result.values, expected.values, 3e-2)


def test_a_strength_too_close_to_one_for_single_precision_is_solved_in_double_precision(monkeypatch):
    sources = np.zeros((200, 2))
    sources[0, 0] = sources[20, 1] = 1.0
    precisions = set()
    iterate = diffusion_solver.DiffusionSystem.iterate

    def recorded(system, rhs, *others):
        precisions.add(rhs.dtype)
        return iterate(system, rhs, *others)

    monkeypatch.setattr(diffusion_solver.DiffusionSystem, "iterate", recorded)
    assert DiffusionGraph(line(200)).solve(sources, 1 - 1e-7, tol=3e-2).converged
    assert precisions == {np.dtype(np.float64)}


def test_a_start_that_is_not_finite_is_replaced(graph):
    start = np.full((250, 3), np.nan)
    result = graph.solve(labels(250), 0.9, start=start)
    assert result.converged
    np.testing.assert_allclose(result.values, graph.solve(labels(250), 0.9).values, rtol=1e-6)


def test_narrow_values_stay_positive_where_a_label_reaches():
    sources = np.zeros((1500, 2))
    sources[0, 0] = sources[1, 1] = 1.0
    wide = DiffusionGraph(line(1500)).solve(sources, 0.2).values
    narrow = DiffusionGraph(line(1500)).solve(sources, 0.2, dtype=np.float32).values
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(narrow > 0, wide > 0)
    np.testing.assert_allclose(narrow[:20], wide[:20], rtol=1e-6)


def test_values_of_some_rows_and_values_in_place_are_those_of_all_rows(graph):
    chosen, start = np.array([7, 3, 200]), np.zeros((250, 3))
    values = graph.solve(labels(250), 0.9).values
    np.testing.assert_array_equal(graph.solve(labels(250), 0.9, rows=chosen).values, values[chosen])
    in_place = graph.solve(labels(250), 0.9, start=start, overwrite_start=True).values
    assert in_place is start
    assert_close_by_rows(in_place, values, 2e-6)


def test_two_rows_by_hand():
    result = DiffusionGraph(np.array([[0.0, 2.0], [2.0, 0.0]])).solve(np.array([[1.0], [0.0]]), 0.5)
    np.testing.assert_allclose(result.values[:, 0], [4 / 3, 2 / 3], rtol=1e-6)


def test_what_no_source_reaches_is_exactly_zero(rows):
    X = np.vstack([rows, rows + 100.0])
    graph = DiffusionGraph.from_neighbors(NeighborIndex(X).graph(8))
    assert len(np.unique(graph.components[:250])) == 1
    assert set(graph.components[:250]).isdisjoint(graph.components[250:])
    sources = labels(500)
    sources[250:] = 0.0
    values = graph.solve(sources, 0.9, start=np.ones((500, 3))).values
    assert (values[250:] == 0).all()
    assert (values[:250].sum(axis=1) > 0).all()


def test_no_sources_no_values(graph):
    result = graph.solve(np.zeros((250, 2)), 0.9)
    assert result.converged
    assert (result.values == 0).all()


@pytest.mark.parametrize("factor", [1e-250, 1e200])
def test_values_grow_with_the_sources(graph, factor):
    one, other = graph.solve(labels(250), 0.9), graph.solve(labels(250) * factor, 0.9)
    np.testing.assert_allclose(other.values / factor, one.values, rtol=1e-9)


def test_sparse_sources_are_sources(graph):
    dense, sparse = graph.solve(labels(250), 0.9), graph.solve(sp.csr_array(labels(250)), 0.9)
    np.testing.assert_array_equal(dense.values, sparse.values)


def test_a_start_near_the_solution_saves_the_way(graph):
    cold = graph.solve(labels(250), 0.99)
    assert graph.solve(labels(250), 0.99, start=cold.values).iterations <= 2
    changed = labels(250)
    changed[0] = [1.0, 0.0, 0.0]
    warm, again = graph.solve(changed, 0.99, start=cold.values), graph.solve(changed, 0.99)
    assert warm.iterations <= again.iterations
    assert_close_by_rows(warm.values, again.values, 2e-6)
    wild = graph.solve(changed, 0.99, start=np.full((250, 3), 1e30))
    assert_close_by_rows(wild.values, again.values, 2e-6)


def test_many_columns_are_the_same_as_few(graph, monkeypatch):
    sources = labels(250, 20, 2)
    together = graph.solve(sources, 0.9)
    monkeypatch.setattr(diffusion_solver, "COLUMNS_PER_BLOCK", 6)
    apart = graph.solve(sources, 0.9)
    assert apart.converged
    assert_close_by_rows(apart.values, together.values, 2e-6)


def test_many_columns_keep_their_shares_far_from_all_sources(monkeypatch):
    sources = np.zeros((400, 5))
    sources[np.arange(5) * 3, np.arange(5)] = 1.0
    monkeypatch.setattr(diffusion_solver, "COLUMNS_PER_BLOCK", 2)
    assert_close_by_rows(DiffusionGraph(line(400)).solve(sources, 0.7).values, series(line(400), 0.7, sources), 1e-6)


def test_neither_threads_nor_the_order_of_rows_matter(monkeypatch, neighbors, graph):
    plain = graph.solve(labels(250), 0.95)
    monkeypatch.setattr(diffusion, "REORDERED_ROWS", 10)
    monkeypatch.setattr(diffusion_solver, "ROWS_PER_BLOCK", 40)
    reordered = DiffusionGraph.from_neighbors(neighbors)
    one, three = (reordered.solve(labels(250), 0.95, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.values, three.values)
    assert_close_by_rows(one.values, plain.values, 2e-6)
    np.testing.assert_array_equal(reordered.degrees, graph.degrees)
    assert len(np.unique(reordered.components)) == len(np.unique(graph.components))


def test_too_few_iterations_are_admitted(graph):
    result = graph.solve(labels(250), 0.999, max_iter=5)
    assert not result.converged
    assert result.residual > 1e-6
    assert np.isfinite(result.values).all()


def test_the_diagonal_is_that_of_the_inverse(monkeypatch, neighbors):
    monkeypatch.setattr(diffusion, "REORDERED_ROWS", 100)
    chosen = np.random.default_rng(0).choice(250, 40, replace=False)
    matrix = np.eye(250) - 0.9 * normalized(self_tuned_weights(neighbors))
    found = DiffusionGraph.from_neighbors(neighbors).inverse_diagonal(chosen, 0.9, tol=1e-8, n_jobs=2)
    np.testing.assert_allclose(found.values, np.diag(np.linalg.inv(matrix))[chosen], rtol=1e-8)


def test_the_diagonal_leaves_a_label_out(graph):
    """Without a row's own label its values change by its entry of the inverse, and by nothing else."""
    sources = labels(250)
    labelled = np.flatnonzero(sources.any(axis=1))
    own = graph.inverse_diagonal(labelled, 0.9, tol=1e-10).values[:, None]
    left_out = graph.solve(sources, 0.9, tol=1e-10).values[labelled] - own * sources[labelled]
    for number, row in enumerate(labelled):
        without = sources.copy()
        without[row] = 0.0
        np.testing.assert_allclose(left_out[number], graph.solve(without, 0.9).values[row], rtol=1e-4)


def test_the_diagonal_reports_whether_it_converged(graph):
    stopped = graph.inverse_diagonal(np.arange(40), 0.9, max_iter=2)
    assert not stopped.converged
    assert stopped.residual > 1e-6
    solved = graph.inverse_diagonal(np.arange(40), 0.9)
    assert solved.converged
    assert 0 < solved.residual <= 1e-6
    assert solved.iterations > stopped.iterations
    exact = graph.inverse_diagonal(np.arange(40), 0.9, tol=1e-13).values
    for found in (stopped, solved):  # the error is a bound
        assert (np.abs(found.values - exact) <= found.residual).all()


def test_no_rows_no_diagonal(graph):
    assert graph.inverse_diagonal(np.array([], dtype=int), 0.9).values.shape == (0,)


def test_where_the_inverse_underflows_the_values_are_found_level_by_level(monkeypatch):
    sources = np.zeros((500, 2))
    sources[[0, 1], [0, 1]] = 1.0
    expected = DiffusionGraph(line(500)).solve(sources, 0.05).values
    monkeypatch.setattr(diffusion, "MAX_INVERSE_ROWS", 1000)
    values = DiffusionGraph(line(500)).solve(sources, 0.05).values
    np.testing.assert_array_equal(values, expected)
    assert (values.sum(axis=1) > 0).all()


def test_blocks_of_columns_give_what_all_columns_together_give(monkeypatch):
    rng = np.random.default_rng(1)
    clouds = rng.normal(size=(400, 3)) + 50.0 * rng.integers(4, size=(400, 1))  # four components
    graph, sources = DiffusionGraph.from_neighbors(NeighborIndex(clouds).graph(8)), labels(400, 12, 3)
    assert len(np.unique(graph.components)) >= 4
    together = graph.solve(sources, 0.9, tol=1e-9)
    monkeypatch.setattr(diffusion_solver, "COLUMNS_PER_BLOCK", 5)
    for given in (sources, sp.csr_array(sources)):
        apart = graph.solve(given, 0.9, tol=1e-9, start=0.9 * together.values)
        assert apart.converged
        assert_close_by_rows(apart.values, together.values, 1e-7)
        assert ((apart.values == 0) == (together.values == 0)).all()


def test_the_diagonal_is_found_on_the_components_of_its_rows():
    three_lines = sp.block_diag([line(30), line(20), line(10)]).tocsr()
    chosen = np.array([0, 45, 7, 31])
    found = DiffusionGraph(three_lines).inverse_diagonal(chosen, 0.7, tol=1e-9)
    inverse = np.linalg.inv(np.eye(60) - 0.7 * normalized(three_lines))
    np.testing.assert_allclose(found.values, np.diag(inverse)[chosen], rtol=1e-8)


def test_groups_of_columns_are_as_accurate_as_if_each_was_solved_alone(graph):
    large, small = labels(250, seed=1), 1e-3 * labels(250, seed=2)
    together = graph.solve(np.hstack([large, small]), 0.95, tol=1e-4, n_groups=2)
    assert together.converged
    for found, initial in zip(np.hsplit(together.values, 2), (large, small), strict=True):
        assert_close_by_rows(found, graph.solve(initial, 0.95, tol=1e-10).values, 1e-4)


def test_a_group_without_mass_in_the_distant_rows_does_not_keep_the_solver_busy():
    graph = DiffusionGraph(sp.block_diag([line(700), line(20)]).tocsr())
    initial = np.zeros((720, 4))
    initial[0, 0] = initial[1, 1] = initial[700, 2] = initial[701, 3] = 1.0  # the second group is in the short line
    found = graph.solve(initial, 0.8, tol=3e-2, n_groups=2)
    alone = graph.solve(initial[:, :2], 0.8, tol=3e-2)
    assert found.converged
    assert found.iterations < 2 * alone.iterations
    assert_close_by_rows(found.values[:700, :2], alone.values[:700], 0.1)
    assert not found.values[700:, :2].any()
    assert not found.values[:700, 2:].any()
