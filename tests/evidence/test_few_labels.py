"""What is chosen and held out where labels are too few to say much."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP
from otprop.evidence.classifier import Features, ForestSource
from otprop.evidence.hidden import hide


def held_out_log_proba(source, codes, n_classes):
    """What the source says of each labelled row without its label, and the true classes."""
    held_out = hide(codes, n_classes, 0)
    return source.learn(codes, np.ones(len(codes)), held_out).hidden, held_out.codes


@pytest.mark.parametrize("n_classes", [3, 6])
def test_a_row_that_nothing_is_known_about_belongs_to_its_own_class_as_probably_as_to_any_other(n_classes):
    codes = np.repeat(np.arange(n_classes), 2)  # of each class one label is left once the other is held out
    X = np.zeros((len(codes), 1))
    logs, true = held_out_log_proba(ForestSource(Features(X), X, n_classes, 0, 1), codes, n_classes)
    own = np.exp(logs)[np.arange(len(true)), true]
    np.testing.assert_allclose(own.mean(), 1 / n_classes, rtol=0.15)


def test_without_a_label_to_hold_out_epsilon_is_the_usual_cost_of_a_row_to_its_nearest_labelled_one():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 2, np.arange(40), -1)  # one label a class
    costs = ((X[2:, None] - X[:2]) ** 2).sum(axis=-1)
    model = OTP(cost="sqeuclidean", evidence=None).fit(X, y)
    assert model.epsilon_ == pytest.approx(np.median(costs.min(axis=1)))


def test_one_held_out_label_a_class_hardly_moves_epsilon():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 8])
    y = np.full(40, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]  # any small epsilon makes the four held-out labels certain
    unlabelled = np.flatnonzero(y < 0)
    costs = ((X[unlabelled, None] - X[y >= 0]) ** 2).sum(axis=-1)
    usual = np.median(costs.min(axis=1))
    model = OTP(cost="sqeuclidean", evidence=None).fit(X, y)
    assert 0.1 * usual < model.epsilon_ < 10 * usual
