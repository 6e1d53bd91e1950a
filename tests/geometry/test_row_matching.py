"""Finding equal rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.geometry.row_matching import DuplicateRows, LabeledRows, first_of_each, row_keys, zero_means_equal


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_identical_rows_are_recognised(make):
    rows = make([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [0.0, 2.0], [1.0, 1.0]])
    keys = list(row_keys(rows))
    assert keys[0] == keys[2]
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3
    assert first_of_each(rows).tolist() == [0, 1, 4]


def test_the_votes_of_equal_rows_do_not_overflow():
    labeled = LabeledRows(np.arange(3), np.array([0, 1, 1]), np.full(3, 1.5e308))
    np.testing.assert_allclose(labeled.votes([0, 1, 2], 2), [1 / 3, 2 / 3])


@pytest.mark.parametrize("code", [2, 10**6])
def test_a_code_that_is_no_class_is_an_error(code):
    """Such as one from a damaged model: above 2**62, bincount would write out of bounds."""
    labeled = LabeledRows(np.arange(3), np.array([0, 1, code]), np.ones(3))
    with pytest.raises(IndexError):
        labeled.votes([0, 1, 2], 2)


def test_duplicate_rows_are_expanded_to_the_nearest_of_all_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 3))[rng.integers(12, size=40)]
    duplicates = DuplicateRows(rows)
    distinct = duplicates.distinct(rows)
    np.testing.assert_array_equal(duplicates.per_row(distinct), rows)
    assert len(np.unique(distinct, axis=0)) == len(distinct) < len(rows)
    apart = np.linalg.norm(rows[:, None] - distinct, axis=2)
    groups = np.argsort(apart, axis=1)
    found, distances = duplicates.expand(groups, np.take_along_axis(apart, groups, axis=1), 9)
    exact = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :9])
    np.testing.assert_allclose(np.take_along_axis(exact, found, axis=1), distances)
    assert all(len(set(line)) == 9 for line in found.tolist())


@pytest.mark.parametrize(
    ("values", "metric", "expected"),
    [([0.0, 1.0], "euclidean", True), ([0.0, 1e-200], "euclidean", False), ([0.0, 1.0], "cosine", False)],
)
def test_zero_means_equal_only_where_no_difference_vanishes(values, metric, expected):
    rows = np.array(values)[:, None]
    assert zero_means_equal(rows, metric) is expected
    assert zero_means_equal(sp.csr_array(rows), metric) is expected
