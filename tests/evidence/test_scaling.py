"""Normal scores of columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kurtosis, norm, rankdata, skew

from otprop.evidence import scaling as module
from otprop.evidence.scaling import NormalScores


def test_a_skewed_column_with_outliers_becomes_normal():
    rng = np.random.default_rng(0)
    column = np.exp(3 * rng.normal(size=2000))
    column[:5] = 1e12
    found = NormalScores().fit(column[:, None]).transform(column[:, None])[:, 0]
    assert abs(skew(found)) < 0.1
    assert abs(kurtosis(found)) < 0.3
    assert found.mean() == pytest.approx(0, abs=1e-6)
    assert found.std() == pytest.approx(1, abs=1e-6)


def test_scores_are_normal_quantiles_of_the_mid_ranks():
    column = np.array([3.0, 1.0, 1.0, 1.0, 7.0, 3.0])
    found = NormalScores().fit(column[:, None]).transform(column[:, None])[:, 0]
    expected = norm.ppf((rankdata(column) - 0.5) / 6)  # average ranks
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_value_between_two_known_ones_has_a_score_between_theirs_and_one_beyond_them_that_of_the_last():
    scores = NormalScores().fit(np.array([[0.0], [1.0], [2.0]]))
    low, between, high, beyond = scores.transform(np.array([[0.0], [0.5], [2.0], [99.0]]))[:, 0]
    assert low < between < 0 < high == beyond


def test_a_monotone_change_of_a_column_changes_nothing():
    X = np.random.default_rng(1).normal(size=(150, 2))
    changed = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3])
    np.testing.assert_allclose(
        NormalScores().fit(X).transform(X), NormalScores().fit(changed).transform(changed), atol=1e-9
    )


def test_of_many_distinct_values_some_are_stored_and_the_scores_hardly_differ(monkeypatch):
    X = np.random.default_rng(2).gamma(1.0, size=(3000, 1))
    few = NormalScores().fit(X)
    monkeypatch.setattr(module, "MAX_KNOTS", 10_000)
    all_of_them = NormalScores().fit(X)
    assert len(few.values) <= 256 < len(all_of_them.values)
    assert np.abs(few.transform(X) - all_of_them.transform(X)).max() < 0.1


def test_many_columns_become_fifty_components_that_keep_the_large_differences():
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=(400, 3))
    X = hidden @ rng.normal(size=(3, 120)) + 0.1 * rng.normal(size=(400, 120))
    found = NormalScores().fit(X).transform(X)
    assert found.shape == (400, 50)
    variances = np.sort(found.var(axis=0))[::-1]
    assert variances[:3].sum() > 0.8 * variances.sum()


def test_constant_columns_are_left_out_and_a_table_of_nothing_else_is_one_column_of_zeros():
    X = np.column_stack([np.full(20, 4.0), np.arange(20.0)])
    assert NormalScores().fit(X).transform(X).shape == (20, 1)
    np.testing.assert_array_equal(NormalScores().fit(X[:, :1]).transform(X[:, :1]), np.zeros((20, 1)))
