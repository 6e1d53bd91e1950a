"""How many rows of each class there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop._shares import check_prior, infer_shares, labeled_shares


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=5).filter(any),
    n_rows=st.integers(0, 40),
    sharpness=st.floats(0.01, 10),
    seed=st.integers(0, 99),
)
def test_shares_are_positive_and_sum_to_one(counts, n_rows, sharpness, seed):
    counts = np.array(counts, dtype=float)
    probabilities = np.random.default_rng(seed).dirichlet(np.full(len(counts), sharpness), n_rows)
    shares = infer_shares(np.nan_to_num(probabilities, nan=1 / len(counts)), counts)
    np.testing.assert_allclose(shares.sum(), 1)
    assert (shares > 0).all()
    if n_rows == 0:
        np.testing.assert_allclose(shares, labeled_shares(counts))


def test_a_class_with_few_labels_has_a_small_share_but_never_none():
    np.testing.assert_allclose(labeled_shares(np.array([3.0, 0.0])), [3.5 / 4, 0.5 / 4])


def rows_of(shares, n_rows, certainty=0.97):
    """Probabilities of rows whose classes have the given shares, from a classifier trained on equal ones."""
    codes = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_rows).astype(int))
    probabilities = np.full((len(codes), len(shares)), (1 - certainty) / (len(shares) - 1))
    probabilities[np.arange(len(codes)), codes] = certainty
    return probabilities


def test_labels_drawn_so_many_a_class_are_corrected_by_the_rows():
    few = infer_shares(rows_of([0.8, 0.2], 100), np.array([5.0, 5.0]))
    many = infer_shares(rows_of([0.8, 0.2], 100), np.array([200.0, 200.0]))
    assert 0.5 < few[0] < many[0]  # the more labels, the more the rows are believed
    assert many[0] == pytest.approx(0.8, abs=0.05)


def test_where_rows_and_labels_agree_nothing_moves():
    shares = infer_shares(rows_of([0.75, 0.25], 400, certainty=0.999999), np.array([300.0, 100.0]))
    np.testing.assert_allclose(shares, [0.75, 0.25], atol=0.002)


def test_rows_that_know_nothing_leave_the_labels_shares():
    counts = np.array([30.0, 10.0])
    shares = infer_shares(np.tile(labeled_shares(counts), (50, 1)), counts)
    np.testing.assert_allclose(shares, labeled_shares(counts), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "classes", "expected"),
    [
        (None, [0, 1], None),
        ("uniform", ["a", "b", "c", "d"], [0.25] * 4),
        ([3, 1], ["a", "b"], [0.75, 0.25]),
        (np.array([1e308, 1e308]), [0, 1], [0.5, 0.5]),
        ((0.0, 2.0), [0, 1], [0.0, 1.0]),
        ({"b": 1, "a": 3}, ["a", "b"], [0.75, 0.25]),
        ({1: 0.25, 0: 0.75}, [0.0, 1.0], [0.75, 0.25]),  # classes are floats where NaN marks the others
        ({np.int64(1): 0.25, np.int64(0): 0.75}, [0, 1], [0.75, 0.25]),
        ({"1": 0.25, "0": 0.75}, [0, 1], [0.75, 0.25]),
        ({True: 0.25, False: 0.75}, [False, True], [0.75, 0.25]),
    ],
)
def test_the_prior_can_be_given_in_many_ways(given, classes, expected):
    found = check_prior(given, np.array(classes))
    assert found is None if expected is None else np.allclose(found, expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("equal", ValueError, "class_prior must be None, 'uniform', an array .*; got 'equal'"),
        ([0.5, 0.3, 0.2], ValueError, r"class_prior has shape \(3,\); y has 2 classes: \['a', 'b'\]"),
        (0.5, ValueError, r"class_prior has shape \(\)"),
        ([0.5, -0.5], ValueError, "class_prior must hold shares that are finite and not negative"),
        ([np.nan, 0.5], ValueError, "class_prior must hold shares that are finite and not negative"),
        ([0.0, 0.0], ValueError, "class_prior must hold shares that are finite and not negative"),
        ({"a": 0.5, "c": 0.5}, ValueError, "class_prior names 'c', which no row is labelled with"),
        ({"a": 0.5}, ValueError, "class_prior lacks 'b'"),
        ({"a": 0.5, "b": "half"}, TypeError, "class_prior must be None, 'uniform', an array"),
        (["many", "few"], TypeError, "class_prior must be None, 'uniform', an array"),
        (object(), TypeError, "class_prior must be None, 'uniform', an array"),
    ],
)
def test_a_prior_that_makes_no_sense_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        check_prior(given, np.array(["a", "b"]))


def test_a_series_names_its_classes_as_a_dict_does():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([0.8, 0.15, 0.05], index=[2, 1, 0])
    np.testing.assert_allclose(check_prior(series, np.array([0, 1, 2])), [0.05, 0.15, 0.8])
