import numpy as np
import pytest
import sklearn.semi_supervised as peer
from paper.tests.made import hide
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from otprop_paper.baselines import LabelPropagation
from otprop_paper.baselines.graph import affinity, auto_sigma, distributions, one_hot, squared_distances
from otprop_paper.baselines.lp import propagate, propagate_exact, transition


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0])
def test_rbf_distributions_are_those_of_scikit_learn_at_its_limit(iris, sigma):
    X, _, labels = iris
    theirs = peer.LabelPropagation(gamma=0.5 / sigma**2, tol=1e-9, max_iter=100_000).fit(X, labels)
    ours = LabelPropagation(sigma=sigma).fit(X, labels)
    np.testing.assert_allclose(ours.label_distributions_, theirs.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(ours.transduction_, theirs.transduction_)
    new = X[::7] + 0.05
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-6)


def test_knn_distributions_are_those_of_scikit_learn_at_its_limit(digits):
    X, _, labels = digits
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)  # whole numbers tie, and ties are anyone's
    theirs = peer.LabelPropagation("knn", n_neighbors=7, tol=1e-9, max_iter=100_000).fit(X, labels)
    ours = LabelPropagation("knn", n_neighbors=7, tol=1e-12, max_iter=100_000).fit(X, labels)
    reached = theirs.label_distributions_.sum(axis=1) > 0
    assert reached.sum() > 500
    np.testing.assert_allclose(ours.label_distributions_[reached], theirs.label_distributions_[reached], atol=1e-6)


def test_the_limit_is_the_harmonic_solution_of_the_linear_system(iris):
    X, _, labels = iris
    W = np.exp(-squared_distances(X) / (2 * 0.4**2))
    T = W / W.sum(axis=1, keepdims=True)
    u, known = labels < 0, labels >= 0
    expected = np.linalg.solve(np.eye(u.sum()) - T[np.ix_(u, u)], T[np.ix_(u, known)] @ np.eye(3)[labels[known]])
    np.testing.assert_allclose(LabelPropagation(sigma=0.4).fit(X, labels).label_distributions_[u], expected, atol=1e-9)


def test_each_row_of_the_transition_matrix_sums_to_one_however_small_sigma(iris):
    sq = squared_distances(iris[0])
    for sigma in (1e-6, 1e-2, 1.0, 1e6):
        T, _ = transition(sq, sigma)
        np.testing.assert_allclose(T.sum(axis=1), 1.0)
        assert (np.diag(T) == 0).all()


def test_a_tiny_sigma_gives_finite_distributions(iris):
    X, _, labels = iris
    model = LabelPropagation(sigma=1e-4).fit(X, labels)
    assert np.isfinite(model.label_distributions_).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)


def test_rows_that_no_label_reaches_get_the_labelled_shares():
    X = np.r_[np.arange(6.0), 100 + np.arange(6.0)][:, None]
    y = ["a", None, None, "a", "b", None, *[None] * 6]
    model = LabelPropagation("knn", n_neighbors=3).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_[6:], np.tile([2 / 3, 1 / 3], (6, 1)))
    assert set(model.transduction_[6:]) == {"a"}


def test_splits_side_by_side_give_what_each_gives_alone(iris):
    X, y, _ = iris
    T, weight = transition(squared_distances(X), 0.5)
    tables = [one_hot(hide(y, share, seed), 3) for seed, share in enumerate([0.05, 0.1, 0.3])]
    stacked = np.stack(tables, axis=1)
    together = propagate(T, stacked, weight=weight, tol=1e-12, max_iter=5000)
    assert together.converged
    shares = distributions(together.scores, stacked)
    for split, Y in enumerate(tables):
        alone = propagate(T, Y, weight=weight, tol=1e-12, max_iter=5000)
        np.testing.assert_allclose(together.scores[:, split], alone.scores, atol=1e-9)
        np.testing.assert_allclose(shares[:, split], distributions(alone.scores, Y), atol=1e-9)


