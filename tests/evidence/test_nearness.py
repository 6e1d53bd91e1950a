"""Nearness to the labelled rows of each class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from otprop.evidence.held_out import make_folds
from otprop.evidence.nearness import NearnessSource
from otprop.geometry.pairwise import MatrixCost, make_pairwise_cost

NOTHING_HELD_OUT = make_folds(np.array([-1]), 3, 0)


def table(n_rows=30, n_classes=3, seed=0):
    """Rows, their classes and weights, a third of them labelled."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    codes = np.where(np.arange(n_rows) < max(n_rows // 3, n_classes), np.arange(n_rows) % n_classes, -1)
    return X, codes, rng.uniform(0.5, 2.0, n_rows)


def by_definition(X, codes, weights, epsilon, n_classes, skip=None):
    """Log-probabilities from the sum over labelled rows; those that `skip` names for a row leave theirs to the rest."""
    costs = ((X[:, None] - X) ** 2).sum(axis=-1)
    found = np.full((len(X), n_classes), -np.inf)
    for row in range(len(X)):
        for code in range(n_classes):
            sources = np.flatnonzero(codes == code)
            shown = sources[~np.isin(sources, skip(row))] if skip else sources
            terms = np.log(weights[shown]) - costs[row, shown] / epsilon
            found[row, code] = logsumexp(terms) + np.log(len(sources) / len(shown))
    return found - logsumexp(found, axis=1, keepdims=True)


def source_of(X, n_classes=3, epsilon=0.5):
    return NearnessSource(MatrixCost(((X[:, None] - X) ** 2).sum(axis=-1)), len(X), n_classes, epsilon)


def test_a_class_is_as_near_as_its_rows_together():
    X, codes, weights = table()
    says = source_of(X).fit(codes, weights, NOTHING_HELD_OUT)
    np.testing.assert_allclose(says.rows, by_definition(X, codes, weights, 0.5, 3), rtol=1e-5)


@settings(deadline=None)
@given(seed=st.integers(0, 500), cut=st.integers(11, 29))
def test_growing_with_the_rounds_is_the_same_as_summing_anew(seed, cut):
    X, given_codes, weights = table(seed=seed)
    growing = source_of(X)
    growing.fit(given_codes, weights, NOTHING_HELD_OUT)
    for end, joining in ((cut, [0.3, 0.2, 0.4]), (30, [0.1, 0.5, 0.2])):  # what joins is weighed anew in every round
        codes = np.where((given_codes < 0) & (np.arange(30) < end), np.arange(30) % 3, given_codes)
        weights = np.where(given_codes < 0, np.array(joining)[np.arange(30) % 3], weights)
        grown = growing.update(codes, weights)
        anew = source_of(X).fit(codes, weights, NOTHING_HELD_OUT).rows
        np.testing.assert_allclose(grown, anew, atol=1e-5)
        np.testing.assert_allclose(growing.predict_log_proba(((X[:, None] - X) ** 2).sum(axis=-1)), anew, atol=1e-5)


def test_a_hidden_label_is_answered_for_without_its_fold():
    X, codes, weights = table(90)
    codes = np.where(np.arange(90) < 80, np.arange(90) % 3, -1)
    hidden = make_folds(codes, 3, 0)
    assert not hidden.leave_one_out
    says = source_of(X).fit(codes, weights, hidden)
    fold_of = dict(zip(hidden.rows, hidden.fold, strict=True))
    folds = {fold: hidden.rows[hidden.fold == fold] for fold in range(hidden.n_folds)}
    expected = by_definition(X, codes, weights, 0.5, 3, skip=lambda row: folds[fold_of[row]] if row in fold_of else [])
    np.testing.assert_allclose(says.held_out, expected[hidden.rows], rtol=1e-6)


def test_rows_of_weight_zero_say_nothing():
    X, codes, weights = table()
    weights[:3] = 0
    without = np.where(np.arange(30) < 3, -1, codes)
    first = source_of(X).fit(codes, weights, NOTHING_HELD_OUT).rows
    np.testing.assert_array_equal(first, source_of(X).fit(without, weights, NOTHING_HELD_OUT).rows)


def test_epsilon_is_chosen_to_suit_the_hidden_labels():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 1)), rng.normal(size=(40, 1)) + 6]) * 0.01
    codes = np.full(80, -1)
    codes[::4] = np.repeat([0, 1], 40)[::4]
    easy = source_of(X, 2, None)
    easy.fit(codes, np.ones(80), make_folds(codes, 2, 0))
    noise = source_of(X, 2, None)
    codes[::4] = rng.integers(0, 2, 20)
    noise.fit(codes, np.ones(80), make_folds(codes, 2, 0))
    assert noise.epsilon > easy.epsilon  # labels that are noise are best read through a blur


@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
def test_new_rows_are_asked_in_the_same_way(cost):
    X, codes, weights = table()
    source = NearnessSource(make_pairwise_cost(X, cost), 30, 3, 0.5)
    says = source.fit(codes, weights, make_folds(codes, 3, 0))
    np.testing.assert_allclose(source.predict_log_proba(X), says.rows, atol=1e-4)
    assert source.reached().all()


def test_a_row_too_far_for_a_float_is_answered_for_all_the_same():
    X, codes, weights = table()
    source = NearnessSource(make_pairwise_cost(X, "sqeuclidean"), 30, 3, 1e-300)
    says = source.fit(codes, weights, NOTHING_HELD_OUT)
    assert np.isfinite(says.rows).all()
    far = source.predict_log_proba(np.array([[1e200, -1e200]]))
    assert np.isfinite(far).all()
    np.testing.assert_allclose(np.exp(far).sum(), 1)


@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
def test_one_label_a_class_is_enough(cost):
    X, _, weights = table()
    codes = np.where(np.arange(30) < 3, np.arange(30), -1)
    source = NearnessSource(make_pairwise_cost(X, cost), 30, 3)
    says = source.fit(codes, weights, make_folds(codes, 3, 0))
    assert says.held_out.shape == (0, 3)
    assert source.epsilon > 0
    assert np.isfinite(says.rows).all()
