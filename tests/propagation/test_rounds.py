"""Certainty of rows, and the rows that a round labels."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.propagation.rounds import certainty, nth_largest


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_certainty_is_one_minus_the_normalised_entropy(n_classes):
    shares = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=50)
    expected = 1 + (shares * np.log(shares)).sum(axis=1) / np.log(n_classes)
    np.testing.assert_allclose(certainty(shares), expected, atol=1e-12)
    extremes = np.vstack([np.eye(n_classes)[0], np.full(n_classes, 1 / n_classes)])
    np.testing.assert_allclose(certainty(extremes), [1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_nth_largest_is_that_of_the_sorted_values(n):
    values = np.random.default_rng(1).integers(0, 8, size=20) / 8
    assert nth_largest(values, n) == np.sort(values)[::-1][n - 1]
