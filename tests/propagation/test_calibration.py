"""Probabilities that mean what they say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.datasets import make_moons

from otprop import OTP
from otprop.propagation.calibration import Calibration, calibrate, coverage_table, shift_to_error
from otprop.propagation.error import ErrorEstimate

probabilities = arrays(float, st.integers(0, 40), elements=st.floats(0, 1))


@settings(deadline=None)
@given(found=probabilities, seed=st.integers(0, 99))
def test_confidence_is_a_probability_that_rises_with_what_was_found(found, seed):
    right = np.random.default_rng(seed).random(len(found)) < found
    calibration = calibrate(found, right)
    ladder = calibration(np.linspace(0, 1, 50))
    assert np.isfinite(ladder).all()
    assert (ladder >= 0).all()
    assert (ladder <= 1).all()
    assert (np.diff(ladder) >= 0).all()


def test_without_hidden_labels_probabilities_are_taken_as_they_are():
    calibration = calibrate(np.empty(0), np.empty(0, dtype=bool))
    assert calibration == Calibration(1.0, 0.0)
    np.testing.assert_allclose(calibration(np.array([0.3, 0.9])), [0.3, 0.9])


def test_honest_probabilities_stay_and_boastful_ones_come_down():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 0.99, 5000)
    right = rng.random(5000) < true
    boast = true**4 / (true**4 + (1 - true) ** 4)
    for found in (true, boast):
        confidence = calibrate(found, right)(found)
        for low, high in pairwise((0.5, 0.6, 0.7, 0.8, 0.9, 1.0)):
            here = (confidence >= low) & (confidence < high)
            assert abs(confidence[here].mean() - right[here].mean()) < 0.04


def test_a_few_hidden_labels_move_it_a_little_and_the_more_the_more():
    moved = [1 - calibrate(np.full(n, 0.99), np.arange(n) % 2 == 0)(np.array([0.99]))[0] for n in (2, 10, 200)]
    assert 0.01 < moved[0] < moved[1] < moved[2]
    assert moved[2] == pytest.approx(0.5, abs=0.1)


def test_all_hidden_labels_right_do_not_make_it_sure():
    confidence = calibrate(np.full(20, 0.9), np.ones(20, dtype=bool))(np.array([0.9]))
    assert 0.9 < confidence[0] < 1


@settings(deadline=None)
@given(confidence=arrays(float, st.integers(0, 60), elements=st.floats(0, 1)))
def test_fewer_rows_are_more_confident_and_less_often_wrong(confidence):
    table = coverage_table(confidence)
    for more, fewer in pairwise(table):
        assert fewer.share < more.share
        assert fewer.n_rows <= more.n_rows
        assert fewer.confidence >= more.confidence
        assert fewer.expected_error <= more.expected_error + 1e-12
    for line in table:
        kept = np.sort(confidence)[::-1][: line.n_rows]
        assert line.n_rows == pytest.approx(line.share * len(confidence), abs=0.5 + 1e-9)
        assert (confidence >= line.confidence).sum() == line.n_rows  # as `abstain_below` it keeps just these
        assert line.confidence == kept[-1]
        assert line.expected_error == pytest.approx(1 - kept.mean())


def test_rows_of_one_confidence_are_not_parted():
    table = coverage_table(np.array([0.9, 0.5, 0.5, 0.5]))
    assert [(line.share, line.n_rows) for line in table] == [(1.0, 4), (0.3, 1)]


def test_hidden_labels_count_by_how_many_rows_they_stand_for():
    found = np.full(40, 0.8)
    right = np.arange(40) < 20  # the first class always right, the second never
    mostly = np.where(right, 9.0, 1.0)
    known = calibrate(found, right, mostly)(np.array([0.8]))[0]
    assert calibrate(found, right)(np.array([0.8]))[0] < 0.7 < known
    assert calibrate(found, right, 100 * mostly)(np.array([0.8]))[0] == pytest.approx(known)
    assert calibrate(found, right, np.full(40, 3.0)) == calibrate(found, right)
    assert calibrate(found, right, np.zeros(40)) == Calibration()  # they stand for no row


def test_the_table_begins_with_all_rows_and_is_empty_without_any():
    assert coverage_table(np.array([0.5, 0.7]))[0].expected_error == pytest.approx(0.4)
    assert coverage_table(np.empty(0)) == []


def test_the_range_of_a_model_holds_the_error_it_makes():
    inside = []
    for seed in range(6):
        X, truth = make_moons(150, noise=0.15, random_state=seed)
        y = np.where(np.isin(np.arange(150), np.random.default_rng(seed).choice(150, 16, replace=False)), truth, -1)
        y[[np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]]] = [0, 1]
        model = OTP().fit(X, y)
        for line in model.coverage():
            rows = (model.round_ > 0) & (model.confidence_ >= line.confidence)
            error = np.mean(model.transduction_[rows] != truth[rows])
            inside.append(line.low <= error <= line.high)
    assert np.mean(inside) > 0.6


def test_the_ranges_of_a_table_are_those_of_its_parts():
    confidence = np.concatenate([np.full(50, 0.99), np.full(50, 0.8)])
    error = ErrorEstimate(0.105, 40.0, 100)
    whole, half = coverage_table(confidence, error, (1.0, 0.5))
    assert (whole.low, whole.high) == pytest.approx(error.interval)
    assert (half.low, half.high) == error.of_part(half.expected_error, 50).interval
    assert half.low <= half.expected_error < half.high
    assert [(line.low, line.high) for line in coverage_table(confidence, None, (1.0, 0.5))] == [(0.0, 1.0)] * 2


@settings(deadline=None)
@given(found=arrays(float, st.integers(1, 40), elements=st.floats(0.05, 0.95)), wanted=st.floats(0.01, 0.99))
def test_a_line_is_shifted_until_the_mean_confidence_agrees(found, wanted):
    line = shift_to_error(Calibration(0.7, 0.3), lambda tried: tried(found), wanted)
    assert line.slope == 0.7
    assert 1 - line(found).mean() == pytest.approx(wanted, abs=1e-6)


def test_where_no_line_agrees_the_nearest_is_taken():
    line = shift_to_error(Calibration(), lambda tried: np.maximum(tried(np.full(3, 0.9)), 0.5), 0.8)
    assert np.maximum(line(np.full(3, 0.9)), 0.5) == pytest.approx([0.5] * 3)


@pytest.mark.parametrize("n_labels", [1, 3, 30, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_line_maximises_the_penalised_likelihood(n_labels, weighted):
    rng = np.random.default_rng(n_labels)
    found = rng.uniform(0.4, 0.99, n_labels)
    right = (rng.random(n_labels) < found**2).astype(float)
    weights = rng.uniform(0.5, 2.0, n_labels) if weighted else np.ones(n_labels)
    each = weights * weights.sum() / (weights**2).sum()  # as many labels as the weights are worth

    def loss(line):
        probability = np.clip(expit(line[0] * logit(found) + line[1]), 1e-300, 1)
        opposite = np.clip(expit(-line[0] * logit(found) - line[1]), 1e-300, 1)
        likelihood = each @ (right * np.log(probability) + (1 - right) * np.log(opposite))
        return -likelihood + 10.0 * (line[0] - 0.9) ** 2 + 1.0 * line[1] ** 2

    best = minimize(loss, [0.9, 0.1], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 5000}).x
    calibration = calibrate(found, right, weights if weighted else None)
    assert (calibration.slope, calibration.shift) == pytest.approx(tuple(best), abs=1e-3)
    assert calibration != Calibration()


def test_a_label_that_seemed_certain_or_impossible_gets_a_confidence_short_of_it():
    ends = Calibration(1.0, 0.0)(np.array([0.0, 1.0]))
    assert 0 < ends[0] < 1e-5
    assert 1 - 1e-5 < ends[1] < 1


@pytest.mark.parametrize("pessimistic", [False, True])
def test_the_line_stays_within_bounds_however_many_labels_say_otherwise(pessimistic):
    n_labels = 100_000
    certain = np.full(n_labels, 0.999999)
    calibration = calibrate(certain if pessimistic else 1 - certain, np.full(n_labels, not pessimistic, dtype=float))
    assert 0.05 <= calibration.slope <= 5.0
    assert -3.0 <= calibration.shift <= 3.0
    assert abs(calibration.shift) == pytest.approx(3.0)


def clouds(centres, n_rows=240, n_labels=60, seed=0):
    """One cloud of rows around each centre, a class each; the first `n_labels` rows are labelled."""
    truth = np.arange(n_rows) % len(centres)
    X = np.random.default_rng(seed).normal(size=(n_rows, 2)) + np.array(centres)[truth]
    return X, np.where(np.arange(n_rows) < n_labels, truth, -1)


def test_a_held_out_label_counts_by_the_share_of_rows_that_its_class_stands_for():
    X, y = clouds([[12.0, 0.0], [0.0, 0.0], [1.0, 0.0]])  # the first class is easy, the other two overlap

    def fitted(class_prior):  # without a marginal to meet, the shares enter the calibration and nothing else
        return OTP(evidence=None, class_prior=class_prior, marginal_strength=0.0, max_rounds=1).fit(X, y)

    mostly_easy, mostly_hard = fitted([0.9, 0.05, 0.05]), fitted([0.05, 0.475, 0.475])
    np.testing.assert_allclose(mostly_easy.certainty_, mostly_hard.certainty_)
    unlabelled = y == -1
    assert (mostly_easy.confidence_[unlabelled] > mostly_hard.confidence_[unlabelled]).all()


@pytest.mark.parametrize("gap", [1.0, 3.0, 6.0])
def test_labels_that_a_class_gets_by_its_share_alone_are_trusted_no_more_than_the_share(gap):
    X, y = clouds([[0.0, 0.0], [gap, 0.0]], 200, 40)
    model = OTP(evidence=None, class_prior=[0.9, 0.1], marginal_strength=1.0, max_rounds=1).fit(X, y)
    unlabelled = y == -1
    assert (model.transduction_[unlabelled] == 0).mean() > 0.95  # the share given decides, against half of the rows
    assert model.confidence_[unlabelled].mean() == pytest.approx(0.9, abs=0.07)
