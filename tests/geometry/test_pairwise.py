"""Costs between rows, against scikit-learn's own distances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from otprop.geometry.pairwise import METRICS, EuclideanCost, make_pairwise_cost
from otprop.geometry.row_matching import first_of_each, row_keys


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


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_identical_rows_are_recognised(make):
    rows = make([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [0.0, 2.0], [1.0, 1.0]])
    keys = list(row_keys(rows))
    assert keys[0] == keys[2]
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3
    assert first_of_each(rows).tolist() == [0, 1, 4]
