import numpy as np
import pytest
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import ConvergenceWarning

from otprop_paper.baselines import CNMF
from otprop_paper.baselines.cnmf import code_groups, factorize


def start(n_groups, n_features, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1, (n_features, k)), rng.uniform(0.1, 1, (n_groups, k))


def test_labelled_rows_share_their_classes_code_and_others_have_their_own():
    np.testing.assert_array_equal(code_groups(np.array([-1, 1, 0, -1, 1]), 2), [2, 1, 0, 3, 1])


def test_without_labels_it_is_plain_matrix_factorisation():
    X = np.random.default_rng(1).uniform(size=(30, 12))
    U, Z = start(30, 12, 4)
    ours = factorize(X, np.arange(30), U, Z, tol=0.0, max_iter=40)
    # scikit-learn updates the left factor first, so the transposed table puts U there
    W, H, _ = non_negative_factorization(
        X.T.copy(), W=U.copy(), H=Z.T.copy(), n_components=4, init="custom", solver="mu", tol=0, max_iter=40
    )
    np.testing.assert_allclose(ours.U, W, rtol=1e-6)
    np.testing.assert_allclose(ours.Z, H.T, rtol=1e-6)


def test_the_updates_are_those_of_the_formula_with_its_matrix_written_out():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(9, 5))
    groups = code_groups(np.array([0, 1, -1, 0, -1, 1, 1, -1, 0]), 2)
    A = np.eye(groups.max() + 1)[groups]
    U, Z = start(len(A.T), 5, 2)
    expected_U, expected_Z, objective = U.copy(), Z.copy(), [np.sum((X - A @ Z @ U.T) ** 2)]
    for _ in range(7):
        expected_U *= (X.T @ A @ expected_Z) / (expected_U @ expected_Z.T @ A.T @ A @ expected_Z)
        expected_Z *= (A.T @ X @ expected_U) / (A.T @ A @ expected_Z @ expected_U.T @ expected_U)
        objective.append(np.sum((X - A @ expected_Z @ expected_U.T) ** 2))
    found = factorize(X, groups, U, Z, tol=0.0, max_iter=7)
    np.testing.assert_allclose(found.U, expected_U)
    np.testing.assert_allclose(found.Z, expected_Z)
    np.testing.assert_allclose(found.objective, objective)


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_increases(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(40, 8)) * (rng.random((40, 8)) < 0.6)
    groups = code_groups(rng.integers(-1, 3, size=40), 3)
    U, Z = start(groups.max() + 1, 8, 3, seed)
    objective = factorize(X, groups, U, Z, tol=0.0, max_iter=200).objective
    assert len(objective) > 50
    assert (np.diff(objective) <= 1e-10 * objective[0]).all()


def test_rows_that_are_exact_multiples_of_class_codes_are_rebuilt_exactly():
    U = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0], [0.0, 0.7]])
    groups = np.array([0, 0, 1, 1, 2, 3])
    found = factorize(Z[groups] @ U.T, groups, *start(4, 4, 2), tol=0.0, max_iter=5000)
    assert found.objective[-1] < 1e-8


def test_one_component_reaches_the_best_rank_one_error():
    X = np.random.default_rng(3).uniform(size=(12, 6))
    best = np.sum(np.linalg.svd(X, compute_uv=False)[1:] ** 2)  # the leading pair is non-negative (Perron)
    found = factorize(X, np.arange(12), *start(12, 6, 1), tol=0.0, max_iter=500)
    assert found.objective[-1] == pytest.approx(best, rel=1e-8)


def test_the_estimator_records_an_objective_that_never_increases(digits):
    X, _, labels = digits
    model = CNMF(random_state=0).fit(X, labels)
    assert len(model.objective_) == model.n_iter_ + 1
    assert (np.diff(model.objective_) <= 1e-10 * model.objective_[0]).all()


def test_labelled_rows_of_a_class_have_one_code_and_components_unit_length(digits):
    X, _, labels = digits
    model = CNMF(random_state=0).fit(X, labels)
    for label in range(10):
        assert np.ptp(model.codes_[labels == label], axis=0).max() == 0
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1.0)
    scaled = (X - X.min(axis=0)) / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1)
    error = np.sum((scaled - model.codes_ @ model.components_) ** 2)
    assert error == pytest.approx(model.objective_[-1], rel=1e-8)


def test_features_on_any_scale_give_the_same_labels(iris):
    X, _, labels = iris
    first = CNMF(random_state=0).fit(X, labels)
    second = CNMF(random_state=0).fit(X * [1, 1e3, 1e-3, 7] + [5, -1e3, 0, 2], labels)
    np.testing.assert_array_equal(first.transduction_, second.transduction_)


def test_predicting_the_training_rows_repeats_their_clusters(digits):
    X, _, labels = digits
    model = CNMF(random_state=0).fit(X, labels)
    hidden = labels < 0
    assert np.mean(model.predict(X)[hidden] == model.transduction_[hidden]) > 0.97


def test_stopping_early_is_said_aloud(digits):
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        CNMF(max_iter=3, random_state=0).fit(digits[0], digits[2])
