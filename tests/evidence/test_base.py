"""What a source says: class probabilities that are never quite 0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from otprop.evidence.base import FLOOR, hits, log_floored, log_likelihood, powered

values = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0, 1e308))


@settings(deadline=None)
@given(values=values, power=st.sampled_from([0.5, 1.0, 1.4, 8.0]))
def test_values_of_any_scale_become_probabilities_above_the_floor(values, power):
    shares = powered(values.copy(), power)
    n_classes = values.shape[1]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= FLOOR / (1 + FLOOR * n_classes) * (1 - 1e-12)).all()
    np.testing.assert_array_equal(shares, powered(values, power))  # and the values are left alone


def test_a_power_of_one_keeps_the_ratios_and_two_squares_them():
    plain = powered(np.array([[1.0, 3.0]]), 1.0, floor=0.0)
    squared = powered(np.array([[1.0, 3.0]]), 2.0, floor=0.0)
    np.testing.assert_allclose(plain, [[0.25, 0.75]])
    np.testing.assert_allclose(squared, [[0.1, 0.9]])


def test_where_nothing_is_known_all_classes_are_alike():
    np.testing.assert_allclose(powered(np.zeros((1, 4)), 1.4), [[0.25] * 4])


def test_the_smallest_values_count_like_any_others():
    np.testing.assert_allclose(powered(np.array([[1.0, 3.0]]) * 1e-320, 1.0, floor=0.0), [[0.25, 0.75]], rtol=1e-3)


def test_a_probability_of_zero_has_a_logarithm():
    logs = log_floored(np.array([[1.0, 0.0]]), floor=0.01)
    np.testing.assert_allclose(np.exp(logs), [[1.01 / 1.02, 0.01 / 1.02]])


def test_the_likelihood_is_that_of_the_true_classes():
    logs = np.log([[0.2, 0.8], [0.6, 0.4]])
    assert log_likelihood(logs, np.array([1, 0])) == pytest.approx(np.log(0.8 * 0.6))
    assert log_likelihood(np.empty((0, 2)), np.empty(0, dtype=int)) == 0


def test_a_tie_is_half_a_hit_whichever_class_rounding_favours():
    logs = np.log([[0.5, 0.5], [0.5 + 1e-13, 0.5 - 1e-13], [0.9, 0.1], [0.1, 0.9], [0.25, 0.75]])
    np.testing.assert_array_equal(hits(logs, np.array([0, 1, 0, 0, 1])), [0.5, 0.5, 1, 0, 1])
    assert len(hits(np.empty((0, 2)), np.empty(0, dtype=int))) == 0