def test_conjugate_gradients_and_the_plain_iteration_agree_and_the_first_is_shorter(iris):
    X, _, labels = iris
    T, weight = transition(squared_distances(X), 0.4)
    Y = one_hot(labels, 3)
    fast = propagate(T, Y, weight=weight, tol=1e-10, max_iter=50_000)
    plain = propagate(sparse.csr_array(T), Y, tol=1e-10, max_iter=50_000)
    np.testing.assert_allclose(fast.scores, plain.scores, atol=1e-7)
    assert fast.n_iter < plain.n_iter / 3


@pytest.mark.parametrize("sigma", [0.2, 0.5, 2.0])
def test_the_exact_solve_and_the_iteration_give_the_same_distributions(iris, sigma):
    X, y, _ = iris
    sq = squared_distances(X)
    Y = np.stack([one_hot(hide(y, share, seed), 3) for seed, share in enumerate([0.05, 0.3])], axis=1)
    T, weight = transition(sq, sigma)
    iterated = propagate(T, Y, weight=weight, tol=1e-12, max_iter=50_000)
    assert iterated.converged
    exact = distributions(propagate_exact(*affinity(sq, sigma), Y).scores, Y)
    np.testing.assert_allclose(exact, distributions(iterated.scores, Y), atol=1e-6)


def test_the_exact_solve_gives_the_same_in_the_memory_of_its_matrix(iris):
    X, _, labels = iris
    Y = one_hot(labels, 3)
    S, log_degree = affinity(squared_distances(X), 0.5)
    apart = propagate_exact(S, log_degree, Y).scores
    np.testing.assert_array_equal(propagate_exact(S, log_degree, Y, overwrite=True).scores, apart)
    with pytest.raises(ValueError, match="overwrite=True serves one split"):
        propagate_exact(S, log_degree, np.stack([Y, Y], axis=1), overwrite=True)


def test_a_matrix_that_rounding_made_indefinite_is_still_solved():
    X = np.array([[0.0], [1.0], [50.0], [51.0], [100.0], [101.0]])  # three pairs, one of them labelled
    S, log_degree = affinity(squared_distances(X), 0.5)
    Y = one_hot(np.array([0, 1, -1, -1, -1, -1]), 2)
    scores = propagate_exact(S * (1 + 1e-9), log_degree, Y).scores
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()


@pytest.mark.parametrize("ratio", [1.0, 1e-1, 1e-2, 1e-4])
def test_a_float32_matrix_can_be_factored_however_small_sigma(digits, ratio):
    X, _, labels = digits
    S, log_degree = affinity(squared_distances(X, dtype=np.float32), 15.0 * ratio)
    scores = propagate_exact(S, log_degree, one_hot(labels, 10)).scores
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()


def test_float32_distances_give_float32_work_and_nearly_the_same_answer(iris):
    X, _, labels = iris
    Y = one_hot(labels, 3)
    scores = {}
    for dtype in (np.float32, np.float64):
        T, weight = transition(squared_distances(X, dtype=dtype), 0.5)
        assert T.dtype == dtype
        scores[dtype] = propagate(T, Y, weight=weight, tol=1e-6, max_iter=1000).scores
    np.testing.assert_allclose(scores[np.float32], scores[np.float64], atol=1e-4)


def test_the_matrix_may_be_written_over_the_distances(iris):
    sq = squared_distances(iris[0])
    expected, _ = transition(sq, 0.5)
    T, _ = transition(sq, 0.5, out=sq)
    assert T is sq
    np.testing.assert_array_equal(T, expected)


def test_auto_sigma_is_the_median_distance_to_the_nearest_other_row():
    X = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])  # nearest: 1, 1, 2, 4, 8
    assert auto_sigma(squared_distances(X)) == pytest.approx(2.0)
    assert LabelPropagation().fit(X, [0, -1, -1, -1, 1]).sigma_ == pytest.approx(2.0)


def test_auto_sigma_looks_past_repeated_rows_and_is_one_if_all_rows_are_equal():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [5.0], [8.0]])  # nearest: 0 four times, 3, 3
    assert auto_sigma(squared_distances(X)) == pytest.approx(3.0)
    assert auto_sigma(np.zeros((4, 4))) == 1.0


def test_stopping_early_is_said_aloud(iris):
    X, _, labels = iris
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        LabelPropagation("knn", max_iter=2).fit(X, labels)
