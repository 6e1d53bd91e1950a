import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.neighbors import KNeighborsClassifier

from otprop_paper.baselines import KernelVote, NearestNeighbor
from otprop_paper.baselines.graph import squared_distances
from otprop_paper.baselines.nearest import class_potentials


def test_the_nearest_labelled_row_decides_as_in_scikit_learn(iris):
    X, _, labels = iris
    given = labels >= 0
    theirs = KNeighborsClassifier(1).fit(X[given], labels[given])
    model = NearestNeighbor().fit(X, labels)
    np.testing.assert_array_equal(model.transduction_, theirs.predict(X))
    np.testing.assert_array_equal(model.predict(X + 0.03), theirs.predict(X + 0.03))


def test_votes_are_the_kernel_summed_per_class(iris):
    X, _, labels = iris
    given = labels >= 0
    K = np.exp(-squared_distances(X)[:, given] / 0.8)
    votes = K @ np.eye(3)[labels[given]]
    expected = votes / votes.sum(axis=1, keepdims=True)
    model = KernelVote(epsilon=0.8).fit(X, labels)
    np.testing.assert_allclose(model.label_distributions_[~given], expected[~given], atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)


def test_potentials_are_log_sums_even_where_the_kernel_is_zero_in_floating_point():
    rng = np.random.default_rng(0)
    sq, codes = rng.uniform(1, 2, size=(6, 9)), np.array([2, 0, 1, 1, 0, 2, 2, 0, 1])
    for epsilon in (1.0, 1e-4):
        expected = np.stack([logsumexp(-sq[:, codes == k] / epsilon, axis=1) for k in range(3)], axis=1)
        np.testing.assert_allclose(class_potentials(sq, codes, 3, epsilon), expected)
    assert (np.exp(-sq / 1e-4) == 0).all()


def test_a_vanishing_epsilon_is_the_nearest_labelled_row(digits):
    X, _, labels = digits
    nearest = NearestNeighbor().fit(X, labels).transduction_
    assert np.mean(KernelVote(epsilon=1e-6).fit(X, labels).transduction_ == nearest) > 0.99  # but for ties


def test_a_vast_epsilon_gives_the_labelled_shares(iris):
    X, _, labels = iris
    shares = np.bincount(labels[labels >= 0]) / np.sum(labels >= 0)
    found = KernelVote(epsilon=1e12).fit(X, labels).label_distributions_[labels < 0]
    np.testing.assert_allclose(found, np.tile(shares, (len(found), 1)), atol=1e-9)


def test_auto_epsilon_is_twice_the_squared_median_distance_to_the_nearest_row():
    X = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])  # nearest: 1, 1, 2, 4, 8
    assert KernelVote().fit(X, [0, -1, -1, -1, 1]).epsilon_ == pytest.approx(8.0)
