"""Normal scores of columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kurtosis, norm, rankdata, skew

from otprop.evidence import scaling as module
from otprop.evidence.scaling import ColumnScaler, NormalScores


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


@settings(deadline=None)
@given(X=arrays(float, (5, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_features_of_any_size_are_brought_to_a_size_for_single_precision(X):
    features = ColumnScaler().fit(X)
    for rows in (X, X[:1] * 0.5, np.full((1, 2), 1.7e308), np.full((1, 2), -5e-324)):
        scaled = features.transform(rows)
        assert scaled.dtype == np.float32
        assert np.isfinite(scaled).all()
        assert np.isfinite(scaled**2).all()
    sparse = ColumnScaler().fit(sp.csr_array(X))
    for rows in (X, np.full((1, 2), 1.7e308)):
        assert np.isfinite(sparse.transform(sp.csr_array(rows)).toarray()).all()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e150, 0.0), (1e-150, 0.0), (1e-320, 0.0), (1.0, 1e9)])
def test_features_do_not_depend_on_their_units(scale, shift):
    X = np.random.default_rng(0).normal(size=(50, 3))
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    scaled = ColumnScaler().fit(X * scale + shift).transform(X * scale + shift)
    np.testing.assert_allclose(scaled, expected, atol=1e-2 if scale == 1e-320 else 1e-5)


def test_a_constant_feature_is_zero_whatever_a_new_row_has_there():
    X = np.column_stack([np.full(9, 1e-200), np.full(9, 0.1), np.arange(9.0)])
    features = ColumnScaler().fit(X)
    np.testing.assert_array_equal(features.transform(X)[:, :2], 0)
    np.testing.assert_array_equal(features.transform(np.array([[1e200, -1e200, 4.0]])), 0)


def test_sparse_features_keep_their_zeros():
    X = sp.random_array((20, 5), density=0.3, rng=0, format="csr") * 1e5
    scaled = ColumnScaler().fit(X).transform(X)
    assert scaled.nnz == X.nnz
    assert abs(scaled).max() == pytest.approx(1)


def test_columns_are_scaled_alike_whatever_fits_in_memory(monkeypatch):
    X = np.random.default_rng(0).normal(3.0, 2.0, (500, 7)) * 10.0 ** np.arange(-3, 4)
    whole = ColumnScaler().fit(X).transform(X)
    monkeypatch.setattr(module, "COLUMN_ENTRIES", 1000)  # two columns at a time
    assert np.array_equal(ColumnScaler().fit(X).transform(X), whole)
