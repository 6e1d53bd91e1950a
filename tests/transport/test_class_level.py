"""Transport at class level, against Sinkhorn's iteration, a general minimiser and linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp, softmax

from otprop.transport.class_level import owed_masses, solve_classes
from otprop.transport.class_solver import RELAXED
from tests.transport.problems import class_problem, missed, shipped


def sinkhorn_shares(logits, q, strength, b, n_iter):
    """The textbook: both potentials in turn, that of the classes shrunk by the strength."""
    h = np.zeros(len(q))
    for _ in range(n_iter):
        g = np.log(b) - logsumexp(h + logits, axis=1)
        h = strength * (np.log(q) - logsumexp(g[:, None] + logits, axis=0))
    return softmax(h + logits, axis=1)


def most_shipped(logits, q, b):
    """The largest mass that can be shipped within both marginals, by linear programming."""
    rows, classes = np.nonzero(logits > -np.inf)
    limits = np.vstack([rows == j for j in range(len(b))] + [classes == k for k in range(len(q))])
    return -linprog(-np.ones(len(rows)), A_ub=limits.astype(float), b_ub=np.concatenate([b, q])).fun


# What the plan is


@pytest.mark.parametrize("weights", ["uniform", "uneven"])
@pytest.mark.parametrize("strength", [0.1, 0.5, 0.9, 0.99, 1.0])
def test_the_plan_is_the_fixed_point_of_sinkhorns_shrunk_iteration(strength, weights):
    logits, q, b = class_problem(30, 4, scale=1.5, weights=weights)
    transport = solve_classes(logits, q, strength, row_masses=b)
    assert transport.converged
    expected = sinkhorn_shares(logits, q, strength, b, n_iter=1500)
    np.testing.assert_allclose(transport.shares(logits), expected, atol=1e-8)


@pytest.mark.parametrize("strength", [0.3, 0.8])
def test_the_potentials_minimise_the_dual(strength):
    logits, q, b = class_problem(40, 4, weights="uneven")
    rho = strength / (1 - strength)

    def dual(h):
        value = b @ logsumexp(h + logits, axis=1) + rho * q @ np.exp(-h / rho)
        return value, b @ softmax(h + logits, axis=1) - q * np.exp(-h / rho)

    best = minimize(dual, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(solve_classes(logits, q, strength, row_masses=b).h, best.x, atol=1e-6)


def test_the_plan_minimises_cost_less_entropy_plus_penalty():
    logits, q, b = class_problem(30, 4)
    rho = 0.7 / 0.3
    shares = solve_classes(logits, q, 0.7).shares(logits)

    def primal(shares):
        m = b @ shares
        return b @ (shares * (np.log(shares) - logits)).sum(axis=1) + rho * m @ np.log(m / q)

    rng = np.random.default_rng(1)
    for size in (1e-1, 1e-2, 1e-3):
        others = shares * np.exp(size * rng.normal(size=shares.shape))
        assert primal(others / others.sum(axis=1, keepdims=True)) > primal(shares)


def test_strength_zero_is_the_kernel_vote():
    logits, q, b = class_problem(50, 4, holes=0.2, seed=3)
    transport = solve_classes(logits, q, 0.0)
    assert transport.converged
    assert transport.iterations == 0
    assert not transport.h.any()
    reached = transport.reached(logits)
    np.testing.assert_allclose(transport.shares(logits)[reached], softmax(logits[reached], axis=1), atol=1e-15)
    np.testing.assert_allclose(transport.class_masses, shipped(transport, logits, b), atol=1e-15)


@pytest.mark.parametrize("weights", ["uniform", "uneven"])
def test_strength_one_ships_exactly_what_is_asked(weights):
    logits, q, b = class_problem(200, 7, scale=8.0, weights=weights)
    transport = solve_classes(logits, q, 1.0, row_masses=b)
    assert transport.converged
    assert transport.feasible
    np.testing.assert_allclose(b @ transport.shares(logits), q, atol=1e-9)
    assert q @ transport.h == pytest.approx(0.0, abs=1e-9)


def test_between_the_two_a_class_ships_its_share_times_a_power_of_its_potential():
    logits, q, b = class_problem(100, 5)
    transport = solve_classes(logits, q, 0.6, tol=1e-13)
    np.testing.assert_allclose(b @ transport.shares(logits), q * np.exp(-transport.h / 1.5), rtol=1e-9)


def test_the_stronger_the_nearer_to_what_is_asked():
    logits, q, b = class_problem(80, 6, scale=6.0)
    divergence = []
    for strength in (0.0, 1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 0.999999):
        m = shipped(solve_classes(logits, q, strength), logits, b)
        divergence.append(m @ np.log(m / q))
    assert (np.diff(divergence) < 0).all()
    assert 0 <= divergence[-1] < 1e-9


def test_new_rows_are_answered_for_with_the_same_potentials():
    logits, q, _ = class_problem(50, 4)
    transport = solve_classes(logits, q, 0.5)
    new = np.random.default_rng(9).normal(size=(3, 4))
    np.testing.assert_allclose(transport.shares(new), softmax(new + transport.h, axis=1))


def test_a_class_without_mass_still_votes_at_strength_zero():
    logits, q, _ = class_problem(20, 3)
    q[1] = 0.0
    np.testing.assert_allclose(solve_classes(logits, q, 0.0).shares(logits), softmax(logits, axis=1))


@pytest.mark.parametrize("strength", [0.2, 0.5, 0.9])
def test_the_potentials_refer_to_all_masses_where_a_class_reaches_no_row(strength):
    logits, q, b = class_problem(30, 4, weights="uneven")
    logits[:, 3] = -np.inf
    transport = solve_classes(logits, q, strength, row_masses=3 * b, tol=1e-13)
    assert transport.converged
    np.testing.assert_allclose(transport.class_masses.sum(), 3.0)
    asked = q[:3] * np.exp(-transport.h[:3] * (1 - strength) / strength)
    np.testing.assert_allclose(transport.class_masses[:3] / 3.0, asked, rtol=1e-9)


# What it promises


def test_single_precision_logits_are_solved_in_double_precision():
    logits, q, _ = class_problem(100, 5)
    single = logits.astype(np.float32)
    ours, theirs = (solve_classes(values, q, 1.0) for values in (single, single.astype(np.float64)))
    assert ours.shares(single).dtype == np.float64
    np.testing.assert_array_equal(ours.h, theirs.h)


def test_masses_may_come_in_any_unit():
    logits, q, b = class_problem(40, 4, weights="uneven")
    plain = solve_classes(logits, q, 0.7, row_masses=b)
    for unit in (1e-300, 1e300):
        other = solve_classes(logits, q * unit, 0.7, row_masses=b * unit)
        np.testing.assert_allclose(other.h, plain.h, rtol=1e-9)
        np.testing.assert_allclose(other.class_masses, plain.class_masses * unit, rtol=1e-9)


# Where it could go wrong


@pytest.mark.parametrize("strength", [1e-100, 1e-9, 0.5, 0.999999, 1.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e6])
def test_any_range_of_logits_and_any_strength_is_solved(scale, strength):
    logits, q, b = class_problem(60, 8, scale=scale, weights="uneven")
    transport = solve_classes(logits, q, strength, row_masses=b)
    assert transport.converged
    assert missed(transport, logits, q, b) <= 1e-9


@pytest.mark.parametrize("strength", [0.2, 0.9, 1.0])
def test_extremely_unbalanced_masses_are_shipped(strength):
    logits, _, _ = class_problem(50, 4)
    q, b = np.array([1.0, 1e-6, 1e-12, 1e-300]), np.full(50, 1 / 50)
    transport = solve_classes(logits, q, strength)
    assert transport.converged
    assert np.isfinite(transport.h).all()
    np.testing.assert_allclose(
        shipped(transport, logits, b)[:3], q[:3] * np.exp(-transport.h[:3] * (1 / strength - 1)), rtol=1e-3
    )


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_a_class_without_mass_gets_nothing(strength):
    logits, q, _ = class_problem(30, 4)
    q[2] = 0.0
    transport = solve_classes(logits, q, strength)
    assert transport.converged
    assert transport.h[2] == -np.inf
    assert not transport.shares(logits)[:, 2].any()
    rest = solve_classes(np.delete(logits, 2, axis=1), np.delete(q, 2), strength)
    np.testing.assert_allclose(np.delete(transport.shares(logits), 2, axis=1), rest.shares(logits[:, [0, 1, 3]]))


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_rows_that_no_class_reaches_get_the_prior_and_count_for_nothing(strength):
    logits, q, _ = class_problem(30, 3)
    with_lost = np.vstack([logits, np.full((5, 3), -np.inf)])
    transport, without = solve_classes(with_lost, q, strength), solve_classes(logits, q, strength)
    assert transport.converged
    np.testing.assert_array_equal(transport.reached(with_lost), np.arange(35) < 30)
    np.testing.assert_allclose(transport.shares(with_lost)[30:], np.tile(q, (5, 1)))
    np.testing.assert_allclose(transport.h, without.h, atol=1e-12)
    assert transport.class_masses.sum() == pytest.approx(30 / 35)


def test_a_row_reached_only_by_a_class_without_mass_is_not_reached():
    logits = np.array([[0.0, 0.0, -np.inf], [-np.inf, -np.inf, 0.0]])
    transport = solve_classes(logits, np.array([1.0, 3.0, 0.0]), 1.0)
    assert transport.feasible
    assert transport.converged
    np.testing.assert_array_equal(transport.reached(logits), [True, False])
    np.testing.assert_allclose(transport.shares(logits), [[0.25, 0.75, 0.0]] * 2, atol=1e-9)


def test_a_class_that_reaches_no_row_is_left_out():
    logits, q, _ = class_problem(30, 4)
    without = solve_classes(logits[:, :3], q[:3], 0.5)
    logits[:, 3] = -np.inf
    transport = solve_classes(logits, q, 0.5)
    assert transport.converged
    assert transport.h[3] == 0
    assert transport.class_masses[3] == 0
    np.testing.assert_allclose(transport.shares(logits)[:, :3], without.shares(logits[:, :3]), atol=1e-9)
    assert not solve_classes(logits, q, 1.0).feasible


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_one_class_takes_all(strength):
    transport = solve_classes(np.array([[3.0], [-1e6], [-np.inf]]), np.ones(1), strength)
    assert transport.converged
    np.testing.assert_array_equal(transport.shares(np.array([[3.0], [-1e6], [-np.inf]])), np.ones((3, 1)))


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.999999, 1.0])
def test_one_row_takes_what_it_is_given(strength):
    logits, q = np.array([[5.0, 0.0, -5.0]]), np.array([0.2, 0.3, 0.5])
    transport = solve_classes(logits, q, strength)
    assert transport.converged
    if strength == 1:
        np.testing.assert_allclose(transport.shares(logits)[0], q, atol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_rows", [0, 4])
def test_without_rows_or_where_none_is_reached_there_is_nothing_to_ship(n_rows, strength):
    logits = np.full((n_rows, 3), -np.inf)
    transport = solve_classes(logits, np.array([2.0, 2.0, 0.0]), strength)
    assert transport.converged
    assert transport.feasible
    assert not transport.class_masses.any()
    assert not transport.reached(logits).any()
    np.testing.assert_allclose(transport.shares(logits), np.tile([0.5, 0.5, 0.0], (n_rows, 1)))


def test_a_thousand_classes_are_solved():
    logits, q, b = class_problem(50, 1000)
    transport = solve_classes(logits, q, 0.5)
    assert transport.converged
    assert missed(transport, logits, q, b) <= 1e-9


@settings(deadline=None)
@given(
    n_rows=st.integers(1, 25),
    n_classes=st.integers(1, 6),
    seed=st.integers(0, 10_000),
    exponent=st.floats(-3, 6),
    holes=st.sampled_from([0.0, 0.2, 0.7]),
    weights=st.sampled_from(["uniform", "uneven"]),
    strength=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.999999, 1.0])),
)
def test_any_problem_is_solved(n_rows, n_classes, seed, exponent, holes, weights, strength):
    logits, q, b = class_problem(n_rows, n_classes, seed, 10.0**exponent, weights, holes)
    transport = solve_classes(logits, q, strength, row_masses=b)
    shares = transport.shares(logits)
    assert transport.converged
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(transport.class_masses, shipped(transport, logits, b), atol=1e-9)


EXTREME = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([-np.inf, 0.0, -0.0, 1e-300, 1e6, -1e6, -745.2]))


@settings(deadline=None)
@given(
    data=st.data(),
    n_rows=st.integers(0, 6),
    n_classes=st.integers(1, 4),
    strength=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 5e-324, 1 - 2**-53, 1.0])),
)
def test_nothing_finite_makes_it_fail(data, n_rows, n_classes, strength):
    logits = np.array(data.draw(st.lists(EXTREME, min_size=n_rows * n_classes, max_size=n_rows * n_classes)))
    logits = logits.reshape(n_rows, n_classes)
    mass = st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 1e-300, 1.0]))
    q = np.array(data.draw(st.lists(mass, min_size=n_classes, max_size=n_classes)))
    q[0] = q[0] or 1.0
    b = np.array(data.draw(st.lists(st.sampled_from([1e-300, 1.0, 1e300]), min_size=n_rows, max_size=n_rows)))
    transport = solve_classes(logits, q, strength, row_masses=b)
    shares = transport.shares(logits)
    assert not np.isnan(transport.h).any()
    assert np.isfinite(transport.class_masses).all()
    assert np.isfinite([transport.source_error, transport.target_error]).all()
    assert transport.converged == (max(transport.source_error, transport.target_error) <= 1e-9)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)


# What cannot be


def test_components_with_other_masses_than_their_classes_are_not_feasible():
    logits = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    transport = solve_classes(logits, np.array([0.9, 0.1]), 1.0)
    assert not transport.feasible
    assert transport.converged
    assert transport.strength == RELAXED
    np.testing.assert_allclose(transport.shares(logits), np.eye(2), atol=1e-12)
    np.testing.assert_allclose(transport.class_masses, 0.5)


def test_components_with_the_masses_of_their_classes_are_feasible():
    logits = np.array([[0.0, -1.0, -np.inf], [2.0, 0.0, -np.inf], [-np.inf, -np.inf, 7.0]])
    transport = solve_classes(logits, np.array([1.0, 1.0, 1.0]), 1.0)
    assert transport.feasible
    assert transport.converged
    np.testing.assert_allclose(transport.shares(logits).sum(axis=0), 1.0, atol=1e-8)


def test_classes_that_only_together_have_more_mass_than_their_rows_are_infeasible():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40, 3))
    logits[:30, 2] = logits[30:, :2] = -np.inf
    transport = solve_classes(logits, np.array([0.5, 0.4, 0.1]), 1.0)
    assert not transport.feasible
    assert transport.strength == RELAXED
    assert transport.converged


def test_a_class_that_must_ship_all_that_its_rows_can_take_leaves_none_for_others():
    logits = np.array([[0.0, 9.0, 9.0], [-np.inf, 0.0, 9.0], [-np.inf, -np.inf, 0.0]])
    transport = solve_classes(logits, np.ones(3), 1.0)
    assert transport.feasible
    assert transport.converged
    np.testing.assert_allclose(transport.shares(logits), np.eye(3), atol=1e-8)


def test_where_the_masses_are_not_feasible_as_much_is_shipped_as_can_be():
    logits = np.array([[0.0, -np.inf, 0.0], [-np.inf, 0.0, 0.0], [-np.inf, 0.0, 0.0], [-np.inf, 0.0, 0.0]])
    q, b = np.array([0.6, 0.2, 0.2]), np.full(4, 0.25)
    transport = solve_classes(logits, q, 1.0)
    assert not transport.feasible
    assert np.minimum(transport.class_masses, q).sum() == pytest.approx(most_shipped(logits, q, b), abs=1e-2)


@settings(deadline=None)
@given(
    n_rows=st.integers(1, 8),
    n_classes=st.integers(1, 5),
    seed=st.integers(0, 100_000),
    holes=st.sampled_from([0.3, 0.6, 0.8]),
    moved=st.booleans(),
)
def test_feasibility_is_what_linear_programming_says(n_rows, n_classes, seed, holes, moved):
    rng = np.random.default_rng(seed)
    logits = 10 ** rng.uniform(-1, 3) * rng.normal(size=(n_rows, n_classes))
    logits[rng.random(logits.shape) < holes] = -np.inf
    plan = rng.integers(0, 3, logits.shape) * (rng.random(logits.shape) < 0.7) * (logits > -np.inf)
    b, q = plan.sum(axis=1), plan.sum(axis=0)  # whole numbers: often as much as can be, without room to spare
    if moved:
        q = rng.permutation(q)
    logits, b = logits[b > 0], b[b > 0]
    reached = (logits[:, q > 0] > -np.inf).any(axis=1)
    if not reached.any():
        return
    logits, b = logits[reached], b[reached] / b[reached].sum()
    transport = solve_classes(logits, q, 1.0, row_masses=b)
    assert transport.converged
    assert transport.feasible == (most_shipped(logits, q / q.sum(), b) > 1 - 1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.999999])
def test_below_strength_one_everything_is_feasible(strength):
    transport = solve_classes(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.array([0.9, 0.1]), strength)
    assert transport.feasible
    assert transport.converged


# The mass ledger


def test_a_class_owes_its_share_of_all_rows_less_what_it_was_given():
    owed = owed_masses(np.array([0.5, 0.3, 0.2]), np.array([30, 10, 10]), n_left=50)
    np.testing.assert_allclose(owed, [20.0, 20.0, 10.0])


def test_a_class_that_was_given_too_much_still_ships_a_little():
    owed = owed_masses(np.array([0.5, 0.5]), np.array([90, 0]), n_left=10)
    assert owed.sum() == pytest.approx(10)
    assert owed[0] / owed[1] == pytest.approx(0.02 * 0.5 * 10 / 50)
    np.testing.assert_allclose(owed_masses(np.array([0.5, 0.5]), np.array([90, 0]), 10, floor=0.0), [0.0, 10.0])


def test_nothing_is_owed_when_no_row_is_left():
    np.testing.assert_array_equal(owed_masses(np.array([0.5, 0.5]), np.array([3, 4]), 0), [0.0, 0.0])


@settings(deadline=None)
@given(
    prior=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(any),
    labeled=st.integers(0, 1000),
    left=st.integers(0, 1000),
    seed=st.integers(0, 1000),
    floor=st.sampled_from([0.0, 0.02, 1.0]),
)
def test_what_is_owed_is_never_negative_and_sums_to_the_rows_left(prior, labeled, left, seed, floor):
    n_labeled = np.random.default_rng(seed).multinomial(labeled, np.full(len(prior), 1 / len(prior)))
    owed = owed_masses(np.array(prior), n_labeled, left, floor)
    assert (owed >= 0).all()
    assert owed.sum() == pytest.approx(left)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.zeros((3, 3))}, r"logits has shape \(3, 3\), expected \(n_rows, 2\)"),
        ({"logits": np.zeros(3)}, r"logits has shape \(3,\)"),
        ({"logits": np.array([[0.0, np.nan]])}, "logits contains NaN or plus infinity"),
        ({"logits": np.array([[0.0, np.inf]])}, "logits contains NaN or plus infinity"),
        ({"class_masses": np.array([1.0, -1.0])}, "class_masses must be finite and not negative"),
        ({"class_masses": np.array([np.nan, 1.0])}, "class_masses must be finite and not negative"),
        ({"class_masses": np.zeros(2)}, "class_masses must be finite and not negative, with a positive sum"),
        ({"strength": 1.5}, "strength must be a finite number >= 0 and <= 1"),
        ({"row_masses": np.zeros(3)}, "row_masses must be positive and finite"),
        ({"row_masses": np.ones(2)}, "row_masses must be positive and finite, one for each of the 3 rows"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"start": np.zeros(3)}, "start must hold a potential for each of the 2 classes"),
        ({"start": np.array([0.0, np.nan])}, "start must hold a potential for each of the 2 classes"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"logits": np.zeros((3, 2)), "class_masses": np.ones(2), "strength": 0.5} | change
    with pytest.raises(ValueError, match=message):
        solve_classes(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": np.array([0.5, -0.5])}, "prior must be finite and not negative"),
        ({"n_labeled": np.array([1.0])}, "n_labeled must be finite and not negative, one number for each of the 2"),
        ({"n_left": -1}, "n_left must be a finite number >= 0"),
        ({"floor": -0.1}, "floor must be a finite number >= 0"),
    ],
)
def test_bad_arguments_of_the_ledger_are_named(change, message):
    arguments = {"prior": np.ones(2), "n_labeled": np.ones(2), "n_left": 3} | change
    with pytest.raises(ValueError, match=message):
        owed_masses(**arguments)
