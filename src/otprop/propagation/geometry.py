"""The geometry of a table: the part of a class-level fit that does not depend on the labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._progress import ProgressCallback
from otprop._validation import ParameterError
from otprop.evidence.held_out import MANY_ROWS
from otprop.evidence.scaling import ScaledRows
from otprop.geometry.diffusion import DiffusionGraph, local_scales
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.pairwise import SPARSE_METRICS, PairwiseCost, make_pairwise_cost
from otprop.propagation.config import ClassLevelConfig

AUTO_NEIGHBORS = (10, 20)
AUTO_NEIGHBORS_MANY_ROWS = (10,)


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
