"""Settings mixed by what they say of held-out labels."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.evidence.base import powered
from otprop.evidence.held_out import HeldOut
from otprop.evidence.weights import Powers, fit_mixture, mix

POWERS = Powers((0.5, 1.0, 2.0), start=1.0, penalty=0.5)


def held_out_labels(codes, weights=None):
    """All rows held out, in five folds."""
    n = len(codes)
    weights = np.ones(n) if weights is None else weights
    return HeldOut(np.arange(n), np.arange(n) % 5, codes, 5, np.bincount(codes), np.ones(n, dtype=bool), weights)


def test_labels_that_count_nothing_do_not_choose_the_setting():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 60)
    knows, guesses = binary(np.where(codes == 1, 0.8, 0.2)), binary(rng.uniform(0.2, 0.8, 60))
    wrong = np.arange(60) < 20
    codes[wrong] = 1 - codes[wrong]
    found = fit_mixture([knows, guesses], held_out_labels(codes, np.where(wrong, 0.0, 1.0)), POWERS)
    assert found.powers[0] == 2.0
    assert found.weights[0] == 1.0
    assert fit_mixture([knows, guesses], held_out_labels(codes), POWERS).powers[0] < 2.0


def binary(shares_of_class_one):
    share = np.asarray(shares_of_class_one, dtype=float)
    return np.column_stack([1 - share, share])


def test_a_setting_that_knows_outweighs_one_that_guesses():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 60)
    knows, guesses = binary(np.where(codes == 1, 0.8, 0.2)), binary(rng.uniform(0.2, 0.8, 60))
    found = fit_mixture([knows, guesses], held_out_labels(codes), POWERS)
    assert found.weights[0] > 0.9
    assert found.weights.sum() == pytest.approx(1)
    assert found.likelihoods[0] > found.likelihoods[1]


def test_a_bold_setting_is_made_milder_and_a_shy_one_bolder():
    codes = np.tile([0, 0, 0, 1], 25)
    bold = binary(np.where(np.arange(100) % 2, 0.01, 0.01))  # right three times in four, sure in every case
    shy = binary(np.where(codes == 1, 0.6, 0.4))  # always right
    found = fit_mixture([bold, shy], held_out_labels(codes), POWERS)
    assert found.powers.tolist() == [0.5, 2.0]


def test_with_few_labels_the_preferred_power_stays():
    found = fit_mixture([binary([0.55, 0.45])], held_out_labels(np.array([1, 0])), POWERS)
    assert found.powers.tolist() == [1.0]


def test_the_probabilities_of_the_mixture_are_the_weighted_sum():
    values = [binary([0.7, 0.1]), binary([0.5, 0.5])]
    found = mix(values, np.array([2.0, 1.0]), np.array([0.25, 0.75]))
    np.testing.assert_allclose(found, 0.25 * powered(values[0], 2.0) + 0.75 * powered(values[1], 1.0))
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_labels_of_a_row_s_group_have_no_part_in_its_cross_fitted_probabilities():
    rng = np.random.default_rng(1)
    codes, here = rng.integers(0, 2, 50), np.arange(50) % 5 == 3
    values = [binary(np.where(here, np.where(codes == 1, 0.8, 0.2), 0.5)), binary(rng.uniform(0.3, 0.7, 50))]
    before = fit_mixture(values, held_out_labels(codes), POWERS)
    after = fit_mixture(values, held_out_labels(np.where(here, 1 - codes, codes)), POWERS)
    np.testing.assert_array_equal(before.cross_fitted[here], after.cross_fitted[here])
    assert before.weights[0] > after.weights[0] + 0.1
