"""Costs between rows, against scikit-learn's own distances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from otprop import PaperOTP
from otprop.geometry.pairwise import METRICS, EuclideanCost, MatrixCost, in_user_units, make_pairwise_cost


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.filterwarnings("ignore:Data was converted to boolean")
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_gives_scikit_learns_distances(rows, metric):
    pairs = make_pairwise_cost(rows, metric)
    ours = pairs.columns(np.arange(5))(np.arange(5, 20)) * pairs.scale
    np.testing.assert_allclose(ours, pairwise_distances(rows, metric=metric)[5:, :5], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "mahalanobis"])
def test_new_rows_are_measured_like_old_ones(rows, metric):
    pairs = make_pairwise_cost(rows, metric)
    here = np.arange(7, 12)
    old = pairs.columns(np.arange(5))(here)
    new = pairs.columns(np.arange(5), rows[7:12])(np.arange(5))
    np.testing.assert_allclose(new, old, rtol=1e-9)


def test_sparse_and_dense_rows_have_the_same_distances(rows):
    dense, sparse = EuclideanCost(rows), EuclideanCost(sp.csr_array(rows))
    one = dense.columns(np.arange(5))(np.arange(5, 20)) * dense.scale
    other = sparse.columns(np.arange(5))(np.arange(5, 20)) * sparse.scale
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_distances_keep_their_precision_at_any_scale_and_place(rows, scale, shift):
    exact = ((rows[5:, None] - rows[None, :5]) ** 2).sum(axis=-1)
    pairs = EuclideanCost((rows + shift) * scale)
    ours = pairs.columns(np.arange(5))(np.arange(5, 20)) * pairs.scale / scale / scale
    np.testing.assert_allclose(ours, exact, rtol=1e-7 if shift else 1e-11, atol=1e-9 if shift else 0)


def test_a_far_outlier_does_not_swallow_the_small_distances(rows):
    exact = ((rows[5:, None] - rows[None, :5]) ** 2).sum(axis=-1)
    pairs = EuclideanCost(np.vstack([rows, [[1e10, 1e10]]]))
    ours = pairs.columns(np.arange(5))(np.arange(5, 20)) * pairs.scale
    np.testing.assert_allclose(ours, exact, rtol=1e-9)


def test_the_largest_floats_do_not_overflow():
    pairs = EuclideanCost(np.array([[1.7e308], [-1.7e308], [0.0]]))
    costs = pairs.columns(np.array([0, 1]))(np.array([2]))
    assert np.isfinite(costs).all()
    assert costs[0, 0] == pytest.approx(costs[0, 1])


def test_a_scale_converts_to_user_units_without_overflow():
    assert in_user_units(3.0, 2.0) == 6.0
    assert in_user_units(3.0, 1e308) == np.finfo(float).max
    assert 0 < in_user_units(1e-10, 1e-320) < 1e-300


def test_new_costs_far_above_the_training_costs_are_bounded():
    matrix = np.full((3, 3), 1e-300)
    block = MatrixCost(matrix).columns(np.arange(3), np.full((1, 3), 1e300))(np.arange(1))
    assert np.isfinite(block).all()


def test_sparse_rows_far_from_all_others_have_finite_costs():
    pairs = make_pairwise_cost(sp.csr_array(np.eye(3)), "sqeuclidean")
    assert np.isfinite(pairs.columns(np.arange(3), sp.csr_array([[1e300, 0.0, 1e300]]))(np.arange(1))).all()
    model = PaperOTP().fit(sp.csr_array(np.eye(3)), np.array([0, -1, -1]))
    np.testing.assert_array_equal(model.predict_proba(sp.csr_array([[1e300, 0.0, 1e300]])), [[1.0]])
