"""Newton directions for the semi-dual of entropic optimal transport.

With the potentials g eliminated, the dual is a concave function of f alone. At a plan P of shape (len(b), len(a))
whose rows sum to b and whose columns sum to r, its gradient is ``a - r`` and minus its Hessian, in units of epsilon, is
``H = diag(r) - P' diag(1/b) P``: a graph Laplacian, singular only for constants. A product with H costs as much as a
Sinkhorn iteration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

MAX_CG_STEPS = 100


def conjugate_gradient(
    hessian: Callable[[np.ndarray], np.ndarray], r: np.ndarray, gradient: np.ndarray, rtol: float
) -> tuple[np.ndarray, bool]:
    """Solve ``H d = gradient`` to the relative residual `rtol`, preconditioned by ``diag(r)``.

    Returns the last iterate, which is always an ascent direction, and whether it reached `rtol`.
    """
    step = np.zeros_like(gradient)
    residual = gradient - gradient.mean()
    scaled = _without_constant(residual / r, r)
    direction = scaled.copy()
    size = first = float(residual @ scaled)
    if size <= 0:
        return step, True
    for _ in range(MAX_CG_STEPS):
        image = hessian(direction)
        curvature = float(direction @ image)
        if curvature <= 1e-15 * float(direction @ (r * direction)):
            return (step if step.any() else direction), False
        step += size / curvature * direction
        residual = residual - size / curvature * image
        scaled = _without_constant(residual / r, r)
        new_size = float(residual @ scaled)
        if new_size <= rtol**2 * first:
            return step, True
        direction = scaled + new_size / size * direction
        size = new_size
    return step, False


def factorized(plan: sp.csr_array, r: np.ndarray, b: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
    """Solve ``H d = gradient`` by a sparse factorisation of the joint system of both potentials.

    At small epsilon the plan is nearly a forest, on which conjugate gradients converge slowly and elimination has no
    fill-in. Returns None if the factorisation fails.
    """
    ground = 1.0 + 1e-13  # makes the system regular: for constants, and for components that exchange no mass
    system = sp.block_array([[sp.diags_array(r * ground), plan.T], [plan, sp.diags_array(b * ground)]], format="csc")
    try:
        factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        return None
    step = factor.solve(np.concatenate([gradient, np.zeros(len(b))]))[: len(r)]
    return step if np.isfinite(step).all() else None


def _without_constant(vector: np.ndarray, r: np.ndarray) -> np.ndarray:
    return vector - float(vector @ r) / float(r.sum())
