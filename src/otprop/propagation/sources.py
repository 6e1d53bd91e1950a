"""Build the sources of evidence of a class-level fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._validation import ParameterError
from otprop._votes import Votes
from otprop.evidence.base import Source
from otprop.evidence.classifier import ClassifierSource
from otprop.evidence.diffusion import DiffusionSource, Setting
from otprop.evidence.nearness import NearnessSource
from otprop.evidence.registry import NAMED_SOURCES
from otprop.evidence.scaling import ScaledRows
from otprop.evidence.voted_forest import VotedForestSource
from otprop.evidence.votes import VotesSource
from otprop.propagation.config import ClassLevelConfig, EvidenceSource
from otprop.propagation.geometry import Geometry
from otprop.propagation.row_level import in_units_of

AUTO_DIFFUSION = (0.8, 0.95)


def build_iterative_source(
    geometry: Geometry, n_rows: int, n_classes: int, config: ClassLevelConfig
) -> DiffusionSource | NearnessSource:
    """The iterative source: diffusion over the graphs, or nearness by the cost between rows."""
    if geometry.cost is not None:
        epsilon = None if config.epsilon is None else in_units_of(geometry.cost.scale, config.epsilon)
        return NearnessSource(geometry.cost, n_rows, n_classes, epsilon)
    strengths = AUTO_DIFFUSION if config.diffusion is None else (config.diffusion,)
    settings = [Setting(graph, k, strength) for k, graph in geometry.graphs.items() for strength in strengths]
    return DiffusionSource(settings, n_classes, config.n_jobs)


def build_static_sources(
    X: Any, geometry: Geometry, classes: np.ndarray, n_labels: int, config: ClassLevelConfig, votes: Votes | None = None
) -> list[Source]:
    """The classifiers among the sources, in the order asked for, the votes, and what the columns learn from them."""
    n_classes = len(classes)
    if n_classes == 1:
        return []
    found: list[Source] = []
    sources = _auto_sources(X, n_labels, n_classes) if config.sources is None else config.sources
    for source in sources:
        if source.classifier is not None:
            # user's classifiers are trained on the labels of y, or on class numbers if the labels are dates
            shown = classes if classes.dtype.kind in "biufU" else np.arange(n_classes)
            found.append(ClassifierSource(source.name, source.classifier, X, shown, source.metadata))
        else:
            found.append(_named_source(source.name, geometry.scaled(X), n_classes, config))
    if votes is not None:
        by_votes = VotesSource(votes, n_classes)
        found.append(by_votes)
        if config.sources is None and config.has_features:
            found.append(VotedForestSource(geometry.scaled(X), by_votes, n_classes, config.seed, config.n_jobs))
    return found


def _named_source(name: str, scaled: ScaledRows, n_classes: int, config: ClassLevelConfig) -> Source:
    source = NAMED_SOURCES[name]
    if sp.issparse(scaled.rows) and not source.takes_sparse:
        raise ParameterError(
            "evidence", f"names {name!r}, which does not accept sparse rows. Remove it, or use X.toarray()."
        )
    return source.make(scaled, n_classes, config.seed, config.n_jobs)


def _auto_sources(X: Any, n_labels: int, n_classes: int) -> tuple[EvidenceSource, ...]:
    """The classifiers that are worth their cost for this number of labels, classes and columns."""
    return tuple(EvidenceSource(name) for name, source in NAMED_SOURCES.items() if source.pays(n_labels, n_classes, X))
