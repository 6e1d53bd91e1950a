"""The weights of the sources."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from otprop.evidence.base import log_floored
from otprop.evidence.weights import fit_weights, scale_to_mean_one


def answers(codes, n_classes, accuracy, rng):
    """What a source says that puts 0.9 on the right class with the given probability, else on some other class."""
    said = np.full((len(codes), n_classes), 0.1 / (n_classes - 1))
    right = rng.random(len(codes)) < accuracy
    chosen = np.where(right, codes, (codes + rng.integers(1, n_classes, len(codes))) % n_classes)
    said[np.arange(len(codes)), chosen] = 0.9
    return np.log(said)


@settings(deadline=None)
@given(
    accuracies=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    n_hidden=st.integers(0, 60),
    n_classes=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_weights_are_finite_and_never_negative(accuracies, n_hidden, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n_hidden)
    weights = fit_weights([answers(codes, n_classes, a, rng) for a in accuracies], codes, [0.5] * len(accuracies))
    assert weights.shape == (len(accuracies),)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()


def test_the_better_source_weighs_more_and_one_that_is_always_wrong_nothing():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    good, fair, bad = fit_weights([answers(codes, 3, a, rng) for a in (0.9, 0.6, 0.0)], codes, [0.4, 0.4, 0.4])
    assert good > fair > bad
    assert bad == 0


def test_a_source_that_says_nothing_stays_where_it_starts():
    codes = np.arange(40) % 2
    rng = np.random.default_rng(0)
    weights = fit_weights([answers(codes, 2, 0.9, rng), np.full((40, 2), np.log(0.5))], codes, [0.6, 0.3])
    assert weights[1] == pytest.approx(0.3, abs=1e-6)


def test_without_hidden_labels_the_start_decides_and_few_hardly_move_it():
    assert fit_weights([np.empty((0, 2))] * 2, np.empty(0, dtype=int), [0.6, 0.2]).tolist() == [0.6, 0.2]
    rng = np.random.default_rng(0)
    few, many = np.array([0, 1]), np.arange(500) % 2
    moved = [abs(fit_weights([answers(codes, 2, 0.95, rng)], codes, [0.2])[0] - 0.2) for codes in (few, many)]
    assert moved[0] < moved[1]


def test_the_weights_maximise_the_penalised_likelihood():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 50)
    sources = [log_floored(rng.dirichlet(np.ones(3) + 3 * np.eye(3)[code], 1)[0][None]) for code in codes]
    logs = [np.concatenate(sources), answers(codes, 3, 0.7, rng)]

    def value(weights):
        total = sum(weight * log for weight, log in zip(weights, logs, strict=True))
        total = total - np.log(np.exp(total).sum(axis=1, keepdims=True))
        return total[np.arange(50), codes].sum() - 2.0 * ((weights - np.array([0.6, 0.4])) ** 2).sum()

    found = fit_weights(logs, codes, [0.6, 0.4], penalty=2.0)
    for step in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
        assert value(found) >= value(np.maximum(found + step, 0)) - 1e-9


def test_a_label_of_weight_two_counts_as_two_and_one_of_weight_zero_as_none():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 30)
    logs = [log_floored(rng.dirichlet(np.ones(3), 30), 0.01) for _ in range(2)]
    weights = np.repeat([0.0, 1.0, 2.0], 10)
    times = np.repeat(np.arange(30), weights.astype(int))
    found = fit_weights(logs, codes, [0.5, 0.5], label_weights=weights)
    np.testing.assert_allclose(found, fit_weights([one[times] for one in logs], codes[times], [0.5, 0.5]), atol=1e-4)


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
