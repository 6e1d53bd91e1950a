"""What a transport solver returns: potentials, and how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from otprop.geometry.cost import Cost
from otprop.transport.kernel import Kernel


@dataclass(frozen=True)
class TransportResult:
    """The solution of Eq. 9 as potentials, ``plan_ij = exp((f_i + g_j - C_ij) / epsilon)``.

    Attributes
    ----------
    f, g : ndarray, potentials of the sources and of the targets, in units of the cost
    epsilon : float
    source_error, target_error : float, L1 distance of each marginal of the plan from what was asked, the
        total mass being one
    iterations : int, each the work of one Sinkhorn iteration: a product with the kernel and one with its
        transpose
    converged : bool, both errors are within the tolerance
    cost : Cost, what was solved
    kernel, scaling : the solver's last state, where it was kept
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
        """The same answer, holding on to no large array but the cost."""
        return replace(self, kernel=None, scaling=None)

    def plan(self) -> np.ndarray:
        """The plan itself, sources by targets as in the paper. Needs the memory of a full cost matrix."""
        plan = np.empty((len(self.f), len(self.g)))
        for lines, block in self.cost.blocks():
            plan[:, lines] = np.exp((self.f - block + self.g[lines, None]) / self.epsilon).T
        return plan

    def class_shares(self, classes: np.ndarray, n_classes: int, targets: np.ndarray | None = None) -> np.ndarray:
        """Eq. 10 and 11: each target's mass by the class of the source it comes from, summing to one.

        Parameters
        ----------
        classes : ndarray of int, the class number of each source
        n_classes : int
        targets : ndarray of bool, the targets to answer for (None: all)

        Returns
        -------
        ndarray of shape (n_targets, n_classes)
        """
        member = _membership(classes, n_classes)
        wanted = np.ones(len(self.g), dtype=bool) if targets is None else targets
        shares = np.empty((int(wanted.sum()), n_classes))
        start = 0
        for lines, block in self.cost.blocks():
            chosen = wanted[lines]
            if not chosen.any():
                continue
            logs = (self.f - (block if chosen.all() else block[chosen])) / self.epsilon
            logs -= logs.max(axis=1, keepdims=True)
            part = shares[start : start + len(logs)]
            np.matmul(np.exp(logs, out=logs), member, out=part)
            start += len(logs)
        return shares / shares.sum(axis=1, keepdims=True)

    def rough_class_shares(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """`class_shares` of all targets from the solver's kernel, in its precision: quick, good to about 1e-6."""
        if self.kernel is None or self.scaling is None:
            return self.class_shares(classes, n_classes)
        shares = self.kernel.sum_over_sources(self.scaling[:, None] * _membership(classes, n_classes))
        return shares / shares.sum(axis=1, keepdims=True)


def _membership(classes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.eye(n_classes)[classes]
