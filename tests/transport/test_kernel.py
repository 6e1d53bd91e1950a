"""Kernels of the row-level solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from otprop.geometry.cost import ArrayCost
from otprop.transport import sinkhorn
from otprop.transport.kernel import DenseKernel, Kernel, SparseKernel, build_kernel
from tests.transport.problems import marginal_error, row_problem


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_hold_no_denormal_numbers(dtype):
    cost = np.linspace(0.0, 2000.0, 4001)[None, :].repeat(3, axis=0)
    kernel = DenseKernel(ArrayCost(cost), np.zeros(4001), 1.0, dtype)
    assert (kernel.matrix == 0).any()
    assert kernel.matrix[kernel.matrix > 0].min() > np.finfo(dtype).tiny
    np.testing.assert_allclose(kernel.matrix.sum(axis=1), 1.0, rtol=1e-6)


def test_large_single_precision_kernels_meet_the_tolerance_in_double_precision():
    cost, a, b = row_problem(500, 1200)
    for share in (0.3, 0.03):
        result = sinkhorn(cost, a, b, share * np.median(cost))
        assert result.converged
        assert marginal_error(result.plan(), a, b) <= 1e-6


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("share", [1e-3, 1.0])  # of the median cost: a sparse kernel, and a dense one
def test_kernels_of_any_kind_give_the_products_of_their_formula(share, stored):
    cost, a, _ = row_problem(30, 50)
    epsilon = share * np.median(cost)
    costs = ArrayCost(np.ascontiguousarray(cost.T))
    costs.stored = stored
    f, scaling = epsilon * np.log(a), np.random.default_rng(1).random(30)
    expected = softmax((f - cost.T) / epsilon, axis=1)
    kernel = build_kernel(costs, f, epsilon, 1e-6)
    assert isinstance(kernel, SparseKernel if share < 1 else DenseKernel if stored else Kernel)
    np.testing.assert_allclose(kernel.dot(scaling), expected @ scaling, rtol=1e-9)
    forth, back = kernel.dot_and_back(scaling, lambda products, rows: 1 / products)
    np.testing.assert_allclose(back, expected.T @ (1 / (expected @ scaling)), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(forth, kernel.dot(scaling))
