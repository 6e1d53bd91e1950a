"""The solver of Eq. 9, against POT where POT converges and against optimality itself where it does not."""

from __future__ import annotations

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.geometry.cost import ArrayCost, RowCost
from otprop.geometry.pairwise import EuclideanCost
from otprop.transport import sinkhorn
from otprop.transport.sinkhorn import solve
from tests.transport.problems import marginal_error, row_problem


@pytest.mark.parametrize("weights", ["uniform", "uneven"])
@pytest.mark.parametrize("epsilon_share", [0.05, 0.3, 2.0])
def test_the_plan_is_pots_where_pot_converges(epsilon_share, weights):
    cost, a, b = row_problem(30, 50, weights=weights)
    epsilon = epsilon_share * np.median(cost)
    theirs = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=50_000, stopThr=1e-13)
    ours = sinkhorn(cost, a, b, epsilon, tol=1e-11)
    assert ours.converged
    np.testing.assert_allclose(ours.plan(), theirs, rtol=0, atol=1e-8 / cost.size)


@pytest.mark.parametrize("weights", ["uniform", "uneven"])
@pytest.mark.parametrize("kind", ["normal", "clusters", "duplicates", "line"])
@pytest.mark.parametrize("epsilon_share", [1e-4, 1e-3, 1e-2, 1.0, 1e3])
def test_the_default_tolerance_is_reached_from_a_ten_thousandth_to_a_thousand_times_the_median_cost(
    epsilon_share, kind, weights
):
    cost, a, b = row_problem(40, 70, kind=kind, weights=weights)
    result = sinkhorn(cost, a, b, epsilon_share * np.median(cost))
    assert result.converged
    assert max(result.source_error, result.target_error) <= 1e-6
    assert marginal_error(result.plan(), a, b) <= 1e-6


def test_the_primal_and_dual_values_meet_where_pot_does_not_converge():
    cost, a, b = row_problem(60, 60, weights="uneven")
    epsilon = 1e-4 * np.median(cost)
    result = sinkhorn(cost, a, b, epsilon)
    plan = result.plan()
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(plan * (np.log(plan) - 1))
    primal = (plan * cost).sum() - epsilon * entropy
    dual = a @ result.f + b @ result.g - epsilon * plan.sum()
    assert result.converged
    assert primal == pytest.approx(dual, rel=1e-5)


def test_the_cost_approaches_the_exact_optimum_as_epsilon_vanishes():
    cost, a, b = row_problem(40, 60, weights="uneven")
    exact = ot.emd2(a, b, cost)
    excess = []
    for share in (1e-1, 1e-2, 1e-3, 1e-4):
        result = sinkhorn(cost, a, b, share * np.median(cost))
        assert result.converged
        excess.append(float((result.plan() * cost).sum()) - exact)
    assert excess[0] > excess[1] > excess[2] > 0
    assert abs(excess[3]) < 1e-4 * exact


def test_equal_sizes_and_uniform_weights_give_a_permutation_at_small_epsilon():
    cost, a, b = row_problem(25, 25)
    plan = sinkhorn(cost, a, b, 1e-4 * np.median(cost)).plan()
    np.testing.assert_allclose(np.sort(plan, axis=1)[:, -1], 1 / 25, rtol=1e-3)
    assert len(set(plan.argmax(axis=1))) == 25


@pytest.mark.parametrize("epsilon", [1e-300, 1e-40, 1e-15])
def test_far_below_the_range_the_answer_is_finite_and_says_that_it_did_not_converge(epsilon):
    cost, a, b = row_problem(20, 30, weights="uneven")
    result = sinkhorn(cost, a, b, epsilon, max_iter=2000)
    assert np.isfinite(result.f).all()
    assert np.isfinite(result.g).all()
    assert np.isfinite(result.plan()).all()
    assert result.converged == (marginal_error(result.plan(), a, b) <= 1e-6)


def test_at_huge_epsilon_mass_is_spread_as_the_weights_say():
    cost, a, b = row_problem(20, 30, weights="uneven")
    np.testing.assert_allclose(sinkhorn(cost, a, b, 1e9).plan(), np.outer(a, b), rtol=1e-6)


def test_reported_errors_are_those_of_the_plan():
    cost, a, b = row_problem(40, 70, kind="clusters", weights="uneven")
    for max_iter in (1, 5, 20, 20_000):
        result = sinkhorn(cost, a, b, 1e-3 * np.median(cost), max_iter=max_iter)
        plan = result.plan()
        assert result.source_error == pytest.approx(np.abs(plan.sum(axis=1) - a).sum(), rel=1e-3, abs=1e-9)
        assert result.target_error == pytest.approx(np.abs(plan.sum(axis=0) - b).sum(), abs=1e-9)
        assert result.converged == (result.source_error <= 1e-6)


def test_too_few_iterations_are_reported_and_not_exceeded_by_much():
    cost, a, b = row_problem(60, 90)
    result = sinkhorn(cost, a, b, 1e-4 * np.median(cost), max_iter=10)
    assert not result.converged
    assert result.iterations < 400


