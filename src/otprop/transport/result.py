"""The result of the row-level transport solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from otprop.geometry.cost import Cost
from otprop.transport.kernel import Kernel


@dataclass(frozen=True)
class TransportResult:
    """The plan of entropic transport as potentials (Eq. 9), ``plan_ij = exp((f_i + g_j - C_ij) / epsilon)``.

    Attributes
    ----------
    f, g : ndarray, potentials of the marginals a and b, in units of the cost
    epsilon : float
    source_error, target_error : float, L1 errors of the marginals a and b of the plan, for a total mass of one
    iterations : int, in units of one Sinkhorn iteration: a product with the kernel and one with its transpose
    converged : bool, both errors are within the tolerance
    cost : Cost, the cost that was solved for
    kernel, scaling : the last state of the solver, if it was kept

    Examples
    --------
    >>> import numpy as np
    >>> from otprop.transport import sinkhorn
    >>> result = sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), np.ones(2), epsilon=0.1)
    >>> result.converged, result.plan().sum().round(6).item()
    (True, 1.0)
    >>> result.class_shares(np.array([0, 1]), 2).argmax(axis=1)
    array([0, 1])
    """

    f: np.ndarray
    g: np.ndarray
    epsilon: float
    source_error: float
    target_error: float
    iterations: int
    converged: bool
    cost: Cost = field(repr=False)
    kernel: Kernel | None = field(default=None, repr=False)
    scaling: np.ndarray | None = field(default=None, repr=False)

    def without_kernel(self) -> Self:
        """A copy without the kernel, to free its memory."""
        return replace(self, kernel=None, scaling=None)

    def plan(self) -> np.ndarray:
        """The plan as an array of shape (len(a), len(b)), as in the paper. Needs the memory of a full cost matrix."""
        plan = np.empty((len(self.f), len(self.g)))
        for rows, block in self.cost.blocks():
            with np.errstate(over="ignore"):  # overflow to minus infinity is an entry of 0
                plan[:, rows] = np.exp((self.f - block + self.g[rows, None]) / self.epsilon).T
        return plan

    def class_shares(self, classes: np.ndarray, n_classes: int, selected: np.ndarray | None = None) -> np.ndarray:
        """Eq. 10 and 11: the mass that each entry of b receives, by class, normalised to sum to one.

        Parameters
        ----------
        classes : ndarray of int of shape (len(a),), the class number of each entry of a
        n_classes : int
        selected : ndarray of bool of shape (len(b),), the entries of b to return (None: all)

        Returns
        -------
        ndarray of shape (n_selected, n_classes)
        """
        member = _membership(classes, n_classes)
        selected = np.ones(len(self.g), dtype=bool) if selected is None else selected
        shares, n_done = np.empty((int(selected.sum()), n_classes)), 0
        for rows, block in self.cost.blocks():
            wanted = selected[rows]
            if not wanted.any():
                continue
            logs = self.f - (block if wanted.all() else block[wanted])
            logs -= logs.max(axis=1, keepdims=True)
            with np.errstate(over="ignore"):  # overflow to minus infinity is a share of 0
                logs /= self.epsilon
            np.matmul(np.exp(logs, out=logs), member, out=shares[n_done : n_done + len(logs)])
            n_done += len(logs)
        return shares / shares.sum(axis=1, keepdims=True)

    def rough_class_shares(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """`class_shares` from the stored kernel: faster, with errors of about 1e-6 where the kernel is in float32."""
        if self.kernel is None or self.scaling is None:
            return self.class_shares(classes, n_classes)
        shares = self.kernel.dot(self.scaling[:, None] * _membership(classes, n_classes))
        return shares / shares.sum(axis=1, keepdims=True)


def _membership(classes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.eye(n_classes)[classes]
