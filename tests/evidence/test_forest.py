"""The random forest as a source."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from otprop.evidence import forest as module
from otprop.evidence.base import log_floored
from otprop.evidence.classifier import PROBABILITY_FLOOR
from otprop.evidence.forest import (
    ForestSource,
    RandomForestSource,
    columns_per_split,
    draw_seeds,
    unseen_means,
)
from otprop.evidence.held_out import make_folds
from otprop.evidence.scaling import ScaledRows


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(module, "N_TREES", 40)


def table(n_rows=90, n_classes=2, gap=3.0, seed=0):
    """Clouds a `gap` apart, two thirds of the rows labelled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 3)) + gap * truth[:, None]
    return X, np.where(np.arange(n_rows) < 2 * n_rows // 3, truth, -1), truth


def ask(X, codes, n_classes, weights=None, n_jobs=1):
    hidden = make_folds(codes, n_classes, 0)
    source = RandomForestSource(ScaledRows.of(X), n_classes, 0, n_jobs)
    return source, hidden, source.fit(codes, np.ones(X.shape[0]) if weights is None else weights, hidden)


@pytest.mark.parametrize("n_rows", [60, 600])
def test_it_says_probabilities_of_every_row_and_of_the_hidden_ones(n_rows):
    X, codes, truth = table(n_rows, n_classes=3)
    source, hidden, says = ask(X, codes, 3)
    assert says.rows.shape == (n_rows, 3)
    assert says.held_out.shape == (len(hidden), 3)
    for logs in (says.rows, says.held_out):
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9
    assert (says.held_out.argmax(axis=1) == hidden.codes).mean() > 0.85
    np.testing.assert_allclose(source.predict_log_proba(X), says.rows, rtol=1e-4)


def test_labels_at_random_are_not_known_in_advance():
    rng = np.random.default_rng(3)
    codes = rng.permutation(np.arange(200) % 2)
    _, hidden, says = ask(rng.normal(size=(200, 3)), codes, 2)
    right = (says.held_out.argmax(axis=1) == hidden.codes).mean()
    assert 0.35 < right < 0.65  # four standard deviations around a half; whoever saw the labels knows most of them


def test_a_sharp_threshold_in_one_column_of_many_is_found():
    X = np.random.default_rng(0).normal(size=(600, 20))
    truth = (X[:, 7] > 0.8).astype(int)
    _, _, says = ask(X, np.where(np.arange(600) < 150, truth, -1), 2)
    assert (says.rows.argmax(axis=1) == truth)[150:].mean() > 0.95


@pytest.mark.parametrize("source", [ForestSource, RandomForestSource])
def test_few_labels_are_enough_for_a_sharp_threshold_in_one_column_of_many(source):
    X = np.random.default_rng(0).normal(size=(600, 60))
    truth = (X[:, 7] > 0.3).astype(int)
    codes = np.where(np.arange(600) < 60, truth, -1)
    hidden = make_folds(codes, 2, 0)
    says = source(ScaledRows.of(X), 2, 0, 1).fit(codes, np.ones(600), hidden)
    assert (says.rows.argmax(axis=1) == truth)[60:].mean() > 0.9
    assert (says.held_out.argmax(axis=1) == hidden.codes).mean() > 0.8


@pytest.mark.parametrize(("n_labels", "n_classes", "n_thorough"), [(14, 2, 0), (15, 2, 20), (150, 2, 20), (151, 2, 0)])
def test_trees_that_try_every_column_stand_in_for_boosting_with_few_labels(n_labels, n_classes, n_thorough):
    X, _, _ = table(n_labels)
    _, thorough = ForestSource(ScaledRows.of(X), n_classes, 0, 1)._seeds(n_labels)
    assert len(thorough) == n_thorough


def test_it_is_the_same_with_any_number_of_jobs(monkeypatch):
    X, codes, _ = table()
    monkeypatch.setattr(module, "MIN_ENTRIES_FOR_THREADS", 0)
    _, _, one = ask(X, codes, 2, n_jobs=1)
    _, _, two = ask(X, codes, 2, n_jobs=2)
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.held_out, two.held_out)


