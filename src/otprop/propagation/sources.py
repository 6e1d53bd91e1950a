"""Build the geometry of a table and the sources of evidence that a class-level fit asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._validation import ParameterError
from otprop.evidence.base import Source
from otprop.evidence.boosting import BoostingSource, boosting_pays
from otprop.evidence.classifier import ClassifierSource
from otprop.evidence.diffusion import DiffusionSource, Setting
from otprop.evidence.forest import MAX_CLASSES as MAX_FOREST_CLASSES
from otprop.evidence.forest import ForestSource, RandomForestSource
from otprop.evidence.gaussian import GaussianSource, gaussian_pays
from otprop.evidence.held_out import MANY_ROWS
from otprop.evidence.linear import LinearSource
from otprop.evidence.nearness import NearnessSource
from otprop.evidence.scaling import ScaledRows
from otprop.geometry.diffusion import DiffusionGraph
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.pairwise import SPARSE_METRICS, PairwiseCost, make_pairwise_cost
from otprop.propagation.config import ClassLevelConfig, EvidenceSource
from otprop.propagation.row_level import in_units_of

NAMED_SOURCES = ("forest", "linear", "random_forest", "boosting", "gaussian")
MANY_LABELS_PER_CLASS = 30  # from which on a random forest is better than extra trees, and takes half the time
DENSE_SOURCES = ("boosting", "gaussian")
AUTO_NEIGHBORS = (10, 20)
AUTO_NEIGHBORS_MANY_ROWS = (10,)
AUTO_DIFFUSION = (0.8, 0.95)

StepCallback = Callable[[float, float, str], None]


@dataclass
class Geometry:
    """What depends on the rows and not on the labels: neighbours, graphs, scales. Kept for another fit of the same X.

    Attributes
    ----------
    graphs : dict from the number of neighbours (None: a graph of the user's) to its DiffusionGraph; empty with a cost
    cost : PairwiseCost or None, between rows, where no graph is used
    index : NeighborIndex or None, for the neighbours of new rows
    n_query : int, how many neighbours a new row needs
    """

    graphs: dict[int | None, DiffusionGraph] = field(default_factory=dict)
    cost: PairwiseCost | None = None
    index: NeighborIndex | None = None
    n_query: int = 0
    _scaled: ScaledRows | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of what there is to use again."""
        found = ("neighbours", "graphs") if self.index is not None else ("graph",) if self.graphs else ("costs",)
        return found if self._scaled is None else (*found, "scales")

    def scaled(self, X: Any) -> ScaledRows:
        """The rows of X with scaled columns, computed once."""
        if self._scaled is None:
            self._scaled = ScaledRows.of(X)
        return self._scaled


def geometry_key(X: Any, config: ClassLevelConfig) -> tuple[Any, ...]:
    """What a Geometry depends on: the contents of X, and the parameters that decide on neighbours and costs."""
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    content = blake2b(digest_size=16)
    for part in parts:
        content.update(np.ascontiguousarray(part).data)
    return content.digest(), X.shape, X.dtype.str, config.cost, config.metric, config.n_neighbors


def build_geometry(X: Any, config: ClassLevelConfig, on_step: StepCallback) -> Geometry:
    """Find the neighbours and make the graphs, or the cost between rows."""
    if not config.uses_graph:
        return Geometry(cost=make_pairwise_cost(X, config.cost))
    if config.cost == "graph":
        return Geometry({None: DiffusionGraph(X, name="X")})
    _check_metric(config.metric, X)
    n_rows = X.shape[0]
    wanted = AUTO_NEIGHBORS if n_rows <= MANY_ROWS else AUTO_NEIGHBORS_MANY_ROWS
    if config.n_neighbors is not None:
        wanted = (config.n_neighbors,)
    wanted = tuple(dict.fromkeys(min(k, n_rows - 1) for k in wanted))
    index = NeighborIndex(X, config.metric, n_jobs=config.n_jobs)
    neighbors = index.graph(max(wanted), lambda done, total: on_step(done, total, "neighbours"))
    graphs: dict[int | None, DiffusionGraph] = {k: DiffusionGraph.from_neighbors(neighbors, k) for k in wanted}
    return Geometry(graphs, index=index, n_query=max(wanted))


def build_iterative_source(
    geometry: Geometry, n_rows: int, n_classes: int, config: ClassLevelConfig
) -> DiffusionSource | NearnessSource:
    """The source that follows the rounds: diffusion over the graphs, or nearness by the cost between rows."""
    if geometry.cost is not None:
        epsilon = None if config.epsilon is None else in_units_of(geometry.cost.scale, config.epsilon)
        return NearnessSource(geometry.cost, n_rows, n_classes, epsilon)
    strengths = AUTO_DIFFUSION if config.diffusion is None else (config.diffusion,)
    settings = [Setting(graph, k, strength) for k, graph in geometry.graphs.items() for strength in strengths]
    return DiffusionSource(settings, n_classes, config.n_jobs)


def build_static_sources(
    X: Any, geometry: Geometry, classes: np.ndarray, n_labels: int, config: ClassLevelConfig
) -> list[Source]:
    """The classifiers among the sources, in the order asked for."""
    n_classes = len(classes)
    if n_classes == 1:
        return []
    found: list[Source] = []
    sources = _auto_sources(X, n_labels, n_classes) if config.sources is None else config.sources
    for source in sources:
        if source.classifier is not None:
            # classifiers of the user's see the labels of y, or class numbers where those are dates
            shown = classes if classes.dtype.kind in "biufU" else np.arange(n_classes)
            found.append(ClassifierSource(source.name, source.classifier, X, shown, source.metadata))
        else:
            found.append(_named_source(source.name, geometry.scaled(X), n_classes, config))
    return found


def _named_source(name: str, scaled: ScaledRows, n_classes: int, config: ClassLevelConfig) -> Source:
    if name in DENSE_SOURCES and sp.issparse(scaled.rows):
        raise ParameterError(
            "evidence", f"names {name!r}, which does not take sparse rows. Leave it out, or use X.toarray()."
        )
    seed, n_jobs = config.seed, config.n_jobs
    made: dict[str, Callable[[], Source]] = {
        "forest": lambda: ForestSource(scaled, n_classes, seed, n_jobs),
        "linear": lambda: LinearSource(scaled, n_classes, seed),
        "random_forest": lambda: RandomForestSource(scaled, n_classes, seed, n_jobs),
        "boosting": lambda: BoostingSource(scaled, n_classes, seed),
        "gaussian": lambda: GaussianSource(scaled, n_classes, seed, n_jobs),
    }
    return made[name]()


def _auto_sources(X: Any, n_labels: int, n_classes: int) -> tuple[EvidenceSource, ...]:
    """The classifiers that are worth their cost with so many labels, classes and columns."""
    forest = "forest" if n_labels < MANY_LABELS_PER_CLASS * n_classes else "random_forest"
    names = [forest, "linear"] if n_classes <= MAX_FOREST_CLASSES else ["linear"]
    if boosting_pays(n_labels, n_classes, X):
        names.append("boosting")
    if gaussian_pays(n_classes, X):
        names.append("gaussian")
    return tuple(EvidenceSource(name) for name in names)


def _check_metric(metric: Any, X: Any) -> None:
    """Refuse a metric that cannot be used with these rows."""
    if sp.issparse(X) and metric not in (*SPARSE_METRICS, "inner"):
        accepted = ", ".join((*SPARSE_METRICS, "inner"))
        raise ParameterError("metric", f"={metric!r} does not take sparse rows. Use one of {accepted}, or X.toarray().")
    if isinstance(metric, str) and metric == "haversine" and X.shape[1] != 2:
        raise ParameterError(
            "metric", f"='haversine' takes two columns, latitude and longitude in radians; X has {X.shape[1]}."
        )
