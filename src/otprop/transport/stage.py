"""Entropic transport at one epsilon, by Newton steps on its semi-dual.

The state is a kernel with absorbed potentials and the logarithms of the scalings of its columns, which start at zero.
With the potentials g eliminated, the dual is a concave function of f alone. At a plan P of shape (len(b), len(a))
whose rows sum to b and whose columns sum to r, its gradient is ``a - r`` and minus its Hessian, in units of epsilon, is
``H = diag(r) - P' diag(1/b) P``: a graph Laplacian, singular only for constants. A product with H costs as much as a
Sinkhorn iteration, and a few Newton steps replace thousands of them. A plain Sinkhorn step, which cannot fail, is taken
if an entry of a is far from its marginal or if a Newton step was rejected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from otprop.geometry.cost import Cost
from otprop.transport.kernel import Kernel, SparseKernel, build_kernel
from otprop.transport.result import TransportResult

MAX_CG_STEPS = 100
MAX_LOG_RATIO = 1.0  # log(a / r) above which a Sinkhorn step is taken first
INTERMEDIATE_LOG_RATIO = 1.0  # |log(a / r)| reached before the last stage
SMALL_SIZE = 2**16  # entries; smaller problems are solved to tol times SMALL_TOL_FACTOR where rounding allows it
SMALL_TOL_FACTOR = 1e-3
MAX_STEPS = 300
MAX_STALLED = 12  # steps without progress after which the stage stops
MIN_MARGINAL = 1e-100  # lower bound of r: products of its inverses stay finite


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


class Stage:
    """The potentials at one epsilon and the marginals of their plan.

    Attributes
    ----------
    f, g : ndarray, potentials of the marginals a and b, in units of the cost
    r : ndarray, the marginal of the plan that should equal a; the other one equals b
    error : float, L1 distance between `r` and a
    iterations : int
    """

    def __init__(
        self,
        cost: Cost,
        a: np.ndarray,
        b: np.ndarray,
        epsilon: float,
        f: np.ndarray,
        tol: float,
        kernel: Kernel | None = None,
    ) -> None:
        self.cost, self.a, self.b, self.epsilon, self.tol = cost, a, b, epsilon, tol
        self._products = 0  # of earlier kernels
        self.kernel = build_kernel(cost, f, epsilon, tol) if kernel is None else kernel
        self.kernel.products = 0
        self._move(*self._at((f - self.kernel.f) / epsilon))

    @property
    def f(self) -> np.ndarray:
        return self.kernel.f + self.epsilon * self._x

    @property
    def g(self) -> np.ndarray:
        return self.kernel.g + self.epsilon * np.log(self.b / self._sums)

    @property
    def iterations(self) -> int:
        return (self._products + self.kernel.products + 1) // 2

    @property
    def noise(self) -> float:
        """Bound on the rounding error of a marginal: from the kernel, and from potentials much larger than epsilon."""
        size = float(self.a @ np.abs(self.f)) + float(self.b @ np.abs(self.g))
        return self.kernel.noise + 2.0**-53 * size / self.epsilon

    def run(self, tol: float, max_iter: int, last: bool = True) -> None:
        """Step until the error of the marginal a is within `tol`, well within it in the last stage of a small problem.

        Before the last stage, each entry of `r` must also be near that of a in relative terms.
        """
        plain, best, stalled = False, np.inf, 0
        noise = self.noise
        small = len(self.a) * len(self.b) <= SMALL_SIZE and noise < tol * SMALL_TOL_FACTOR
        aim = max(tol * SMALL_TOL_FACTOR, 10 * noise) if last and small else tol - noise
        for _ in range(MAX_STEPS):
            log_ratio = np.log(self.a) - np.log(self.r)
            near = last or np.abs(log_ratio).max() <= INTERMEDIATE_LOG_RATIO
            best, stalled = (self.error, 0) if self.error < 0.9 * best else (best, stalled + 1)
            enough = near and (self.error <= aim or (stalled and self.error <= tol - noise))
            if enough or self.iterations >= max_iter or stalled > MAX_STALLED:
                return
            plain = (log_ratio.max() > MAX_LOG_RATIO and not plain) or not self._newton_step()
            if plain:
                self._sinkhorn_step()

    def result(self, tol: float, iterations: int) -> TransportResult:
        """The current state as a result; its errors include the bound on rounding errors."""
        noise = self.noise
        source = self.error + noise
        target = float(np.abs(self._sums * (self.b / self._sums) - self.b).sum()) + noise
        converged = max(source, target) <= tol
        return TransportResult(
            self.f, self.g, self.epsilon, source, target, iterations, converged, self.cost, self.kernel, self._scaling
        )

    def _absorb(self, f: np.ndarray) -> None:
        """Move to potentials `f`, freeing the old kernel before the new one is built."""
        self._products += self.kernel.products
        del self.kernel
        self.kernel = build_kernel(self.cost, f, self.epsilon, self.tol)
        self._move(*self._at(np.zeros(len(self.a))))

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The log scalings `x`, the sums ``K @ exp(x)`` and the marginal r that belong to them."""
        scaling = np.exp(x)
        sums, back = self.kernel.dot_and_back(scaling, lambda sums, rows: self.b[rows] / sums)
        return x, sums, np.maximum(scaling * back, MIN_MARGINAL)

    def _move(self, x: np.ndarray, sums: np.ndarray, r: np.ndarray) -> None:
        self._x, self._sums, self.r = x, sums, r
        self._scaling = np.exp(x)
        self.error = float(np.abs(self.a - r).sum())

    def _sinkhorn_step(self) -> None:
        """Meet the marginal a exactly, then b again; in the log domain where the scalings would become too large."""
        x = self._x + np.log(self.a / self.r)
        if np.ptp(x) <= self.kernel.max_log_scaling:
            self._move(*self._at(x - x @ self.a))
        else:
            self._absorb(f_from_g(self.cost, self.a, self.g, self.epsilon))

    def _newton_step(self) -> bool:
        """Line search along the Newton direction; returns False if the dual does not increase."""
        gradient = self.a - self.r
        step = self._direction(gradient)
        step = step - step @ self.a
        slope = float(gradient @ step)
        largest = float(np.abs(step).max())
        if not (np.isfinite(largest) and slope > 0):
            return False
        length = min(1.0, self.kernel.max_log_scaling / largest)
        if np.ptp(self._x + length * step) > self.kernel.max_log_scaling and self._x.any():
            self._absorb(self.f)
        for _ in range(12):
            x, sums, r = self._at(self._x + length * step)
            gain = length * float(step @ self.a) - float(self.b @ np.log(sums / self._sums))
            # near the maximum the gain is below rounding
            near = length * slope < 10 * self.kernel.noise and float(np.abs(self.a - r).sum()) < self.error
            if near or gain >= 1e-4 * length * slope:
                self._move(x, sums, r)
                return True
            length *= 0.3
        return False

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        weights = self.b / self._sums**2

        def hessian(direction: np.ndarray) -> np.ndarray:
            _, back = self.kernel.dot_and_back(self._scaling * direction, lambda flow, rows: flow * weights[rows])
            return self.r * direction - self._scaling * back

        rtol = min(0.1, max(0.03, self.error**0.5))
        step, good = conjugate_gradient(hessian, self.r, gradient, rtol)
        if not good and isinstance(self.kernel, SparseKernel):
            plan = sp.diags_array(self.b / self._sums) @ self.kernel.matrix @ sp.diags_array(self._scaling)
            exact = factorized(plan, self.r, self.b, gradient)
            step = step if exact is None else exact
        return step


def f_from_g(cost: Cost, a: np.ndarray, g: np.ndarray, epsilon: float, columns: slice = slice(None)) -> np.ndarray:
    """Half a Sinkhorn iteration: the potentials f of `columns` that meet their marginals `a`, given g."""
    high = np.full(len(a), -np.inf)
    total = np.zeros(len(a))
    for rows, block in cost.blocks():
        gain = g[rows, None] - block[:, columns]
        top = np.maximum(high, gain.max(axis=0))
        with np.errstate(over="ignore"):  # overflow to minus infinity is a term of 0
            total = total * np.exp((high - top) / epsilon) + np.exp((gain - top) / epsilon).sum(axis=0)
        high = top
    return epsilon * (np.log(a) - np.log(total)) - high
