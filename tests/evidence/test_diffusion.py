"""Labels that diffuse over the graph of the rows, in settings weighed by hidden labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.evidence import diffusion as module
from otprop.evidence.base import powered
from otprop.evidence.diffusion import DiffusionSource, Setting
from otprop.evidence.held_out import make_folds
from otprop.geometry.diffusion import DiffusionGraph
from otprop.geometry.neighbors import NeighborIndex


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setattr(module, "TOL", 1e-12)


def clouds(n_rows, gap=2.0, seed=0):
    """Two clouds a `gap` apart, and their classes."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, 2)) + gap * truth[:, None], truth


def source_of(X, *settings):
    """A source over the graph of neighbours, for settings of (neighbours, strength)."""
    neighbors = NeighborIndex(X, n_jobs=1).graph(max(k for k, _ in settings))
    found = [Setting(DiffusionGraph.from_neighbors(neighbors, k), k, strength) for k, strength in settings]
    return DiffusionSource(found, 2, 1)


def inverse(setting):
    """The whole of ``(I - strength S)^-1``."""
    return setting.graph.solve(np.eye(setting.graph.n_rows), setting.strength, tol=1e-12, n_jobs=1).values


def masses_of(codes, weights):
    masses = np.zeros((len(codes), 2))
    masses[codes >= 0, codes[codes >= 0]] = weights[codes >= 0]
    return masses


@pytest.mark.parametrize("n_labels", [12, 80])
def test_a_hidden_label_is_answered_for_as_if_it_had_never_been_given(n_labels):
    X, truth = clouds(100)
    codes = np.where(np.arange(100) < n_labels, truth, -1)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, 100)
    weights /= weights[codes >= 0].max()
    hidden = make_folds(codes, 2, 0)
    assert hidden.leave_one_out == (n_labels == 12)
    source = source_of(X, (6, 0.9))
    says = source.fit(codes, weights, hidden)
    spread = inverse(source.settings[0])
    counts = np.bincount(codes[codes >= 0])
    for place, row in enumerate(hidden.rows):
        fold = hidden.rows[hidden.fold == hidden.fold[place]]
        shown = codes.copy()
        shown[fold] = -1
        values = spread[row] @ masses_of(shown, weights)
        values *= counts / np.bincount(shown[shown >= 0])  # what is left of a class speaks for all of it
        expected = np.log(source.settings[0].probabilities(values[None])[0])
        np.testing.assert_allclose(says.held_out[place], expected, atol=1e-6)


def test_every_row_is_answered_for_by_the_mixture_of_all_settings():
    X, truth = clouds(60)
    codes = np.where(np.arange(60) < 14, truth, -1)
    source = source_of(X, (5, 0.8), (5, 0.95), (9, 0.8))
    says = source.fit(codes, np.ones(60), make_folds(codes, 2, 0))
    parts = [
        setting.weight * powered(inverse(setting) @ masses_of(codes, np.ones(60)) + setting.background, setting.power)
        for setting in source.settings
    ]
    assert sum(setting.weight for setting in source.settings) == pytest.approx(1)
    np.testing.assert_allclose(np.exp(says.rows), sum(parts), atol=1e-5)
    np.testing.assert_allclose(np.exp(says.rows).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(says.held_out).sum(axis=1), 1)


def test_a_row_that_labels_hardly_reach_is_undecided():
    n_rows = 200
    path = sp.diags_array([np.ones(n_rows - 1)] * 2, offsets=[-1, 1])  # a chain: the mass fades with every step
    codes = np.full(n_rows, -1)
    codes[:2], codes[20:22] = 0, 1
    source = DiffusionSource([Setting(DiffusionGraph(sp.csr_array(path)), None, 0.9)], 2, 1)
    rows = np.exp(source.fit(codes, np.ones(n_rows), make_folds(codes, 2, 0)).rows)
    np.testing.assert_allclose(rows[150:], 0.5, atol=1e-3)
    assert rows[0, 0] > 0.9
    assert rows[30, 1] > 0.9
    assert source.reached().all()


