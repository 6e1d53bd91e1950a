"""Every equation of the paper's method, 7 to 15, on an example small enough to check by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import otprop.propagation.row_rounds
from otprop import PaperOTP
from otprop.geometry.cost import ArrayCost, RowCost
from otprop.geometry.pairwise import EuclideanCost
from otprop.propagation.rounds import certainty
from otprop.propagation.row_rounds import RowLevelRounds
from otprop.transport import TransportResult, sinkhorn


def given_plan(weights):
    """A result whose column-normalised plan is proportional to `weights` (sources x targets)."""
    weights = np.asarray(weights, dtype=float)
    cost = ArrayCost(-np.log(weights).T)
    return TransportResult(np.zeros(len(weights)), np.zeros(weights.shape[1]), 1.0, 0.0, 0.0, 0, True, cost)


def test_eq_07_all_labelled_rows_weigh_the_same_and_so_do_all_unlabelled(monkeypatch):
    seen = []

    def spy(cost, a, b, *args, **kwargs):
        seen.append((a, b))
        return solve(cost, a, b, *args, **kwargs)

    solve = otprop.propagation.row_rounds.solve
    monkeypatch.setattr(otprop.propagation.row_rounds, "solve", spy)
    PaperOTP(epsilon=0.01).fit([[0.0], [0.1], [1.0], [1.1], [0.9]], [0, -1, 1, -1, -1])
    a, b = seen[0]
    np.testing.assert_allclose(a, [1 / 2, 1 / 2])
    np.testing.assert_allclose(b, [1 / 3, 1 / 3, 1 / 3])


def test_eq_08_the_cost_is_the_squared_distance():
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    pairs = EuclideanCost(rows)
    cost = pairs.columns(np.array([0, 1]))(np.array([2])) * pairs.scale
    np.testing.assert_allclose(cost, [[1.0, 2.0**2 + 4.0**2]])


def test_eq_09_the_plan_of_two_rows_a_side():
    # exp(-1 / epsilon) = 1/2, so the kernel is [[1, 1/2], [1/2, 1]]; scaled to margins of 1/2 it is this:
    result = sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), np.ones(2), epsilon=1 / np.log(2))
    np.testing.assert_allclose(result.plan(), [[1 / 3, 1 / 6], [1 / 6, 1 / 3]], rtol=1e-6)


def test_eq_10_every_column_is_normalised():
    shares = given_plan([[1, 6], [3, 2]]).class_shares(np.array([0, 1]), 2)
    np.testing.assert_allclose(shares, [[1 / 4, 3 / 4], [6 / 8, 2 / 8]])


def test_eq_11_a_class_has_the_sum_of_its_rows():
    shares = given_plan([[1.0], [2.0], [5.0]]).class_shares(np.array([0, 0, 1]), 3)
    np.testing.assert_allclose(shares, [[3 / 8, 5 / 8, 0.0]])


def test_eq_12_certainty_is_one_less_the_normalised_entropy():
    shares = np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_allclose(certainty(shares), [1 - 1 / 2, 1.0, 0.0])  # entropies 1, 0 and 2 bits of 2
    assert certainty(np.array([[1.0], [1.0]])).tolist() == [1.0, 1.0]  # one class: nothing to be uncertain about


def test_eq_13_a_row_gets_its_most_probable_class():
    model = PaperOTP(epsilon=0.05, alpha=0.0).fit([[0.0], [1.0], [0.1], [0.8]], ["a", "b", None, None])
    assert model.transduction_.tolist() == ["a", "b", "a", "b"]
    assert (model.label_distributions_.argmax(axis=1) == [0, 1, 0, 1]).all()


@pytest.mark.filterwarnings("ignore:y holds -1 and 1 only")
@settings(deadline=None)
@given(n_rows=st.integers(3, 30), n_labelled=st.integers(2, 10), seed=st.integers(0, 1000), alpha=st.floats(0, 1))
def test_eq_14_every_round_labels_a_row_and_no_row_is_lost(n_rows, n_labelled, seed, alpha):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_rows, 2)), rng.integers(0, 3, n_rows)
    y[min(n_labelled, n_rows - 1) :] = -1
    model = PaperOTP(alpha=alpha).fit(X, y)
    m, n = int((y != -1).sum()), int((y == -1).sum())
    for round_ in model.rounds_:
        assert (round_.n_labeled, round_.n_unlabeled) == (m, n)
        assert len(round_.rows) >= 1
        assert m + n == n_rows
        m, n = m + len(round_.rows), n - len(round_.rows)
    assert n == 0


def test_eq_15_when_no_row_is_certain_enough_the_most_certain_ones_are_labelled_ties_together():
    # rows at 0.3 and 0.7 mirror each other and are equally certain; the one in the middle is not certain at all
    model = PaperOTP(epsilon=1.0, alpha=0.99).fit([[0.0], [1.0], [0.3], [0.7], [0.5]], [0, 1, -1, -1, -1])
    first = model.rounds_[0]
    assert sorted(first.rows) == [2, 3]
    assert first.lowered
    assert first.threshold == pytest.approx(model.certainty_[2])
    assert first.threshold < 0.99
    assert model.transduction_.tolist()[:4] == [0, 1, 0, 1]


def test_eq_15_alpha_is_restored_in_the_next_round():
    X, truth = load_iris(return_X_y=True)
    labelled, _ = train_test_split(np.arange(150), train_size=0.35, stratify=truth, random_state=0)
    y = np.full(150, -1)
    y[labelled] = truth[labelled]
    rounds = PaperOTP(epsilon=0.016, alpha=0.9).fit(X, y).rounds_
    lowered = [round_.lowered for round_ in rounds]
    assert any(before and not after for before, after in pairwise(lowered))
    assert all(round_.threshold == 0.9 for round_ in rounds if not round_.lowered)
    assert all(round_.threshold <= 0.9 for round_ in rounds if round_.lowered)


def test_algorithm_1_can_be_run_round_by_round_and_left():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    codes = np.where(np.arange(40) < 6, np.arange(40) % 2, -1)
    cost = RowCost(EuclideanCost(rows), np.arange(6, 40), np.arange(6))
    run = RowLevelRounds(cost, codes, np.ones(40), 2, epsilon=0.1, alpha=0.95)
    rounds = iter(run)
    first = next(rounds)
    assert (run.round[first.rows] == 1).all()
    assert (run.codes[first.rows] >= 0).all()
    assert (run.codes == -1).sum() == 34 - len(first.rows)
