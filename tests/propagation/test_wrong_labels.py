"""How many given labels are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import comb, softmax
from scipy.stats import beta, binom

from otprop import OTP
from otprop.propagation import wrong_labels
from otprop.propagation.wrong_labels import NONE_WRONG, WrongLabels, find_wrong_labels

ALL_TREES = True


def held_out(n_labels, n_classes, share, sharpness=4.0, seed=0):
    """Labels of which a share is wrong, and class probabilities as sharp as explains them best."""
    rng = np.random.default_rng(seed)
    logs = sharpness * rng.normal(size=(n_labels, n_classes))
    truth = np.array([rng.choice(n_classes, p=row) for row in softmax(logs, axis=1)])
    wrong = rng.random(n_labels) < share
    codes = np.where(wrong, (truth + rng.integers(1, n_classes, n_labels)) % n_classes, truth)
    candidates = [softmax(power * logs, axis=1) for power in np.geomspace(0.05, 1.5, 40)]
    rows = np.arange(n_labels)
    return max(candidates, key=lambda each: np.log(each[rows, codes]).sum()), codes


@pytest.mark.parametrize(("n_classes", "share"), [(2, 0.2), (5, 0.1), (5, 0.3), (20, 0.2)])
def test_the_share_of_wrong_labels_is_found(n_classes, share):
    shares = [find_wrong_labels(*held_out(500, n_classes, share, seed=seed)).share for seed in range(5)]
    assert np.mean(shares) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_right_labels_of_hard_rows_are_not_taken_for_wrong_ones(n_classes, sharpness):
    found = [find_wrong_labels(*held_out(200, n_classes, 0.0, sharpness, seed)) for seed in range(5)]
    assert [each.share for each in found] == [0.0] * 5
    assert np.mean([each.weights @ each.shares for each in found]) < 0.04


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_probabilities_of_another_sharpness_do_not_look_like_wrong_labels(power):
    clean, codes = held_out(400, 4, 0.0)
    assert find_wrong_labels(softmax(power * np.log(clean), axis=1), codes).share == 0.0


def test_the_likelihood_is_that_of_the_mixture(monkeypatch):
    monkeypatch.setattr(wrong_labels, "POWERS", np.ones(1))
    monkeypatch.setattr(wrong_labels, "LABEL_WORTH", 1.0)
    monkeypatch.setattr(wrong_labels, "MAX_WORTH", 1e9)
    probabilities, codes = held_out(60, 3, 0.2)
    surest_first = np.argsort(-probabilities.max(axis=1), kind="stable")
    contradicted = (probabilities.argmax(axis=1) != codes)[surest_first]
    found = find_wrong_labels(probabilities, codes)
    for share, value in list(zip(found.shares, found.log_likelihood, strict=True))[:15]:
        as_given = (1 - share) * probabilities + share / 2 * (1 - probabilities)
        expected = np.log(as_given[np.arange(60), codes]).sum()
        error = (max((contradicted.mean() - share) / (1 - 1.5 * share), 0) * 60 + 0.5) / 61
        for exponent, n_wrong in zip((2.0, 1.5, 1.2), contradicted[:36].reshape(3, 12).sum(axis=1), strict=True):
            mean = error**exponent
            rates = share + (1 - 1.5 * share) * beta(35 * mean, 35 * (1 - mean)).rvs(200_000, random_state=0)
            expected += np.log(binom.pmf(n_wrong, 12, rates).mean() / comb(12, n_wrong))
        assert value == pytest.approx(expected, abs=0.15)


def test_few_labels_or_one_class_show_nothing():
    probabilities, codes = held_out(49, 3, 0.3)
    assert find_wrong_labels(probabilities, codes) is NONE_WRONG
    assert find_wrong_labels(np.empty((0, 3)), np.empty(0, dtype=int)) is NONE_WRONG
    assert find_wrong_labels(np.ones((80, 1)), np.zeros(80, dtype=int)) is NONE_WRONG
    assert (NONE_WRONG.share, NONE_WRONG.weights.tolist()) == (0.0, [1.0])


def test_of_many_labels_a_part_is_used_and_certain_probabilities_stay_finite():
    found = find_wrong_labels(np.repeat(np.eye(3), 3000, axis=0), np.arange(9000) % 3)
    assert np.isfinite(found.log_likelihood).all()
    assert 0.0 <= found.share < 2 / 3
    assert np.isfinite(found.weights_in_range).all()


def test_no_weight_is_negative_and_all_sum_to_one():
    found = WrongLabels(np.linspace(0, 0.3, 4), np.array([-1000.0, 0.0, -5000.0, 3.0]))
    for weights in (found.weights, found.weights_in_range):
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0)


def test_columns_that_tell_nothing_do_not_show_that_labels_are_wrong():
    rng = np.random.default_rng(0)
    found = find_wrong_labels(np.tile([0.8, 0.2], (200, 1)), (rng.random(200) < 0.2).astype(int))
    assert found.like_a_guess
    assert (found.share, found.weights[0]) == (0.0, 1.0)
    assert found.weights_in_range[0] < 1.0  # some may still be wrong


def blobs(share, seed=0, n_rows=800, n_labels=300):
    """Easy rows in three classes, with labels of which a share is wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_rows)
    X = 5.0 * np.eye(3)[truth] + rng.normal(size=(n_rows, 3))
    y = np.full(n_rows, -1)
    y[:n_labels] = truth[:n_labels]
    wrong = np.arange(int(share * n_labels))
    y[wrong] = (y[wrong] + 1 + rng.integers(0, 2, len(wrong))) % 3
    return X, y, truth


def test_the_announced_error_is_that_of_the_rows_and_not_of_wrong_labels():
    shares, excess = [], []
    for seed in range(3):
        X, y, truth = blobs(0.2, seed)
        model = OTP(random_state=0).fit(X, y)
        real = (model.transduction_ != truth)[y < 0].mean()
        shares.append(model.error_.evidence.wrong_share)
        excess.append(model.expected_error_ - real)
        assert model.error_.evidence.held_out > real + 0.15  # what would be announced otherwise
    assert 0.1 < np.mean(shares) < 0.25
    assert 0.0 < np.mean(excess) < 0.12


def test_a_clean_table_has_no_wrong_labels():
    model = OTP(random_state=0).fit(*blobs(0.0)[:2])
    assert model.error_.evidence.wrong_share == 0.0