def test_starting_from_the_solution_costs_next_to_nothing():
    cost, a, b = row_problem(60, 90)
    epsilon = 1e-2 * np.median(cost)
    cold = sinkhorn(cost, a, b, epsilon)
    warm = sinkhorn(cost, a, b, epsilon, f=cold.f)
    assert warm.converged
    assert warm.iterations <= 10 < cold.iterations
    np.testing.assert_allclose(warm.plan(), cold.plan(), atol=1e-8)


def test_a_start_from_nonsense_still_converges():
    cost, a, b = row_problem(30, 40)
    start = np.random.default_rng(1).normal(size=30) * 1e6
    assert sinkhorn(cost, a, b, 1e-2 * np.median(cost), f=start).converged


@pytest.mark.parametrize("epsilon_share", [0.01, 1.0])
def test_costs_computed_in_blocks_give_the_same_answer_as_costs_in_memory(epsilon_share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    sources, targets = np.arange(80), np.arange(80, 700)
    stored = RowCost(EuclideanCost(X), targets, sources)
    computed = RowCost(EuclideanCost(X), targets, sources, memory_limit=0)
    assert stored.stored
    assert not computed.stored
    a, b = np.full(80, 1 / 80), np.full(620, 1 / 620)
    epsilon = epsilon_share * float(np.median(np.concatenate([block.ravel() for _, block in stored.blocks()])))
    first, second = (solve(cost, a, b, epsilon) for cost in (stored, computed))
    assert first.converged
    assert second.converged
    shift = (first.f - second.f).mean()
    np.testing.assert_allclose(first.f, second.f + shift, atol=1e-6 * epsilon * 80)


def test_one_source_or_one_target_is_solved_at_once():
    cost, a, b = row_problem(1, 7, weights="uneven")
    np.testing.assert_allclose(sinkhorn(cost, a, b, 0.1).plan(), [b], rtol=1e-9)
    np.testing.assert_allclose(sinkhorn(cost.T, b, a, 0.1).plan(), b[:, None], rtol=1e-5)


def test_weights_need_not_sum_to_one():
    cost, a, b = row_problem(5, 7, weights="uneven")
    np.testing.assert_allclose(sinkhorn(cost, 3 * a, 7 * b, 0.5).plan(), sinkhorn(cost, a, b, 0.5).plan(), rtol=1e-9)


@settings(deadline=None)
@given(
    n_sources=st.integers(1, 40),
    n_targets=st.integers(1, 40),
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["normal", "clusters", "duplicates", "line"]),
    weights=st.sampled_from(["uniform", "uneven"]),
    exponent=st.floats(-4, 3),
)
def test_any_problem_in_the_range_is_solved(n_sources, n_targets, seed, kind, weights, exponent):
    cost, a, b = row_problem(n_sources, n_targets, seed, kind, weights)
    median = np.median(cost)
    if median == 0:
        median = 1.0
    result = sinkhorn(cost, a, b, 10.0**exponent * median)
    assert result.converged
    assert marginal_error(result.plan(), a, b) <= 1e-6


def test_a_block_of_one_line_or_of_all_lines_is_the_same_to_the_solver():
    cost, a, b = row_problem(20, 50)
    lines = np.ascontiguousarray(cost.T)
    answers = [solve(ArrayCost(lines, block_bytes=size), a, b, 0.5) for size in (1, 2**20)]
    np.testing.assert_allclose(answers[0].f, answers[1].f, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"epsilon": np.nan}, "epsilon must be a finite number > 0"),
        ({"a": np.array([0.5, -0.5])}, "a must be positive"),
        ({"b": np.array([1.0, 0.0, 1.0])}, "b must be positive"),
        ({"a": np.ones(5)}, r"cost has shape \(2, 3\), expected .* \(5, 3\)"),
        ({"cost": np.full((2, 3), np.inf)}, "cost contains NaN or infinity"),
        ({"f": np.array([np.nan, 0.0])}, "f must hold 2 finite potentials, one for each entry of a"),
        ({"f": np.zeros(1)}, "f must hold 2 finite potentials, one for each entry of a"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"cost": np.ones((0, 3)), "a": np.ones(0)}, r"cost has shape \(0, 3\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"cost": np.ones((2, 3)), "a": np.ones(2), "b": np.ones(3), "epsilon": 1.0} | change
    with pytest.raises(ValueError, match=message):
        sinkhorn(**arguments)


def test_weights_that_differ_by_more_than_a_float_holds_are_solved():
    cost = np.random.default_rng(0).random((5, 8))
    result = sinkhorn(cost, np.array([1e-300, 1.0, 1e300, 1e8, 1e300]), np.ones(8), 0.1)
    assert result.converged
    np.testing.assert_allclose(result.plan().sum(axis=1), [0, 0, 0.5, 0, 0.5], atol=1e-6)
    again = sinkhorn(cost, np.ones(5), np.full(8, 1.7e308), 0.1)
    assert again.converged
    np.testing.assert_allclose(again.plan().sum(axis=0), np.full(8, 1 / 8), atol=1e-6)
