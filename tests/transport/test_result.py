"""Plan and class shares of a row-level solution."""

from __future__ import annotations

import numpy as np

from otprop.transport import sinkhorn
from tests.transport.problems import row_problem


def test_class_shares_and_plans_of_a_tiny_epsilon_are_finite():
    result = sinkhorn(np.array([[0.0, 1e300], [1e300, 0.0]]), np.ones(2), np.ones(2), 1e-10)
    np.testing.assert_allclose(result.class_shares(np.arange(2), 2), np.eye(2))
    np.testing.assert_allclose(result.plan(), np.eye(2) / 2)


def test_class_shares_are_the_columns_of_the_plan_summed_by_class():
    cost, a, b = row_problem(20, 30, weights="uneven")
    result = sinkhorn(cost, a, b, 0.5 * np.median(cost))
    classes, selected = np.arange(20) % 3, np.arange(30) % 4 == 1
    by_class = np.eye(3)[classes].T @ result.plan()
    expected = (by_class / by_class.sum(axis=0)).T
    np.testing.assert_allclose(result.class_shares(classes, 3), expected, rtol=1e-9)
    np.testing.assert_allclose(result.class_shares(classes, 3, selected), expected[selected], rtol=1e-9)
    np.testing.assert_allclose(result.rough_class_shares(classes, 3), expected, atol=1e-5)
    np.testing.assert_array_equal(result.without_kernel().plan(), result.plan())