def test_of_many_labels_some_are_enough_and_the_hidden_ones_are_among_them(monkeypatch):
    X, codes, truth = table(300)
    monkeypatch.setattr(module, "MAX_LABELS", 50)
    _, hidden, says = ask(X, codes, 2)
    assert len(hidden) > 50
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_any_scale_and_constant_columns(scale):
    X, codes, truth = table()
    X = np.column_stack([X * scale, np.full(len(X), 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, says = ask(X, codes, 2)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9


def test_sparse_rows():
    X, codes, truth = table()
    _, _, says = ask(sp.csr_array(X), codes, 2)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9


def test_one_label_a_class_leaves_nothing_to_hide():
    codes = np.array([0, 1, -1, -1])
    _, hidden, says = ask(np.array([[0.0], [1.0], [0.1], [0.9]]), codes, 2)
    assert len(hidden) == 0
    assert says.held_out.shape == (0, 2)
    assert np.isfinite(says.rows).all()


def test_rows_of_weight_zero_are_not_shown():
    X, codes, _ = table()
    weights = np.where(np.arange(len(X)) < 10, 0.0, 1.0)
    without = np.where(np.arange(len(X)) < 10, -1, codes)
    hidden = make_folds(without, 2, 0)
    one, other = (RandomForestSource(ScaledRows.of(X), 2, 0, 1) for _ in range(2))
    first, second = one.fit(codes, weights, hidden), other.fit(without, np.ones(len(X)), hidden)
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.held_out, second.held_out)


@pytest.mark.parametrize(("n_columns", "tried"), [(1, 1), (4, 2), (10, 4), (64, 25), (784, 40), (10_000, 100)])
def test_two_columns_in_five_are_tried_at_a_split(n_columns, tried):
    assert columns_per_split(n_columns) == tried


@pytest.mark.parametrize("sparse", [False, True])
def test_the_extra_trees_are_those_that_scikit_learn_grows(monkeypatch, sparse):
    monkeypatch.setattr(module, "MIN_LABELS_THOROUGH", 1000)
    X, codes, _ = table(n_classes=3)
    scaled, rows = ScaledRows.of(sp.csr_array(X) if sparse else X), np.flatnonzero(codes >= 0)
    says = ForestSource(scaled, 3, 5, 1).fit(codes, np.ones(len(X)), make_folds(codes, 3, 0))
    theirs = ExtraTreesClassifier(40, max_features=columns_per_split(3), random_state=5)
    theirs.fit(scaled.rows[rows], codes[rows], sample_weight=np.ones(len(rows)))
    np.testing.assert_allclose(says.rows, log_floored(theirs.predict_proba(scaled.rows), PROBABILITY_FLOOR), rtol=1e-5)


def test_out_of_bag_shares_are_close_to_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(module, "N_TREES", 500)
    X, codes, _ = table(n_rows=200, gap=1.0)
    scaled, rows = ScaledRows.of(X), np.flatnonzero(codes >= 0)
    source = RandomForestSource(scaled, 2, 5, 1)
    seeds = draw_seeds(5, 500)
    shares = unseen_means(
        source._grow(rows, codes, np.ones(len(X)), seeds, source._make_tree, np.arange(len(rows))), scaled.rows[rows]
    )
    theirs = RandomForestClassifier(300, min_samples_leaf=2, max_features=1, oob_score=True, random_state=0)
    theirs.fit(scaled.rows[rows], codes[rows])
    np.testing.assert_allclose(shares, theirs.oob_decision_function_, atol=0.2)
    assert np.abs(shares - theirs.oob_decision_function_).mean() < 0.04


def test_blocks_of_rows_do_not_change_predictions(monkeypatch):
    X, codes, _ = table()
    source, _, says = ask(X, codes, 2)
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(source.predict_log_proba(X).astype(np.float32), says.rows)


def test_extra_trees_are_grown_on_a_bounded_number_of_labels(monkeypatch):
    monkeypatch.setattr(module, "MAX_LABELS", 50)
    X, codes, truth = table(600)
    held_out = make_folds(codes, 2, 0)
    source = ForestSource(ScaledRows.of(X), 2, 0, 1)
    says = source.fit(codes, np.ones(len(X)), held_out)
    seen = max(tree.tree_.n_node_samples[0] for tree in source._forest.estimators_)
    assert seen == max(50, len(held_out))
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9
