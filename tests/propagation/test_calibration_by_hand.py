"""Calibration beside the same figures found another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from otprop.propagation.calibration import Calibration, calibrate


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
