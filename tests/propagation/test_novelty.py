"""Rows that look like no class that has a label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score

from otprop import OTP
from otprop.propagation.novelty import Novelty


def blobs(n_labels=60, hidden=2, seed=0, centres=4):
    X, truth = make_blobs(800, centers=centres, n_features=4, cluster_std=1.0, random_state=seed)
    known = np.flatnonzero(truth != hidden)
    y = np.full(len(X), -1)
    labelled = np.random.default_rng(seed).choice(known, n_labels, replace=False)
    y[labelled] = truth[labelled]
    return X, truth, y


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_of_a_class_without_a_label_are_novel_and_counted_as_wrong(seed):
    X, truth, y = blobs(seed=seed)
    model = OTP().fit(X, y)
    left = y == -1
    new = truth[left] == 2
    assert roc_auc_score(new, model.novelty_[left]) > 0.95
    assert model.novel_share_ == pytest.approx(new.mean(), abs=0.12)
    low, high = model.novel_range_
    assert low <= model.novel_share_ <= high
    wrong = (model.transduction_ != truth)[left].mean()
    assert model.expected_error_ == pytest.approx(wrong, abs=0.12)
    low, high = model.error_range_
    assert low <= wrong <= high
    assert model.confidence_[left][new].mean() < 0.5 < model.confidence_[left][~new].mean()


def test_rows_of_labelled_classes_are_not_novel():
    shares = []
    for seed in range(6):
        X, _, y = blobs(seed=seed, hidden=None)
        model = OTP().fit(X, y)
        shares.append(model.novel_share_)
        assert (model.novelty_[y >= 0] == 0).all()
        assert ((model.novelty_ >= 0) & (model.novelty_ <= 1)).all()
    assert np.mean(shares) < 0.03


def many_classes(n_classes, n_labels, seed, first=0):
    """Rows of well separated classes, with random labels of the classes from `first` on."""
    X, truth = make_blobs(20 * n_classes, centers=n_classes, n_features=20, cluster_std=2.0, random_state=seed)
    y = np.full(len(X), -1)
    rows = np.random.default_rng(seed).choice(np.flatnonzero(truth >= first), n_labels, replace=False)
    y[rows] = truth[rows]
    return X, truth, y


@pytest.mark.parametrize("seed", [0, 3])
def test_classes_with_one_random_label_by_luck_are_not_new(seed):
    X, truth, y = many_classes(30, 90, seed)
    model = OTP().fit(X, y)
    left = y == -1
    wrong = (model.transduction_ != truth)[left].mean()
    assert model.novel_share_ < 0.05
    low, high = model.error_range_
    assert low <= wrong <= high
    assert model.expected_error_ == pytest.approx(wrong, abs=0.05)


def test_of_many_classes_with_few_labels_those_without_any_are_found():
    X, truth, y = many_classes(26, 80, 1, first=6)
    model = OTP().fit(X, y)
    new = ~np.isin(truth, y[y >= 0])[y == -1]
    assert model.novel_share_ == pytest.approx(new.mean(), abs=0.12)
    low, high = model.error_range_
    assert low <= (model.transduction_ != truth)[y == -1].mean() <= high


def test_few_labels_of_many_classes_of_different_size_are_not_new_classes():
    sizes = np.maximum((300 * np.geomspace(1.0, 0.03, 10)).astype(int), 8)
    X, truth = make_blobs(sizes, n_features=20, cluster_std=3.0, random_state=0)
    y = np.full(len(X), -1)
    for code in range(10):
        rows = np.random.default_rng(code).choice(np.flatnonzero(truth == code), 4, replace=False)
        y[rows] = code
    assert OTP().fit(X, y).novel_share_ < 0.1


def test_equal_numbers_of_labels_from_classes_of_different_size_are_not_new_classes():
    rng = np.random.default_rng(0)
    truth = (rng.random(900) < 0.1).astype(int)
    X = rng.normal(size=(900, 3)) + 3 * truth[:, None]
    y = np.full(900, -1)
    for code in (0, 1):
        rows = rng.choice(np.flatnonzero(truth == code), 25, replace=False)
        y[rows] = code
    assert OTP().fit(X, y).novel_share_ < 0.05


def test_new_rows_have_the_novelty_of_the_rows_they_are_like():
    X, truth, y = blobs()
    model = OTP().fit(X[:700], y[:700])
    found = model.predict_novelty(X[700:])
    assert roc_auc_score(truth[700:] == 2, found) > 0.95
    confidence = model.predict_confidence(X[700:])
    assert confidence[truth[700:] == 2].mean() < confidence[truth[700:] != 2].mean() - 0.2


def test_other_costs_have_no_novelty():
    X, _, y = blobs(n_labels=20)
    model = OTP("sqeuclidean", evidence=None).fit(X[:200], y[:200])
    assert not model.novelty_.any()
    assert model.novel_share_ == 0


def test_novelty_of_equal_samples_is_zero_and_of_a_mixture_its_share():
    rng = np.random.default_rng(0)
    held_out, rows = rng.normal(size=200), rng.normal(size=1000)
    assert Novelty.of(held_out, np.ones(200), rows).share == 0
    mixed = np.concatenate([rows[:700], rng.normal(-6, 1, size=300)])
    found = Novelty.of(held_out, np.ones(200), mixed)
    assert found.share == pytest.approx(0.3, abs=0.05)
    assert 0.2 < found.low < found.share < found.high < 0.5
    assert found.probability(np.array([-7.0, 1.0])) == pytest.approx([1.0, 0.0], abs=0.15)
    assert (np.diff(found.probability(np.linspace(-9, 4, 50))) <= 1e-12).all()
    unreached = np.concatenate([rows[:700], np.full(300, -np.inf)])
    assert Novelty.of(held_out, np.ones(200), unreached).probability(np.array([-np.inf]))[0] > 0.9


def test_a_share_that_is_likely_but_not_sure_counts_less():
    rng = np.random.default_rng(1)
    held_out = rng.normal(size=40)
    shares = []
    for n_new in range(0, 400, 20):
        rows = np.concatenate([rng.normal(size=600), np.full(n_new, -9.0)])
        shares.append(Novelty.of(held_out, np.ones(40), rows))
    kinds = ["none" if one.share == 0 else "likely" if one.low == 0 else "sure" for one in shares]
    assert kinds == sorted(kinds, key=["none", "likely", "sure"].index)
    assert {"none", "likely", "sure"} == set(kinds)


def test_rows_that_no_label_reaches_may_be_new_if_that_is_likely_but_not_sure():
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(size=80), np.full(50, -np.inf)])
    found = Novelty.of(rng.normal(size=20), np.ones(20), rows)
    assert found.low == 0 < found.share < 0.15
    assert found.probability(rows).max() == pytest.approx(0.25)


def test_few_held_out_labels_show_nothing():
    assert Novelty.of(np.zeros(5), np.ones(5), np.full(100, -9.0)) == Novelty()


def test_suggestions_ask_for_rows_of_a_class_without_a_label():
    found = []
    for seed in range(4):
        X, truth, y = blobs(seed=seed, n_labels=40)
        rows = [suggestion.row for suggestion in OTP().fit(X, y).suggest(8, random_share=0)]
        found.append((truth[rows] == 2).mean())
    assert np.mean(found) > 0.4  # a quarter of the rows are of that class


def test_rounding_errors_are_not_novelty():
    rng = np.random.default_rng(0)
    held_out = 1.0 + 1e-9 * rng.normal(size=40)
    novelty = Novelty.of(held_out, np.ones(40), 1.0 + 1e-7 * rng.normal(size=500))
    np.testing.assert_allclose(novelty(1.0 + np.array([-1e-7, 0.0, 1e-7])), 0.5, atol=1e-3)
    assert novelty(np.array([0.5]))[0] == 1.0