def test_rounds_that_build_on_one_another_end_where_one_alone_does():
    X, truth = clouds(60)
    codes = np.where(np.arange(60) < 14, truth, -1)
    growing = source_of(X, (5, 0.8), (9, 0.95))
    growing.fit(codes, np.ones(60), make_folds(codes, 2, 0))
    weights = np.where(codes >= 0, 1.0, 0.3)
    for end in (20, 40):
        grown = growing.update(np.where(np.arange(60) < end, truth, codes), weights)
    for setting in growing.settings:
        setting.values = None
    anew = growing.update(np.where(np.arange(60) < 40, truth, codes), weights)
    np.testing.assert_allclose(grown, anew, atol=1e-5)


def test_the_size_of_the_weights_does_not_matter():
    X, truth = clouds(60)
    codes = np.where(np.arange(60) < 14, truth, -1)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, 60)
    first, *others = (
        source_of(X, (5, 0.9)).fit(codes, weights * size, make_folds(codes, 2, 0)).rows for size in (1.0, 1e300, 1e-300)
    )
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-5)


def test_the_setting_that_suits_the_hidden_labels_weighs_more():
    X, truth = clouds(80, gap=4.0)
    noise = np.random.default_rng(0).normal(size=(80, 2))
    codes = np.where(np.arange(80) < 40, truth, -1)
    graphs = [DiffusionGraph.from_neighbors(NeighborIndex(rows, n_jobs=1).graph(6)) for rows in (X, noise)]
    source = DiffusionSource([Setting(graph, 6, 0.9) for graph in graphs], 2, 1)
    good, bad = source.settings
    source.fit(codes, np.ones(80), make_folds(codes, 2, 0))
    assert good.likelihood > bad.likelihood
    assert good.weight > bad.weight
    assert good.power > bad.power  # and what it says may be read sharply
    assert bad.weight < 0.02 or bad in source.settings


def test_without_hidden_labels_all_settings_weigh_the_same():
    X, _ = clouds(30)
    codes = np.where(np.arange(30) < 2, np.arange(30), -1)
    source = source_of(X, (5, 0.8), (5, 0.95))
    says = source.fit(codes, np.ones(30), make_folds(codes, 2, 0))
    assert says.held_out.shape == (0, 2)
    assert [setting.weight for setting in source.settings] == [0.5, 0.5]
    assert {setting.power for setting in source.settings} == {module.POWERS.start}


@pytest.mark.parametrize("n_labelled", [12, 120])
def test_of_a_label_that_is_alone_in_its_part_of_the_graph_nothing_is_known_when_it_is_held_out(n_labelled):
    rows = 3 * n_labelled  # parts of three rows, one of them labelled: folds where labels are many, else one by one
    graph = DiffusionGraph(sp.block_diag([np.ones((3, 3)) - np.eye(3)] * n_labelled))
    codes = np.where(np.arange(rows) % 3 == 0, np.arange(rows) // 3 % 2, -1)
    held_out = make_folds(codes, 2, 0)
    assert held_out.leave_one_out == (n_labelled == 12)
    source = DiffusionSource([Setting(graph, None, 0.9)], 2, 1)
    output = source.fit(codes, np.ones(rows), held_out)
    np.testing.assert_allclose(output.held_out, np.log(0.5))
    assert not source.held_out_reached.any()
    assert source.reached().all()
    assert source.converged


def test_rows_in_a_part_of_the_graph_without_labels_are_not_reached():
    graph = DiffusionGraph(sp.block_diag([np.ones((4, 4)), np.ones((3, 3)), np.zeros((1, 1))]))
    codes = np.array([0, 1, -1, -1, -1, -1, -1, -1])
    source = DiffusionSource([Setting(graph, None, 0.9)], 2, 1)
    says = source.fit(codes, np.ones(8), make_folds(codes, 2, 0))
    assert source.reached().tolist() == [True] * 4 + [False] * 4
    np.testing.assert_allclose(np.exp(says.rows[4:]), 0.5)
    new = source.predict_log_proba(sp.csr_array(np.array([[1.0] + [0.0] * 7, [0.0] * 5 + [1.0] * 3, [0.0] * 8])))
    assert np.isfinite(new[0]).all()
    assert (new[1:] == -np.inf).all()


def test_new_rows_are_answered_for_by_their_neighbours():
    X, truth = clouds(100, gap=4.0)
    codes = np.where(np.arange(100) < 10, truth, -1)
    source = source_of(X, (6, 0.9), (9, 0.8))
    source.fit(codes, np.ones(100), make_folds(codes, 2, 0))
    new, new_truth = clouds(40, gap=4.0, seed=1)
    said = source.predict_log_proba(NeighborIndex(X, n_jobs=1).query(new, 9))
    np.testing.assert_allclose(np.exp(said).sum(axis=1), 1)
    assert (said.argmax(axis=1) == new_truth).mean() > 0.9


def test_folds_side_by_side_give_what_each_fold_gives_alone(monkeypatch):
    rng = np.random.default_rng(4)
    truth = np.arange(700) % 2
    X = rng.normal(size=(700, 3)) + 1.5 * truth[:, None]
    codes = np.where(np.arange(700) < 80, truth, -1)
    held_out = make_folds(codes, 2, 0)
    assert held_out.n_folds == 5
    found = []
    for most in (64, 2):
        monkeypatch.setattr(module, "MAX_COLUMNS_OF_GROUPS", most)
        found.append(source_of(X, (10, 0.9)).fit(codes, np.ones(700), held_out).held_out)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_the_mixture_is_the_same_in_blocks_of_rows(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 2))
    codes = np.where(np.arange(60) < 12, np.arange(60) % 2, -1)
    whole = source_of(X, (5, 0.9), (8, 0.5)).fit(codes, np.ones(60), make_folds(codes, 2, 0)).rows
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 7)
    blocks = source_of(X, (5, 0.9), (8, 0.5)).fit(codes, np.ones(60), make_folds(codes, 2, 0)).rows
    np.testing.assert_array_equal(blocks, whole)


