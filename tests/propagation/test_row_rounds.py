"""Rounds of the paper's algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

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


def test_an_unfinished_solve_warns_once_and_says_what_to_change(iris):
    X, _, y = iris
    with pytest.warns(
        ConvergenceWarning, match=r"did not reach tol=1e-06 in \d+ of \d+ rounds.*Raise epsilon"
    ) as record:
        model = PaperOTP(max_iter=1, epsilon=1e-3).fit(X, y)
    assert len(record) == 1
    assert not all(round_.converged for round_ in model.rounds_)
    assert np.isfinite(model.label_distributions_).all()


def test_costs_too_large_for_memory_give_the_same_labels(iris, fitted, monkeypatch):
    X, _, y = iris
    monkeypatch.setattr("otprop.geometry.cost.MEMORY_LIMIT", 0)
    model = PaperOTP().fit(X, y)
    np.testing.assert_allclose(model.label_distributions_, fitted.label_distributions_, atol=1e-5)


def test_rounds_use_the_threshold_of_the_paper_unless_told_otherwise(fitted):
    assert {round_.threshold for round_ in fitted.rounds_ if not round_.lowered} == {0.9}


def plain_plan(cost, epsilon, tol=1e-5):
    """Sinkhorn's iteration in logarithms, epsilon halved from the largest cost: slow and sure."""
    n_sources, n_targets = cost.shape
    g = np.zeros(n_targets)
    for stage in epsilon * 2.0 ** np.arange(max(0, int(np.log2(cost.max() / epsilon))), -1, -1):
        for iteration in range(100_000):
            f = -stage * (np.log(n_sources) + logsumexp((g - cost) / stage, axis=1))
            g = -stage * (np.log(n_targets) + logsumexp((f[:, None] - cost) / stage, axis=0))
            plan = np.exp((f[:, None] + g - cost) / stage)
            if np.abs(plan.sum(axis=1) - 1 / n_sources).sum() < tol or (stage > epsilon and iteration > 100):
                break
    return plan


def algorithm_1(X, y, epsilon, alpha):
    y, n_classes = y.copy(), y.max() + 1
    while (y == -1).any():
        labelled, unlabelled = np.flatnonzero(y != -1), np.flatnonzero(y == -1)
        cost = ((X[labelled][:, None] - X[unlabelled]) ** 2).sum(axis=-1)
        plan = plain_plan(cost, epsilon)
        affinity = plan / plan.sum(axis=0)
        shares = np.array(
            [[affinity[y[labelled] == k, j].sum() for k in range(n_classes)] for j in range(plan.shape[1])]
        )
        entropy = -np.sum(shares * np.log2(np.where(shares > 0, shares, 1)), axis=1)
        scores = 1 - entropy / np.log2(n_classes)
        chosen = scores > alpha
        if not chosen.any():
            chosen = scores >= scores.max() - 1e-9
        y[unlabelled[chosen]] = shares[chosen].argmax(axis=1)
    return y


@pytest.mark.parametrize(("share", "epsilon"), [(0.05, 0.05), (0.15, 0.1), (0.35, 0.5)])
def test_otp_labels_iris_like_the_printed_algorithm(share, epsilon):
    X, truth = load_iris(return_X_y=True)
    labelled, _ = train_test_split(np.arange(150), train_size=share, stratify=truth, random_state=0)
    y = np.full(150, -1)
    y[labelled] = truth[labelled]
    model = PaperOTP(epsilon=epsilon, alpha=0.9).fit(X, y)
    assert (model.transduction_ == algorithm_1(X, y, epsilon, 0.9)).all()
