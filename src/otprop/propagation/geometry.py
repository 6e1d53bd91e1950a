"""The geometry of a table, which does not depend on the labels, and the sources of a class-level fit on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._progress import ProgressCallback
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
from otprop.geometry.diffusion import DiffusionGraph, local_scales
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.pairwise import SPARSE_METRICS, PairwiseCost, make_pairwise_cost
from otprop.propagation.config import ClassLevelConfig, EvidenceSource
from otprop.propagation.rounds import MANY_ROWS, MAX_DOUBLE_ENTRIES
from otprop.propagation.row_level import in_units_of

AUTO_NEIGHBORS = (10, 20)
AUTO_NEIGHBORS_MANY_ROWS = (10,)  # a second graph costs time and gains nothing


@dataclass
class Geometry:
    """What depends on the rows and not on the labels: neighbours, graphs, scales of the columns.

    ``OTP.prepare(X)`` makes one, and ``OTP.fit(X, y, geometry=...)`` uses it for any labels of the same rows.

    Attributes
    ----------
    graphs : dict from the number of neighbours (None: the user's graph) to its DiffusionGraph; empty with a cost
    cost : PairwiseCost or None, between rows, if no graph is used
    index : NeighborIndex or None, for the neighbours of new rows
    n_query : int, number of neighbours that a new row needs
    key : tuple or None, the contents of X and the parameters it was made for

    Examples
    --------
    >>> from otprop import OTP
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> geometry = OTP().prepare(X)
    >>> first = OTP().fit(X, [0, -1, -1, 1, -1, -1], geometry=geometry)
    >>> second = OTP().fit(X, [0, -1, 0, 1, -1, 1], geometry=geometry)
    >>> second.reused_
    ('neighbours', 'graphs', 'scales')
    """

    graphs: dict[int | None, DiffusionGraph] = field(default_factory=dict)
    cost: PairwiseCost | None = None
    index: NeighborIndex | None = None
    n_query: int = 0
    key: tuple[Any, ...] | None = None
    _scaled: ScaledRows | None = field(default=None, init=False, repr=False)

    @property
    def has_own_graph(self) -> bool:
        """Whether the graph was passed to ``prepare``, beside features."""
        return None in self.graphs and self.index is not None

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that can be reused."""
        found = ("neighbours", "graphs") if self.index is not None else ("graph",) if self.graphs else ("costs",)
        return found if self._scaled is None else (*found, "scales")

    def scaled(self, X: Any) -> ScaledRows:
        """The rows of X with scaled columns, computed once."""
        if self._scaled is None:
            self._scaled = ScaledRows.of(X)
        return self._scaled


def geometry_key(X: Any, config: ClassLevelConfig) -> tuple[Any, ...]:
    """What a Geometry depends on: the contents of X, and the parameters of neighbours and costs."""
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    content = blake2b(digest_size=16)
    for part in parts:
        content.update(np.ascontiguousarray(part).data)
    return content.digest(), X.shape, X.dtype.str, config.cost, config.metric, config.n_neighbors


def build_geometry(X: Any, config: ClassLevelConfig, on_step: ProgressCallback, graph: Any = None) -> Geometry:
    """Find the neighbours and make the graphs, or the cost between rows.

    Labels spread over `graph`, a sparse matrix of affinities, instead of the graphs of neighbours, where it is given.
    Neighbours are then used for new rows only.
    """
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
    graphs: dict[int | None, DiffusionGraph]
    if graph is not None:
        graphs = {None: DiffusionGraph(graph, local_scales(neighbors), name="graph")}
    else:
        graphs = {k: DiffusionGraph.from_neighbors(neighbors, k) for k in wanted}
    return Geometry(graphs, index=index, n_query=max(wanted))


def _check_metric(metric: Any, X: Any) -> None:
    """Refuse a metric that cannot be used with these rows."""
    if sp.issparse(X) and metric not in (*SPARSE_METRICS, "inner"):
        accepted = ", ".join((*SPARSE_METRICS, "inner"))
        raise ParameterError("metric", f"={metric!r} does not take sparse rows. Use one of {accepted}, or X.toarray().")
    if isinstance(metric, str) and metric == "haversine" and X.shape[1] != 2:
        raise ParameterError(
            "metric", f"='haversine' takes two columns, latitude and longitude in radians; X has {X.shape[1]}."
        )


AUTO_DIFFUSION = (0.8, 0.95)
AUTO_DIFFUSION_MANY_ENTRIES = (0.95,)  # each strength takes as much memory as the result


def build_iterative_source(
    geometry: Geometry, n_rows: int, n_classes: int, config: ClassLevelConfig
) -> DiffusionSource | NearnessSource:
    """The iterative source: diffusion over the graphs, or nearness by the cost between rows."""
    if geometry.cost is not None:
        epsilon = None if config.epsilon is None else in_units_of(geometry.cost.scale, config.epsilon)
        return NearnessSource(geometry.cost, n_rows, n_classes, epsilon)
    strengths = AUTO_DIFFUSION if n_rows * n_classes <= MAX_DOUBLE_ENTRIES else AUTO_DIFFUSION_MANY_ENTRIES
    if config.diffusion is not None:
        strengths = (config.diffusion,)
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
