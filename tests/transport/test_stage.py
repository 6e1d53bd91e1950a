"""Both ways of solving the Newton system, against a dense solve."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from otprop.transport.stage import conjugate_gradient, factorized


def newton_system(seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    plan = rng.random((30, 12)) * (rng.random((30, 12)) < density)
    plan[:, 0] += 0.01  # one source reaches every target: the graph is connected
    plan /= plan.sum()
    r, b = plan.sum(axis=0), plan.sum(axis=1)
    hessian = np.diag(r) - plan.T @ np.diag(1 / b) @ plan
    gradient = rng.normal(size=12) * r
    gradient -= gradient.sum() * r / r.sum()
    return plan, r, b, hessian, gradient


def assert_solves(step, hessian, gradient, rtol):
    assert np.linalg.norm(hessian @ step - gradient) <= rtol * np.linalg.norm(gradient)


def test_conjugate_gradients_solve_the_singular_system_on_gradients_that_sum_to_zero():
    _, r, _, hessian, gradient = newton_system()
    step, good = conjugate_gradient(lambda v: hessian @ v, r, gradient - gradient.mean(), rtol=1e-10)
    assert good
    assert_solves(step, hessian, gradient - gradient.mean(), 1e-8)


def test_the_factorisation_solves_the_same_system():
    plan, r, b, hessian, gradient = newton_system(density=0.2)
    gradient -= gradient.mean()
    step = factorized(sp.csr_array(plan), r, b, gradient)
    assert step is not None
    assert_solves(step, hessian, gradient, 1e-6)


def test_an_unfinished_direction_still_climbs():
    _, r, _, hessian, gradient = newton_system()
    calls = []

    def count(v):
        calls.append(1)
        return hessian @ v

    step, _ = conjugate_gradient(count, r, gradient - gradient.mean(), rtol=0.5)
    assert gradient @ step > 0
    assert len(calls) < 12


def test_at_the_top_there_is_no_step():
    _, r, _, hessian, _ = newton_system()
    step, good = conjugate_gradient(lambda v: hessian @ v, r, np.zeros(12), rtol=0.1)
    assert good
    assert not step.any()
