"""Predictions of new rows by a class-level fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import pairwise_distances

from otprop import OTP
from tests.estimators import hide, nearness

pytestmark = pytest.mark.filterwarnings("ignore:y holds -1 and 1 only")  # rightly


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, hide(truth, 0.1)


def test_prediction_on_the_training_rows_is_what_they_got_with_costs_given(iris):
    X, _, y = iris
    costs = pairwise_distances(X, metric="cityblock")
    model = nearness(cost="precomputed").fit(costs, y)
    np.testing.assert_array_equal(model.predict(costs), model.transduction_)


def chain(*sizes):
    """Affinities along chains of rows, one beside the other."""
    return sp.block_diag([sp.diags_array([1.0] * 2, offsets=[-1, 1], shape=(n, n)) for n in sizes], format="csr")


def test_the_confidence_of_new_rows_is_about_how_often_they_are_right():
    right, said = [], []
    for seed in range(5):
        X, truth = make_moons(600, noise=0.25, random_state=seed)
        y = np.where(np.arange(300) < 40, truth[:300], -1)
        model = OTP().fit(X[:300], y)
        said.append(model.predict_confidence(X[300:]))
        right.append(model.predict(X[300:]) == truth[300:])
    said, right = np.concatenate(said), np.concatenate(right)
    assert abs(said.mean() - right.mean()) < 0.05
    order = np.argsort(said)
    assert right[order[-500:]].mean() > right[order[:500]].mean() + 0.05


def test_a_new_row_that_no_label_reaches_has_at_most_the_confidence_of_its_class_share():
    y = np.full(12, -1)
    y[[0, 8, 9]] = [0, 1, 1]
    model = OTP(cost="graph", class_prior=[0.2, 0.8]).fit(chain(10, 2), y)
    new = np.zeros((2, 12))
    new[0, 11], new[1, 9] = 1.0, 1.0
    assert 0.5 <= model.predict_confidence(new)[0] <= 0.8
    assert model.predict_confidence(new)[1] > 0.5
    y[[1, 2, 3, 7]] = [0, 0, 0, 1]  # more labels, all of them right: surer than the share
    model = OTP(cost="graph", class_prior=[0.2, 0.8]).fit(chain(10, 2), y)
    assert model.predict_confidence(new)[0] <= 0.8 < model.predict_confidence(new)[1]
