"""What is chosen and believed where labels are too few to say much."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP

ALL_TREES = True


@pytest.mark.parametrize("n_classes", [3, 6])
def test_a_forest_that_knows_nothing_gives_a_held_out_label_the_same_chance_as_any_other_class(n_classes):
    X = np.zeros((60, 2))
    y = np.full(60, -1)
    y[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)  # a class loses half of its labels when one is held out
    forest = next(found for found in OTP(evidence=["forest"]).fit(X, y).evidence_ if found.name == "forest")
    assert forest.likelihood == pytest.approx(np.log(1 / n_classes), abs=0.2)
    assert forest.weight > 0.4


def test_without_a_label_to_hold_out_epsilon_is_the_usual_cost_of_a_row_to_its_nearest_labelled_one():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 2, np.arange(40), -1)  # one label a class
    costs = ((X[2:, None] - X[:2]) ** 2).sum(axis=-1)
    model = OTP(cost="sqeuclidean", evidence=None).fit(X, y)
    assert model.epsilon_ == pytest.approx(np.median(costs.min(axis=1)))


def test_two_labels_a_class_do_not_drive_epsilon_to_an_end_of_the_grid():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 8])
    y = np.full(40, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]  # the smaller epsilon is, the more certain are the four held-out labels
    unlabelled = np.flatnonzero(y < 0)
    costs = ((X[unlabelled, None] - X[y >= 0]) ** 2).sum(axis=-1)
    usual = np.median(costs.min(axis=1))
    model = OTP(cost="sqeuclidean", evidence=None).fit(X, y)
    assert 0.1 * usual < model.epsilon_ < 10 * usual
