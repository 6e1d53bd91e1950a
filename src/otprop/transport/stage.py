"""Entropic transport at one epsilon, in the scaling domain.

The state is a kernel with the potentials absorbed and the logarithms of scalings of its sources, which start
at zero. Newton steps take a handful of iterations where Sinkhorn's contraction takes thousands; plain
Sinkhorn steps, which cannot fail, stand in where a source is still far from its share or where a Newton step
was turned down.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from otprop.geometry.cost import Cost
from otprop.transport.kernel import Kernel, SparseKernel, build_kernel
from otprop.transport.newton import conjugate_gradient, factorised
from otprop.transport.result import TransportResult

FAR = 7.0  # a source that ships less than exp(-FAR) of its share is far from it
NEAR = 1.0  # log ratio within which every source is near its share
MARGIN = 1e-3  # small problems are solved this far below tol, where rounding allows: their last steps cost little
SMALL = 2**16  # entries
MAX_STEPS = 300
MAX_STALLED = 12  # steps without progress after which a stage gives up
TINY = 1e-300


class Stage:
    """The problem at one epsilon: the potentials so far and the marginals they give.

    Attributes
    ----------
    f : ndarray, potentials of the sources, in units of the cost
    r : ndarray, what each source ships
    error : float, L1 distance of `r` from what was asked
    iterations : int
    """

    def __init__(self, cost: Cost, a: np.ndarray, b: np.ndarray, epsilon: float, f: np.ndarray, tol: float) -> None:
        self.cost, self.a, self.b, self.epsilon, self.tol = cost, a, b, epsilon, tol
        self._products = 0  # with kernels that are no more
        self.kernel: Kernel
        self._build(np.asarray(f, dtype=np.float64))

    @property
    def f(self) -> np.ndarray:
        return self._base + self.epsilon * self._x

    @property
    def g(self) -> np.ndarray:
        return self.kernel.g + self.epsilon * np.log(self.b / self._sums)

    @property
    def iterations(self) -> int:
        return (self._products + self.kernel.products + 1) // 2

    @property
    def noise(self) -> float:
        """What rounding may hide of a marginal's error: in the kernel, and in potentials much above epsilon."""
        size = float(self.a @ np.abs(self.f)) + float(self.b @ np.abs(self.g))
        return self.kernel.noise + 2.0**-53 * size / self.epsilon

    def run(self, tol: float, max_iter: int, last: bool = True) -> None:
        """Step until the sources' marginal is within `tol`: well within in the last stage of a small problem.

        In the stages before, each source must be near its own share too, however small that is.
        """
        plain, best, stalled = False, np.inf, 0
        noise = self.noise
        small = len(self.a) * len(self.b) <= SMALL and noise < tol * MARGIN
        aim = max(tol * MARGIN, 10 * noise) if last and small else tol - noise
        for _ in range(MAX_STEPS):
            log_ratio = np.log(self.a) - np.log(self.r)
            near = last or np.abs(log_ratio).max() <= NEAR
            best, stalled = (self.error, 0) if self.error < 0.9 * best else (best, stalled + 1)
            enough = near and (self.error <= aim or (stalled and self.error <= tol - noise))
            if enough or self.iterations >= max_iter or stalled > MAX_STALLED:
                return
            plain = (log_ratio.max() > FAR and not plain) or not self._newton_step()
            if plain:
                self._sinkhorn_step()

    def result(self, tol: float, iterations: int) -> TransportResult:
        """The state as an answer; the errors include what rounding may have hidden."""
        noise = self.noise
        source = self.error + noise
        target = float(np.abs(self._sums * (self.b / self._sums) - self.b).sum()) + noise
        converged = max(source, target) <= tol
        return TransportResult(
            self.f, self.g, self.epsilon, source, target, iterations, converged, self.cost, self.kernel, self._scaling
        )

    def _build(self, f: np.ndarray) -> None:
        """Build the kernel at potentials `f`, scalings starting from one."""
        self._base = f
        self.kernel = build_kernel(self.cost, f, self.epsilon, self.tol)
        self._update(np.zeros(len(self.a)), np.ones(len(self.b)))

    def _absorb(self, f: np.ndarray) -> None:
        """Move to potentials `f`, letting go of the old kernel before the new one takes its memory."""
        self._products += self.kernel.products
        del self.kernel
        self._build(f)

    def _update(self, x: np.ndarray, sums: np.ndarray) -> None:
        """Move to log scalings `x`, whose sums over the sources are `sums`."""
        self._x, self._sums = x, sums
        self._scaling = np.exp(x)
        self.r = np.maximum(self._scaling * self.kernel.sum_over_targets(self.b / sums), TINY)
        self.error = float(np.abs(self.a - self.r).sum())

    def _sinkhorn_step(self) -> None:
        """Give every source exactly its share, then every target again: from the cost, in logarithms."""
        self._absorb(source_potentials(self.cost, self.a, self.g, self.epsilon))

    def _newton_step(self) -> bool:
        """Climb along the Newton direction as far as the dual rises; False where it does not."""
        gradient = self.a - self.r
        step = self._direction(gradient)
        step = step - step @ self.a
        slope = float(gradient @ step)
        largest = float(np.abs(step).max())
        if not (np.isfinite(largest) and slope > 0):
            return False
        length = min(1.0, self.kernel.reach / largest)
        if np.ptp(self._x + length * step) > self.kernel.reach and self._x.any():
            self._absorb(self.f)
        for _ in range(12):
            x = self._x + length * step
            sums = self.kernel.sum_over_sources(np.exp(x))
            gain = length * float(step @ self.a) - float(self.b @ np.log(sums / self._sums))
            if gain >= 1e-4 * length * slope:
                self._update(x, sums)
                return True
            if length * slope < 10 * self.kernel.noise and self._lowers_error(x, sums):
                return True  # so near the top that the dual's value drowns in rounding
            length *= 0.3
        return False

    def _lowers_error(self, x: np.ndarray, sums: np.ndarray) -> bool:
        before = self._x, self._sums
        error = self.error
        self._update(x, sums)
        if self.error < error:
            return True
        self._update(*before)
        return False

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        def hessian(direction: np.ndarray) -> np.ndarray:
            flow = self.kernel.sum_over_sources(self._scaling * direction)
            flow *= self.b / self._sums**2
            return self.r * direction - self._scaling * self.kernel.sum_over_targets(flow)

        rtol = min(0.1, max(0.03, self.error**0.5))
        step, good = conjugate_gradient(hessian, self.r, gradient, rtol)
        if not good and isinstance(self.kernel, SparseKernel):
            plan = sp.diags_array(self.b / self._sums) @ self.kernel.matrix @ sp.diags_array(self._scaling)
            exact = factorised(plan, self.r, self.b, gradient)
            step = step if exact is None else exact
        return step


def source_potentials(
    cost: Cost, a: np.ndarray, g: np.ndarray, epsilon: float, columns: slice = slice(None)
) -> np.ndarray:
    """Potentials with which the sources in `columns` ship exactly their shares `a`, given those of the targets."""
    high = np.full(len(a), -np.inf)
    total = np.zeros(len(a))
    for lines, block in cost.blocks():
        gain = g[lines, None] - block[:, columns]
        top = np.maximum(high, gain.max(axis=0))
        total = total * np.exp((high - top) / epsilon) + np.exp((gain - top) / epsilon).sum(axis=0)
        high = top
    return epsilon * (np.log(a) - np.log(total)) - high
