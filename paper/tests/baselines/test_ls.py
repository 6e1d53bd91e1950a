import numpy as np
import pytest
import sklearn.semi_supervised as peer
from paper.tests.made import hide

from otprop_paper.baselines import LabelSpreading
from otprop_paper.baselines.graph import affinity, distributions, iterate, one_hot, squared_distances
from otprop_paper.baselines.ls import spread_exact


@pytest.mark.parametrize("alpha", [0.2, 0.9])
@pytest.mark.parametrize("kernel", ["rbf", "knn"])
def test_unlabelled_distributions_are_those_of_scikit_learn_at_its_limit(digits, kernel, alpha):
    X, _, labels = digits
    X = X / 16.0 + np.random.default_rng(0).normal(scale=1e-4, size=X.shape)  # no ties between neighbours
    common = {"n_neighbors": 7, "alpha": alpha}
    theirs = peer.LabelSpreading(kernel, gamma=0.5, tol=1e-14, max_iter=100_000, **common).fit(X, labels)
    ours = LabelSpreading(kernel, sigma=1.0, tol=1e-10, **common).fit(X, labels)
    rows = (labels < 0) & (theirs.label_distributions_.sum(axis=1) > 0)
    assert rows.sum() > 450
    np.testing.assert_allclose(ours.label_distributions_[rows], theirs.label_distributions_[rows], atol=1e-5)


def test_the_limit_is_the_inverse_applied_to_the_labels(iris):
    X, _, labels = iris
    W = np.exp(-squared_distances(X) / (2 * 0.5**2))
    np.fill_diagonal(W, 0.0)
    root = np.sqrt(W.sum(axis=1))
    S = W / root[:, None] / root
    np.testing.assert_allclose(affinity(squared_distances(X), 0.5)[0], S, atol=1e-12)
    expected = 0.1 * np.linalg.inv(np.eye(len(X)) - 0.9 * S) @ one_hot(labels, 3)
    np.testing.assert_allclose(spread_exact(S, one_hot(labels, 3), alpha=0.9).scores, expected, atol=1e-12)


def test_splits_side_by_side_give_what_each_gives_alone(iris):
    X, y, _ = iris
    S, _ = affinity(squared_distances(X), 0.5)
    tables = [one_hot(hide(y, share, seed), 3) for seed, share in enumerate([0.05, 0.1, 0.3])]
    stacked = np.stack(tables, axis=1)
    for solve in (iterate, spread_exact):
        together = solve(S, stacked, alpha=0.9).scores
        for split, Y in enumerate(tables):
            np.testing.assert_allclose(together[:, split], solve(S, Y, alpha=0.9).scores, rtol=1e-3, atol=1e-12)


def test_iterating_ends_within_tol_of_the_exact_distributions(iris):
    X, _, labels = iris
    S, Y = affinity(squared_distances(X), 0.3)[0], one_hot(labels, 3)
    exact = distributions(spread_exact(S, Y, alpha=0.99).scores, Y)
    for tol in (1e-2, 1e-4, 1e-6):
        solution = iterate(S, Y, alpha=0.99, tol=tol)
        assert solution.converged
        assert np.abs(distributions(solution.scores, Y) - exact).max() <= 3 * tol


def test_the_exact_solve_leaves_its_input_alone_unless_told(iris):
    S, _ = affinity(squared_distances(iris[0]), 0.5)
    before = S.copy()
    spread_exact(S, one_hot(iris[2], 3), alpha=0.9)
    np.testing.assert_array_equal(S, before)


@pytest.mark.parametrize("sigma", [1e-8, 1e-3, 1.0, 1e8])
def test_the_affinity_matrix_is_symmetric_and_has_no_eigenvalue_above_one(iris, sigma):
    S, _ = affinity(squared_distances(iris[0]), sigma)
    np.testing.assert_allclose(S, S.T, atol=1e-12)
    assert np.linalg.eigvalsh(S).max() <= 1 + 1e-9


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-4])
def test_a_float32_matrix_can_be_factored_however_small_sigma(digits, ratio):
    sq = squared_distances(digits[0], dtype=np.float32)
    scores = spread_exact(affinity(sq, 15.0 * ratio)[0], one_hot(digits[2], 10), alpha=0.999).scores
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()


def test_scores_stay_non_negative_far_from_every_label():
    X = np.arange(60.0)[:, None]
    Y = one_hot(np.r_[0, np.full(58, -1), 1], 2)
    scores = spread_exact(affinity(squared_distances(X), 0.3)[0], Y, alpha=0.5).scores
    assert (scores >= 0).all()
    np.testing.assert_array_equal(scores.argmax(axis=1), np.repeat([0, 1], 30))


def test_rows_that_no_label_reaches_get_the_labelled_shares():
    X = np.r_[np.arange(6.0), 100 + np.arange(6.0)][:, None]
    y = ["a", None, None, "a", "b", None, *[None] * 6]
    model = LabelSpreading("knn", n_neighbors=3).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_[6:], np.tile([2 / 3, 1 / 3], (6, 1)))
