"""How many rows of each class there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from otprop.propagation import shares as module
from otprop.propagation.shares import check_prior, counts_without_chosen, labeled_shares


def infer_shares(probabilities, *others):
    mean = probabilities.sum(axis=0) / max(len(probabilities), 1)
    return module.infer_shares(mean, len(probabilities), *others)


def drawn(shares, n_labels, sharpness=3.0, n_rows=2000, seed=0):
    """What `infer_shares` is told where rows have these shares and so many labels of each class are given.

    The probabilities are those of the labelled shares, and the nearer to the truth the larger the sharpness.
    """
    rng = np.random.default_rng(seed)
    n_labels = np.asarray(n_labels)
    codes = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_rows).astype(int))
    hidden = np.repeat(np.arange(len(shares)), n_labels)
    found = []
    for these in (codes, hidden):
        seen = sharpness * np.eye(len(shares))[these] + rng.normal(size=(len(these), len(shares)))
        found.append(softmax(sharpness * seen + np.log(n_labels), axis=1))
    return *found, hidden, n_labels.astype(float)


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=5).filter(any),
    n_rows=st.integers(0, 40),
    sharpness=st.floats(0.01, 10),
    seed=st.integers(0, 99),
)
def test_shares_are_positive_and_sum_to_one(counts, n_rows, sharpness, seed):
    rng = np.random.default_rng(seed)
    hidden = np.repeat(np.arange(len(counts)), counts)
    found = [
        np.nan_to_num(rng.dirichlet(np.full(len(counts), sharpness), n), nan=1 / len(counts))
        for n in (n_rows, len(hidden))
    ]
    counts = np.array(counts, dtype=float)
    shares = infer_shares(*found, hidden, counts)
    np.testing.assert_allclose(shares.sum(), 1)
    assert (shares > 0).all()
    if n_rows == 0:
        np.testing.assert_allclose(shares, labeled_shares(counts))


def test_a_class_with_few_labels_has_a_small_share_but_never_none():
    np.testing.assert_allclose(labeled_shares(np.array([3.0, 0.0])), [3.5 / 4, 0.5 / 4])


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.95, 0.05), (0.7, 0.3), (0.8, 0.15, 0.05)])
def test_labels_drawn_so_many_a_class_are_corrected_by_the_rows(shares):
    found = [infer_shares(*drawn(shares, [n] * len(shares)))[0] for n in (3, 20)]
    assert 1 / len(shares) < found[0]
    assert found[1] == pytest.approx(shares[0], abs=0.05)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_labels_in_proportion_are_left_as_they_are(sharpness):
    errors = [
        abs(infer_shares(*drawn((0.8, 0.2), [16, 4], sharpness=sharpness, seed=seed))[0] - 0.8) for seed in range(20)
    ]
    assert np.mean(errors) < 0.035


def test_rows_correct_the_luck_of_labels_drawn_at_random():
    rng = np.random.default_rng(0)
    luck, found = [], []
    for seed in range(20):
        counts = np.maximum(rng.multinomial(20, [0.7, 0.3]), 1)
        rows = drawn((0.7, 0.3), counts, seed=seed)
        luck.append(abs(labeled_shares(counts)[0] - 0.7))
        found.append(abs(infer_shares(*rows)[0] - 0.7))
    assert np.mean(found) < 0.5 * np.mean(luck)


def test_classes_that_are_not_told_apart_leave_the_labels_shares():
    counts = np.array([30.0, 10.0])
    hidden = np.repeat([0, 1], [30, 10])
    know_nothing = np.tile(labeled_shares(counts), (2000, 1))
    shares = infer_shares(know_nothing, know_nothing[:40], hidden, counts)
    np.testing.assert_allclose(shares, labeled_shares(counts), atol=0.1)


def test_where_no_label_could_be_hidden_the_labels_are_all_there_is():
    shares = infer_shares(np.full((50, 3), 1 / 3), np.empty((0, 3)), np.empty(0, dtype=int), np.ones(3))
    np.testing.assert_allclose(shares, 1 / 3)


def test_many_classes_of_few_labels_have_shares_too():
    shares = infer_shares(*drawn(np.full(200, 1 / 200), [2] * 200, sharpness=3.0))
    assert np.abs(shares - 1 / 200).sum() < 0.3


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
        (
            [0.5, 0.3, 0.2],
            ValueError,
            r"class_prior has shape \(3,\), expected \(2,\): a share for each class of y, in the order \['a', 'b'\]",
        ),
        (0.5, ValueError, r"class_prior has shape \(\)"),
        ([0.5, -0.5], ValueError, "class_prior must hold shares that are finite and not negative"),
        ([np.nan, 0.5], ValueError, "class_prior must hold shares that are finite and not negative"),
        ([0.0, 0.0], ValueError, r"class_prior must hold shares .* at least one of them above 0; got \[0.0, 0.0\]"),
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


def test_labels_that_were_drawn_and_picked_tell_the_shares_of_what_is_left():
    drawn, picked = np.array([10.0, 10.0]), np.array([0.0, 20.0])
    found = counts_without_chosen(drawn, picked, 80)  # of 100 rows 50 each; 20 of the second are gone
    np.testing.assert_allclose(found, 20 * np.array([50, 30]) / 80)
    assert counts_without_chosen(drawn, np.zeros(2), 80) is drawn
    np.testing.assert_allclose(counts_without_chosen(np.zeros(2), picked, 80), 0)
    np.testing.assert_allclose(counts_without_chosen(drawn, np.array([0.0, 300.0]), 80), [20, 0])
