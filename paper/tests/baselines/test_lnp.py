import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.tests.made import hide
from scipy import optimize, sparse
from sklearn.neighbors import NearestNeighbors

from otprop_paper.baselines import LNP
from otprop_paper.baselines._qp import nonnegative_programs, simplex_programs
from otprop_paper.baselines.graph import distributions, iterate, one_hot
from otprop_paper.baselines.lnp import local_grams, neighborhood_graph, reconstruction_weights


def random_grams(rng, n, k, d):
    points = rng.normal(size=(n, k, d)) + rng.normal(size=(n, 1, d))
    return points @ points.transpose(0, 2, 1) + 1e-3 * np.eye(k)


def assert_simplex_optimal(G, w, tol=1e-8):
    """Karush, Kuhn and Tucker: the gradient is smallest, and equal, wherever there is weight."""
    np.testing.assert_allclose(w.sum(axis=1), 1.0)
    assert (w >= 0).all()
    gradient = np.einsum("nij,nj->ni", G, w)
    excess = gradient - gradient.min(axis=1, keepdims=True)
    scale = np.trace(G, axis1=1, axis2=2)
    assert (w * excess <= tol * scale[:, None]).all()


@pytest.mark.parametrize("k", [2, 5, 9])
def test_weights_are_those_of_a_general_solver(k):
    G = random_grams(np.random.default_rng(k), 20, k, 6)
    w = simplex_programs(G)
    for gram, ours in zip(G, w, strict=True):
        general = optimize.minimize(
            lambda x, gram=gram: x @ gram @ x,
            np.full(k, 1 / k),
            jac=lambda x, gram=gram: 2 * gram @ x,
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(k)},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert general.success
        np.testing.assert_allclose(ours, general.x, atol=1e-5)
        assert ours @ gram @ ours <= general.fun + 1e-10


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 15), d=st.integers(1, 20))
def test_weights_meet_the_optimality_conditions_for_any_neighbourhood(seed, k, d):
    G = random_grams(np.random.default_rng(seed), 30, k, d)
    assert_simplex_optimal(G, simplex_programs(G))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12))
def test_non_negative_programs_are_non_negative_least_squares(seed, k):
    rng = np.random.default_rng(seed)
    A, target = rng.normal(size=(k + 3, k)), rng.normal(size=k + 3)
    ours = nonnegative_programs((A.T @ A)[None], (A.T @ target)[None])[0]
    np.testing.assert_allclose(ours, optimize.nnls(A, target)[0], atol=1e-7)


def test_a_row_between_two_neighbours_is_rebuilt_from_both_by_hand():
    X = np.array([[0.0, 0.0], [4.0, 0.0]])
    weights = reconstruction_weights(X, np.array([[1.0, 0.0], [9.0, 0.0]]), np.array([[0, 1], [0, 1]]))
    np.testing.assert_allclose(weights, [[0.75, 0.25], [0.0, 1.0]], atol=1e-6)


def test_a_tenth_of_the_trace_is_added_only_when_neighbours_outnumber_features():
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    target = np.array([[1.0, 1.0]])
    three = local_grams(X, target, np.array([[0, 1, 2]]))[0]
    assert three[0, 0] == pytest.approx(2 + 0.1 * (2 + 10 + 10))
    two = local_grams(X, target, np.array([[0, 1]]))[0]
    assert two[0, 0] == pytest.approx(2.0)


def test_the_graph_is_row_stochastic_and_no_row_rebuilds_itself(digits):
    graph = neighborhood_graph(digits[0], 8)
    np.testing.assert_allclose(graph.sum(axis=1), 1.0)
    assert (graph.data > 0).all()
    assert (graph.diagonal() == 0).all()


def test_weights_on_real_rows_are_optimal_even_with_repeated_rows(digits):
    X = np.r_[digits[0], digits[0][:50]]
    neighbors = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    assert_simplex_optimal(local_grams(X, X, neighbors), reconstruction_weights(X, X, neighbors))


def test_the_limit_is_the_inverse_applied_to_the_labels(iris):
    X, _, labels = iris
    W, Y = neighborhood_graph(X, 10), one_hot(labels, 3)
    exact = 0.01 * np.linalg.inv(np.eye(len(X)) - 0.99 * W.toarray()) @ Y
    found = iterate(W, Y, alpha=0.99, tol=1e-10, max_iter=100_000)
    assert found.converged
    np.testing.assert_allclose(found.scores, exact, atol=1e-10)
    expected = distributions(exact, Y)[labels < 0]
    fitted = LNP(tol=1e-9, max_iter=100_000).fit(X, labels).label_distributions_[labels < 0]
    np.testing.assert_allclose(fitted, expected, atol=1e-6)


def test_a_new_row_gets_the_distribution_of_the_rows_that_rebuild_it(digits):
    X, _, labels = digits
    model = LNP(n_neighbors=6).fit(X, labels)
    new = X[:20] + 0.3
    neighbors = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(new, return_distance=False)
    weights = reconstruction_weights(X, new, neighbors)
    expected = np.stack([w @ model.label_distributions_[n] for w, n in zip(weights, neighbors, strict=True)])
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-6)


def test_rows_that_no_label_reaches_get_the_labelled_shares():
    X = np.r_[np.arange(6.0), 100 + np.arange(6.0)][:, None]
    y = ["a", None, None, "a", "b", None, *[None] * 6]
    model = LNP(n_neighbors=2).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_[6:], np.tile([2 / 3, 1 / 3], (6, 1)))


@pytest.mark.data
def test_ten_thousand_rows_are_labelled(data_folder):
    data = np.load(data_folder / "mnist10k.npz")
    X, y = data["X"].astype(np.float64) / 255.0, data["y"].astype(int)
    neighbors = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    weights = reconstruction_weights(X, X, neighbors)
    assert_simplex_optimal(local_grams(X, X[:500], neighbors[:500]), weights[:500])
    labels = hide(y, 0.05)
    places = (np.repeat(np.arange(len(X)), 10), neighbors.reshape(-1))
    graph = sparse.csr_array((weights.reshape(-1), places), shape=(len(X), len(X)))
    scores = iterate(graph, one_hot(labels, 10), alpha=0.9).scores  # at 0.99 the ones flood the other digits
    hidden = labels < 0
    assert np.mean(distributions(scores, one_hot(labels, 10)).argmax(axis=1)[hidden] == y[hidden]) > 0.88
