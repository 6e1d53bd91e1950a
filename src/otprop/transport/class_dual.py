"""The dual of class-level transport, as a function of the class potentials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from otprop.transport.row_sums import TINY, RowSums, plan_sums


@dataclass(frozen=True)
class DualPoint:
    """The dual at potentials h: its value and gradient, the class masses m and their target w, and the overlap.

    The overlap of classes k and l is ``sum_j b_j p_jk p_jl``, with the class shares p_j of row j.
    """

    h: np.ndarray
    value: float
    m: np.ndarray
    log_w: np.ndarray
    gradient: np.ndarray
    overlap: np.ndarray | None

    @cached_property
    def error(self) -> float:
        return float(np.abs(self.gradient).sum())

    @property
    def log_ratio(self) -> np.ndarray:
        return np.asarray(self.log_w - np.log(np.maximum(self.m, TINY)))


@dataclass(frozen=True)
class ClassDual:
    """The dual as a function of the potentials of the active classes, which have mass (q) and reach a row.

    A temperature other than one multiplies epsilon; rho stays the same in units of the cost.
    """

    rows: RowSums
    mass: float
    active: np.ndarray
    q: np.ndarray
    share: float
    strength: float
    temperature: float = 1.0

    @property
    def stiffness(self) -> float:
        """One over rho."""
        return (1.0 - self.strength) / max(self.strength, TINY**0.5)

    @property
    def softness(self) -> float:
        """Rho where it is finite."""
        return 1.0 / self.stiffness if self.strength < 1 else 0.0

    def at_temperature(self, temperature: float) -> ClassDual:
        strength = self.strength / (self.strength + (1.0 - self.strength) * temperature)
        return replace(self, strength=strength, temperature=temperature)

    def expand(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Values of the active classes as values of all classes, `fill` for the others."""
        expanded = np.full(len(self.active), fill)
        expanded[self.active] = values
        return expanded

    def evaluate(self, h: np.ndarray, overlap: bool = True) -> DualPoint:
        h = h - float(self.q @ h)
        log_w = np.log(self.q) - self.stiffness * h
        total = _log_sum(log_w)
        log_w -= total
        shift = self.softness * (total + np.log(self.share))
        h = h + shift
        scale = 1.0 / self.temperature
        value, m, *rest = self.rows.sum(partial(plan_sums, h=self.expand(h, -np.inf), scale=scale, overlap=overlap))
        m = m[self.active] / self.mass
        between = rest[0][np.ix_(self.active, self.active)] / self.mass if overlap else None
        value = float(value) / self.mass - shift + self.softness * total
        return DualPoint(h, value, m, log_w, m - np.exp(log_w), between)


def _log_sum(logs: np.ndarray) -> float:
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))
