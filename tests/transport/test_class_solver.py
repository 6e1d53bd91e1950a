"""The solver of class-level transport: its dual, its starts and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from otprop.transport.class_level import solve_classes
from otprop.transport.class_solver import ClassDual
from otprop.transport.row_sums import LocalRows
from tests.transport.problems import class_problem, missed, shipped


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("strength", [0.3, 0.9, 1.0])
def test_the_dual_has_the_value_and_the_gradient_of_its_definition(strength, temperature):
    logits, q, b = class_problem(40, 4, weights="uneven")
    rho = strength / (1 - strength) / temperature if strength < 1 else np.inf
    dual = ClassDual(LocalRows(logits, b), 1.0, np.ones(4, dtype=bool), q, 1.0, strength)
    dual = dual.at_temperature(temperature)
    h = np.random.default_rng(2).normal(size=4)

    def value(h):
        penalty = rho * logsumexp(-h / rho, b=q) if strength < 1 else -q @ h
        return b @ logsumexp(h + logits / temperature, axis=1) + penalty

    point = dual.evaluate(h)
    assert point.value == pytest.approx(value(h), rel=1e-12)
    slopes = [(value(h + step) - value(h - step)) / 2e-5 for step in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(point.gradient, slopes, atol=1e-8)
    shares = softmax(h + logits / temperature, axis=1)
    np.testing.assert_allclose(point.overlap, (shares * b[:, None]).T @ shares, atol=1e-12)
    np.testing.assert_allclose(np.exp(point.log_ratio), np.exp(point.log_w) / point.m)
    assert np.exp(point.log_w).sum() == pytest.approx(1.0)


def test_reported_errors_are_those_of_the_plan_however_far_it_got():
    logits, q, b = class_problem(70, 6, scale=40.0, weights="uneven")
    for strength in (0.5, 0.999, 1.0):
        for max_iter in (1, 2, 4, 100):
            transport = solve_classes(logits, q, strength, row_masses=b, max_iter=max_iter)
            assert transport.iterations <= max_iter
            assert transport.source_error == pytest.approx(missed(transport, logits, q, b), rel=1e-6, abs=1e-12)
            assert transport.target_error < 1e-12
            assert transport.converged == (transport.source_error <= 1e-9)
            np.testing.assert_allclose(transport.class_masses, shipped(transport, logits, b), atol=1e-12)
        assert transport.converged


def test_a_warm_start_takes_fewer_steps():
    logits, q, _ = class_problem(500, 8, scale=6.0)
    cold = solve_classes(logits, q, 0.9)
    again = solve_classes(logits, q, 0.9, start=cold.h)
    near = solve_classes(logits, q * np.linspace(0.99, 1.01, 8), 0.9, start=cold.h)
    assert again.iterations == 0
    assert near.iterations < cold.iterations
    np.testing.assert_allclose(again.shares(logits), cold.shares(logits), atol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.4, 1.0])
def test_a_start_from_nonsense_gets_there_too(strength):
    logits, q, _ = class_problem(100, 4)
    transport = solve_classes(logits, q, strength, start=np.array([1e6, -np.inf, np.inf, -1e3]))
    assert transport.converged
    np.testing.assert_allclose(transport.shares(logits), solve_classes(logits, q, strength).shares(logits), atol=1e-8)
