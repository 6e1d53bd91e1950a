"""Costs, weights and rows of any magnitude give finite plans and no NumPy warning (pytest turns those into errors)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from otprop import OTP, PaperOTP
from otprop.geometry.cost import ArrayCost, RowCost, cost_summary
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.pairwise import MatrixCost, in_user_units, make_pairwise_cost
from otprop.geometry.row_matching import LabeledRows
from otprop.transport import sinkhorn
from otprop.transport.kernel import DenseKernel


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


def test_a_scale_converts_to_user_units_without_overflow():
    assert in_user_units(3.0, 2.0) == 6.0
    assert in_user_units(3.0, 1e308) == np.finfo(float).max
    assert 0 < in_user_units(1e-10, 1e-320) < 1e-300


def test_extreme_costs_are_not_narrowed_to_float32():
    for size in (1e-35, 1e37):
        matrix = np.full((6, 6), size)
        cost = RowCost(MatrixCost(matrix), np.arange(3, 6), np.arange(3), float32_below=np.inf)
        (block,) = [block for _, block in cost.blocks()]
        assert np.isfinite(block).all()
        np.testing.assert_allclose(block * cost.pairs.scale, matrix[3:, :3], rtol=1e-7)
        array = RowCost(_Unscaled(matrix), np.arange(3, 6), np.arange(3), float32_below=size)
        assert {block.dtype for _, block in array.blocks()} == {np.dtype(np.float64)}


class _Unscaled(MatrixCost):
    def __init__(self, matrix):
        self.matrix = matrix


def test_the_mean_of_the_largest_costs_does_not_overflow():
    _, _, mean = cost_summary(ArrayCost(np.full((50, 4), 1e308)))
    assert mean == pytest.approx(1e308)


def test_new_costs_far_above_the_training_costs_are_bounded():
    matrix = np.full((3, 3), 1e-300)
    block = MatrixCost(matrix).columns(np.arange(3), np.full((1, 3), 1e300))(np.arange(1))
    assert np.isfinite(block).all()


def test_class_shares_and_plans_of_a_tiny_epsilon_are_finite():
    result = sinkhorn(np.array([[0.0, 1e300], [1e300, 0.0]]), np.ones(2), np.ones(2), 1e-10)
    np.testing.assert_allclose(result.class_shares(np.arange(2), 2), np.eye(2))
    np.testing.assert_allclose(result.plan(), np.eye(2) / 2)


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


def test_weights_that_differ_by_more_than_a_float_holds_are_solved():
    cost = np.random.default_rng(0).random((5, 8))
    result = sinkhorn(cost, np.array([1e-300, 1.0, 1e300, 1e8, 1e300]), np.ones(8), 0.1)
    assert result.converged
    np.testing.assert_allclose(result.plan().sum(axis=1), [0, 0, 0.5, 0, 0.5], atol=1e-6)
    again = sinkhorn(cost, np.ones(5), np.full(8, 1.7e308), 0.1)
    assert again.converged
    np.testing.assert_allclose(again.plan().sum(axis=0), np.full(8, 1 / 8), atol=1e-6)


def test_the_votes_of_equal_rows_do_not_overflow():
    labeled = LabeledRows(np.arange(3), np.array([0, 1, 1]), np.full(3, 1.5e308))
    np.testing.assert_allclose(labeled.votes([0, 1, 2], 2), [1 / 3, 2 / 3])


@pytest.mark.parametrize("code", [2, 10**6])
def test_a_code_that_is_no_class_is_an_error(code):
    """Such as one from a damaged model: above 2**62, bincount would write out of bounds."""
    labeled = LabeledRows(np.arange(3), np.array([0, 1, code]), np.ones(3))
    with pytest.raises(IndexError):
        labeled.votes([0, 1, 2], 2)


# Rows


def test_sparse_rows_far_from_all_others_have_finite_costs():
    pairs = make_pairwise_cost(sp.csr_array(np.eye(3)), "sqeuclidean")
    assert np.isfinite(pairs.columns(np.arange(3), sp.csr_array([[1e300, 0.0, 1e300]]))(np.arange(1))).all()
    model = PaperOTP().fit(sp.csr_array(np.eye(3)), np.array([0, -1, -1]))
    np.testing.assert_array_equal(model.predict_proba(sp.csr_array([[1e300, 0.0, 1e300]])), [[1.0]])


def test_inner_products_with_an_outlier_are_searched_without_overflow():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[3] = 1e100
    near = NeighborIndex(rows, "inner").graph(4)
    assert np.isfinite(near.distances).all()
    assert (near.indices[:3] == 3).any(axis=1).sum() == (rows[:3].sum(axis=1) > 0).sum()


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


# Denormal numbers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_hold_no_denormal_numbers(dtype):
    cost = np.linspace(0.0, 2000.0, 4001)[None, :].repeat(3, axis=0)
    kernel = DenseKernel(ArrayCost(cost), np.zeros(4001), 1.0, dtype)
    assert (kernel.matrix == 0).any()
    assert kernel.matrix[kernel.matrix > 0].min() > np.finfo(dtype).tiny
    np.testing.assert_allclose(kernel.matrix.sum(axis=1), 1.0, rtol=1e-6)
