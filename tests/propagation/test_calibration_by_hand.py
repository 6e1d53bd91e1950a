"""Calibration and error intervals beside the same figures found another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta

from otprop.propagation.calibration import Calibration, calibrate, likely_errors


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
        return -likelihood + 4.0 * (line[0] - 1.0) ** 2 + 1.0 * line[1] ** 2

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


@pytest.mark.parametrize(("error", "n_labels"), [(0.3, 1), (0.3, 10), (0.1, 50), (0.02, 1000), (0.5, 7.5)])
def test_the_interval_of_an_error_rate_is_that_of_jeffreys_prior(error, n_labels):
    posterior = beta(error * n_labels + 0.5, (1 - error) * n_labels + 0.5)
    low, high = likely_errors(error, n_labels)
    assert high == pytest.approx(posterior.ppf(0.95))
    assert low == pytest.approx(0.0 if error * n_labels < 1 else posterior.ppf(0.05))


def test_one_wrong_label_to_be_expected_excludes_an_error_of_zero():
    assert likely_errors(0.25, 4)[0] > 0
