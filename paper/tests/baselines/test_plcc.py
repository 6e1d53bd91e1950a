import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from otprop_paper.baselines import PLCC
from otprop_paper.baselines.graph import one_hot
from otprop_paper.baselines.plcc import centers, constrained_kmeans, costs


def class_means(X, Y):
    return Y.T @ X / Y.sum(axis=0)[:, None]


def value(X, Y, clusters, k, strength):
    """The objective of a given clustering, from its definition."""
    total = 0.0
    for cluster in range(k):
        rows = X[clusters == cluster]
        labels = Y[(clusters == cluster) & Y.any(axis=1)]
        total += np.sum((rows - rows.mean(axis=0)) ** 2) if len(rows) else 0.0
        total += strength * np.sum((labels - labels.mean(axis=0)) ** 2) if len(labels) else 0.0
    return total


def test_with_strength_zero_it_is_k_means_from_the_same_start(digits):
    X, _, labels = digits
    Y = one_hot(labels, 10)
    start = class_means(X, Y)
    ours = constrained_kmeans(X, Y, start, np.eye(10), strength=0.0)
    theirs = KMeans(10, init=start, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.clusters, theirs.labels_)
    np.testing.assert_allclose(ours.means, theirs.cluster_centers_, atol=1e-9)
    assert ours.objective[-1] == pytest.approx(theirs.inertia_)


@pytest.mark.parametrize("strength", [0.0, 1.0, 100.0])
def test_no_clustering_beats_it_on_a_tiny_clear_case(strength):
    X = np.array([[0.0, 0.0], [0.5, 0.2], [0.1, 0.6], [0.4, 0.4], [5.0, 5.0], [5.5, 5.1], [4.9, 5.7], [5.2, 5.3]])
    Y = one_hot(np.array([0, -1, -1, 0, -1, 1, -1, -1]), 2)
    found = constrained_kmeans(X, Y, class_means(X, Y), np.eye(2), strength=strength)
    best = min(value(X, Y, np.array(c), 2, strength) for c in itertools.product(range(2), repeat=len(X)))
    assert value(X, Y, found.clusters, 2, strength) == pytest.approx(best)
    assert found.objective[-1] == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_the_search_over_all_clusterings_is_never_beaten_and_no_single_row_wants_to_move(seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(9, 2)), np.r_[0, 1, rng.integers(-1, 2, size=7)]
    Y = one_hot(codes, 2)
    found = constrained_kmeans(X, Y, class_means(X, Y), np.eye(2), strength=2.0)
    best = min(value(X, Y, np.array(c), 2, 2.0) for c in itertools.product(range(2), repeat=9))
    assert found.objective[-1] >= best - 1e-9
    table = costs(X, Y, *centers(X, Y, found.clusters, found.means, found.label_means), 2.0)
    np.testing.assert_array_equal(table.argmin(axis=1), found.clusters)


def test_the_objective_never_increases(digits):
    X, _, labels = digits
    objective = PLCC(strength=50.0).fit(X, labels).objective_
    assert len(objective) > 3
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()


def test_labels_pull_a_row_across_only_if_they_are_strong_enough():
    X = np.array([[0.0], [1.0], [9.0], [10.0], [2.0]])
    labels = np.array([0, 0, 1, 1, 1])  # the row at 2 stands among class 0
    assert PLCC(strength=0.0).fit(X, labels).clusters_[4] == 0
    assert PLCC(strength=1000.0).fit(X, labels).clusters_[4] == 1


def test_strength_is_in_units_of_squared_distance(iris):
    X, _, labels = iris
    small = PLCC(strength=3.0).fit(X, labels)
    large = PLCC(strength=3.0e6).fit(X * 1e3, labels)
    np.testing.assert_array_equal(small.clusters_, large.clusters_)


def test_new_rows_join_the_nearest_mean(iris):
    X, _, labels = iris
    model = PLCC().fit(X, labels)
    means = np.stack([X[model.clusters_ == k].mean(axis=0) for k in range(3)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), nearest)  # here each cluster is named after its own class


def test_stopping_early_is_said_aloud(digits):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        PLCC(max_iter=1).fit(digits[0], digits[2])