@pytest.mark.parametrize("n_labels", [40, 300], ids=["one at a time", "in folds"])
def test_as_much_label_mass_reaches_held_out_rows_as_reaches_the_others(n_labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    codes = np.where(rng.permutation(900) < n_labels, (X[:, 0] > 0).astype(int), -1)
    source = source_of(X, (10, 0.95))
    source.fit(codes, np.ones(900), make_folds(codes, 2, 0))
    difference = np.median(source.held_out_log_reach) - np.median(source.log_reach[codes < 0])
    assert abs(difference) < 0.15  # a fifth of the mass is missing in a fold: 0.22


def test_the_mass_of_other_labels_is_that_of_a_fit_without_the_own_label():
    X, truth = clouds(60)
    codes = np.where(np.arange(60) < 9, truth, -1)
    weights = np.random.default_rng(0).uniform(0.5, 1.0, 60)
    weights /= weights[codes >= 0].max()
    source = source_of(X, (6, 0.9))
    source.fit(codes, weights, make_folds(codes, 2, 0))
    spread = inverse(source.settings[0])
    rows = np.array([0, 4, 7])
    found = source.log_reach_of_others(codes, weights, rows)
    for row, reach in zip(rows, found, strict=True):
        others = codes.copy()
        others[row] = -1
        values = spread[row] @ masses_of(others, weights)
        degree = source.settings[0].graph.degrees[row]
        assert reach == pytest.approx(np.log(values.sum() / np.sqrt(degree)), abs=1e-6)


def test_a_row_far_from_all_others_is_hardly_reached(monkeypatch):
    monkeypatch.setattr(module, "TOL", 3e-2)
    X, truth = clouds(700)
    X[-1] = 1e200
    codes = np.where(np.arange(700) < 20, truth, -1)
    source = source_of(X, (10, 0.9))
    source.fit(codes, np.ones(700), make_folds(codes, 2, 0))
    assert np.isfinite(source.log_reach).all()
    assert source.log_reach[-1] <= source.log_reach[:-1].max()
    for _ in range(2):
        codes[20:400] = truth[20:400]
        assert np.isfinite(source.update(codes, np.ones(700))).all()


def test_settings_solved_one_after_another_say_the_same(monkeypatch):
    X, truth = clouds(700)
    codes = np.where(np.arange(700) < 20, truth, -1)
    said = []
    for most in (1000, 600):
        monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", most)
        source = DiffusionSource(source_of(X, (5, 0.9), (8, 0.5)).settings, 2, n_jobs=2)
        said.append(source.fit(codes, np.ones(700), make_folds(codes, 2, 0)).rows)
    np.testing.assert_array_equal(*said)
