"""Scaling that keeps squares from overflowing or underflowing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.geometry.scaling import UnitRows, multiply_clipped, power_of_two


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_unit_rows_have_length_one_whatever_their_size(make, size):
    rows = make(np.array([[3.0, 4.0], [0.0, -5.0]]) * size)
    unit = UnitRows(rows)(rows)
    np.testing.assert_allclose(unit.toarray() if sp.issparse(unit) else unit, [[0.6, 0.8], [0.0, -1.0]])


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_unit_rows_give_rows_of_zeros_a_direction_of_their_own(make):
    rows = make([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    unit = UnitRows(rows)(rows)
    np.testing.assert_array_equal(unit @ unit.T @ np.eye(3), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize("size", [5e-324, 1e-308, 0.3, 1.0, 5.0, 1.7e308])
def test_power_of_two_brings_any_size_near_one_exactly(size):
    unit = power_of_two(size)
    assert np.frexp(unit)[0] == 0.5
    assert size / unit * unit == size
    assert size / unit <= 2.0
    assert size / unit >= 0.25 or size < 1e-307


def test_multiply_clipped_ends_at_the_largest_float():
    assert multiply_clipped(np.array([1.0, 1e200]), 1e200).tolist() == [1e200, np.finfo(float).max]
