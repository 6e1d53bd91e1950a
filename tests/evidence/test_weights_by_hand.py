"""The weights of the sources beside the same figures found another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from otprop.evidence.weights import fit_weights, scale_to_mean_one


@pytest.mark.parametrize("n_labels", [1, 5, 60])
@pytest.mark.parametrize("spread", [1.0, 5.0])
def test_the_weights_are_those_of_a_plain_search(n_labels, spread):
    rng = np.random.default_rng(n_labels)
    codes = rng.integers(0, 3, n_labels)
    logs = [log_softmax(spread * rng.normal(size=(n_labels, 3)) + 2 * np.eye(3)[codes], axis=1) for _ in range(2)]
    start = np.array([0.6, 0.3])

    def loss(weights):
        found = log_softmax(weights[0] * logs[0] + weights[1] * logs[1], axis=1)
        return -found[np.arange(n_labels), codes].sum() + 2.0 * ((weights - start) ** 2).sum()

    search = {"method": "Nelder-Mead", "bounds": [(0, None)] * 2, "options": {"xatol": 1e-7, "fatol": 1e-10}}
    searches = [minimize(loss, first, **search) for first in ([0.1, 0.1], start, [0.9, 0.9])]
    best = min(searches, key=lambda found: found.fun)
    np.testing.assert_allclose(fit_weights(logs, codes, start, penalty=2.0), best.x, atol=2e-3)


def test_the_level_of_a_row_does_not_matter_however_low_it_is():
    codes = np.array([0, 1, 1, 0])
    logs = np.log([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.9, 0.1]])
    lowered = logs - np.array([[0.0], [2000.0], [0.0], [900.0]])
    np.testing.assert_allclose(fit_weights([lowered], codes, [0.5]), fit_weights([logs], codes, [0.5]), atol=1e-4)


def test_relative_weights_have_a_mean_of_one_over_those_above_zero():
    np.testing.assert_allclose(scale_to_mean_one(np.array([0.0, 1.0, 3.0])), [0.0, 0.5, 1.5])
    np.testing.assert_allclose(scale_to_mean_one(np.array([0.0, 1e308, 1e308])), [0.0, 1.0, 1.0])
