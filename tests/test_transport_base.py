"""Costs, weights and rows of any magnitude give finite plans and no NumPy warning (pytest turns those into errors)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from otprop import OTP, PaperOTP


@pytest.fixture(scope="module")
def table():
    X, truth = load_iris(return_X_y=True)
    return X, np.where(np.arange(len(X)) % 10 == 0, truth, -1)


def check(model, n_rows):
    assert model.label_distributions_.shape[0] == n_rows
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)
    assert 0 < model.epsilon_ < np.inf
    return model


# Costs


@pytest.mark.parametrize("estimator", [PaperOTP, OTP])
@pytest.mark.parametrize("size", [1e-300, 1e-40, 1e37, 1e100, 1e300, 1e307])
def test_the_unit_of_precomputed_costs_does_not_matter(size, estimator):
    rng = np.random.default_rng(0)
    costs = 0.5 + rng.random((40, 40)) / 2  # a narrow range, which float32 would hold in a usual unit
    costs = (costs + costs.T) / 2
    y = np.where(np.arange(40) < 12, np.arange(40) % 3, -1)
    plain, other = (check(estimator(cost="precomputed").fit(costs * unit, y), 40) for unit in (1.0, size))
    np.testing.assert_allclose(other.label_distributions_, plain.label_distributions_, rtol=1e-6)
    assert np.isfinite(other.predict_proba(costs * size)).all()
    assert other.epsilon_ / size == pytest.approx(plain.epsilon_, rel=1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e100, 1e200])
def test_the_unit_of_the_rows_does_not_matter_to_a_metric(table, size):
    X, y = table
    plain, other = (check(PaperOTP(cost="cityblock").fit(X * unit, y), len(X)) for unit in (1.0, size))
    np.testing.assert_allclose(other.label_distributions_, plain.label_distributions_, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("metric", ["mahalanobis", "seuclidean"])
@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e160, 1e300])
def test_metrics_that_standardise_the_rows_do_not_depend_on_their_unit(table, size, metric):
    X, y = table
    plain, other = (check(PaperOTP(cost=metric).fit(X * unit, y), len(X)) for unit in (1.0, size))
    np.testing.assert_allclose(other.label_distributions_, plain.label_distributions_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(
        other.predict_proba((X + 0.1) * size), plain.predict_proba(X + 0.1), rtol=1e-5, atol=1e-9
    )
    assert np.isfinite(other.predict_proba(np.full((1, 4), 1e308))).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("estimator", [PaperOTP, OTP])
@pytest.mark.parametrize("size", [1e-300, 1e160, 1e300])
def test_the_automatic_epsilon_is_positive_and_finite(table, size, estimator, sparse):
    X, y = table
    rows = sp.csr_array(X * size) if sparse else X * size
    parameters = {"evidence": None} if estimator is OTP else {}
    check(estimator(cost="sqeuclidean", **parameters).fit(rows, y), len(X))


# Weights


@pytest.mark.parametrize("ratio", [1e10, 1e24, 1e30, 1e200, 1e300])
def test_weights_of_any_ratio_give_finite_shares(table, ratio):
    X, y = table
    weights = np.ones(len(X))
    labeled = np.flatnonzero(y >= 0)
    for spread in (np.geomspace(1, ratio, len(labeled)), np.where(np.arange(len(labeled)) % 2, 1.0, ratio)):
        weights[labeled] = spread / np.sqrt(ratio)
        model = PaperOTP(epsilon=1.0)
        check(model.fit(X, y, sample_weight=weights), len(X))
        assert np.isfinite(model.predict_proba(X + 0.1)).all()


# Rows


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e308])
def test_new_affinities_of_any_size_give_means(size):
    X = sp.csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    model = OTP(cost="graph").fit(X, np.array([0, -1, -1, 1]))
    plain, other = (model.predict_proba(sp.csr_array([[1.0, 1.0, 0.0, 1.0]]) * unit) for unit in (1.0, size))
    np.testing.assert_allclose(other, plain)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("parameters", [{"evidence": ["forest"]}, {"cost": "cityblock", "evidence": None}], ids=str)
def test_sparse_rows_with_64_bit_indices_are_accepted(table, parameters, make):
    X, y = table
    rows = make(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    wide, usual = (OTP(**parameters, random_state=0).fit(table, y) for table in (rows, make(X)))
    assert rows.indices.dtype == np.int64
    np.testing.assert_array_equal(wide.label_distributions_, usual.label_distributions_)
    np.testing.assert_array_equal(wide.predict_proba(rows), usual.predict_proba(rows))
