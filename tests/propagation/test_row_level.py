"""The paper's way: a plan between rows, uniform marginals, the threshold alpha with the rule of Eq. 15."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import accuracy_score, pairwise_distances

from otprop import PaperOTP
from tests.estimators import hide


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, hide(truth, 0.1)


@pytest.fixture(scope="module")
def fitted(iris):
    X, _, y = iris
    return PaperOTP().fit(X, y)


def test_most_rows_of_iris_are_labelled_rightly(iris, fitted):
    _, truth, y = iris
    assert accuracy_score(truth[y == -1], fitted.transduction_[y == -1]) > 0.8


def test_the_attributes_fit_together(iris, fitted):
    _, _, y = iris
    given = y != -1
    assert (fitted.transduction_[given] == y[given]).all()
    assert (fitted.certainty_[given] == 1).all()
    assert (fitted.round_[given] == 0).all()
    assert (fitted.round_[~given] >= 1).all()
    assert fitted.round_.max() == len(fitted.rounds_) == fitted.n_iter_
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1, atol=1e-9)
    assert (fitted.classes_[fitted.label_distributions_.argmax(axis=1)] == fitted.transduction_).all()
    for round_ in fitted.rounds_:
        assert (fitted.round_[round_.rows] == round_.number).all()
        assert round_.converged
        assert max(round_.source_error, round_.target_error) <= 1e-6
        assert round_.seconds > 0
        assert round_.epsilon == fitted.epsilon_


def test_rows_are_labelled_above_the_threshold_of_their_round(fitted):
    for round_ in fitted.rounds_:
        assert (fitted.certainty_[round_.rows] >= round_.threshold - 1e-9).all()


@pytest.mark.parametrize("factor", [0.01, 0.1, 1.0, 10.0])
def test_prediction_on_the_training_rows_keeps_given_labels_and_agrees_with_the_rounds(iris, factor):
    X, _, y = iris
    model = PaperOTP(epsilon=factor * 0.05).fit(X, y)
    predicted = model.predict(X)
    assert (predicted[y != -1] == y[y != -1]).all()
    sure = model.certainty_ >= 0.9
    assert np.mean(predicted[sure] == model.transduction_[sure]) >= 0.99


def test_prediction_agrees_with_the_rounds_on_digits_where_there_are_many():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900], truth[:900]
    y = hide(truth, 0.05)
    model = PaperOTP(epsilon=300.0).fit(X, y)
    assert len(model.rounds_) > 40
    predicted = model.predict(X)
    assert (predicted[y != -1] == y[y != -1]).all()
    sure = model.certainty_ >= 0.9
    assert np.mean(predicted[sure] == model.transduction_[sure]) >= 0.99


def test_identical_rows_with_different_labels_are_predicted_by_their_weight():
    X = [[0.0], [0.0], [0.0], [5.0], [0.1]]
    model = PaperOTP(epsilon=0.1).fit(X, ["a", "a", "b", "b", None], sample_weight=[1, 1, 6, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[0.25, 0.75]])


def test_new_rows_are_labelled_like_their_neighbours(fitted):
    probabilities = fitted.predict_proba([[5.0, 3.4, 1.5, 0.2], [6.9, 3.1, 5.4, 2.1]])
    assert fitted.predict([[5.0, 3.4, 1.5, 0.2], [6.9, 3.1, 5.4, 2.1]]).tolist() == [0, 2]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_row_far_from_everything_is_predicted_without_overflow(fitted):
    assert np.isfinite(fitted.predict_proba([[1e200] * 4, [-1e300] * 4])).all()


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, sp.csc_array])
def test_sparse_rows_give_the_same_labels(iris, fitted, make):
    X, _, y = iris
    model = PaperOTP().fit(make(X), y)
    assert (model.transduction_ == fitted.transduction_).all()
    np.testing.assert_allclose(model.predict_proba(make(X)), fitted.predict_proba(X), atol=1e-6)


def test_a_precomputed_cost_is_the_same_as_its_metric(iris, fitted):
    X, _, y = iris
    costs = pairwise_distances(X, metric="sqeuclidean")
    model = PaperOTP(cost="precomputed").fit(costs, y)
    assert (model.transduction_ == fitted.transduction_).all()
    assert model.epsilon_ == pytest.approx(fitted.epsilon_)
    np.testing.assert_allclose(model.predict_proba(costs[:5]), fitted.predict_proba(X[:5]), atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "seuclidean", "mahalanobis", "chebyshev"])
def test_any_metric_of_scikit_learn_can_be_the_cost(iris, metric):
    X, truth, y = iris
    model = PaperOTP(cost=metric).fit(X, y)
    assert accuracy_score(truth, model.transduction_) > 0.7
    assert all(round_.converged for round_ in model.rounds_)


def test_a_callable_can_be_the_cost(iris):
    X, truth, _ = iris
    X, y = X[::3], hide(truth[::3], 0.2)
    by_name = PaperOTP(cost="cityblock").fit(X, y)
    by_call = PaperOTP(cost=lambda one, other: float(np.abs(one - other).sum())).fit(X, y)
    assert (by_name.transduction_ == by_call.transduction_).all()


def test_weights_count_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
    weights = np.ones(40)
    weights[:4] = [3, 0, 2, 1]
    repeated = np.concatenate([np.repeat(np.arange(8), weights[:8].astype(int)), np.arange(8, 40)])
    weighted = PaperOTP(epsilon=0.3, tol=1e-10).fit(X, y, sample_weight=weights)
    again = PaperOTP(epsilon=0.3, tol=1e-10).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.label_distributions_[8:], again.label_distributions_[repeated >= 8], atol=1e-7)
