"""Configuration of a fit: the parameters of the estimator, checked, with None where a value is chosen automatically."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop.propagation.rounds import Round

Metric = Callable[[np.ndarray, np.ndarray], float]
RoundCallback = Callable[[Round], bool]  # a true result stops after that round


@dataclass(frozen=True)
class FitConfig:
    """Parameters that both kinds of fit have; see `OTP` for their meaning."""

    cost: str | Metric
    epsilon: float | None
    max_rounds: int | None
    min_round_share: float
    tol: float
    max_iter: int


@dataclass(frozen=True)
class RowLevelConfig(FitConfig):
    """Parameters of a row-level fit; see `PaperOTP` for their meaning."""

    alpha: float


@dataclass(frozen=True)
class EvidenceSource:
    """A source requested in `OTP(evidence=...)`: a built-in name, or a classifier with the metadata for its fit."""

    name: str
    classifier: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassLevelConfig(FitConfig):
    """Parameters of a class-level fit; see `OTP` for their meaning."""

    alpha: float | None
    sources: tuple[EvidenceSource, ...] | None  # None: chosen by the number of labels, classes and columns
    marginal_strength: float | None
    class_prior: Any
    metric: str | Metric
    n_neighbors: int | None
    diffusion: float | None
    seed: int
    n_jobs: int | None

    @property
    def uses_graph(self) -> bool:
        """Whether labels diffuse over a graph; then epsilon is a temperature and not the scale of a kernel."""
        return isinstance(self.cost, str) and self.cost in ("diffusion", "graph")

    @property
    def has_features(self) -> bool:
        """Whether X holds features and not a matrix between the rows."""
        return not (isinstance(self.cost, str) and self.cost in ("graph", "precomputed"))
