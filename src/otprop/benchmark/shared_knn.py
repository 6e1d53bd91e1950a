"""Label spreading on a nearest-neighbour graph, for the labels of many splits side by side."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from otprop.baselines.graph import knn_graph
from otprop.baselines.ls import normalized_knn
from otprop.benchmark.grids import Params
from otprop.benchmark.shared import _found, _groups, _solve_lnp, _tables
from otprop.benchmark.workspace import Labelled, Workspace


def neighbor_spreading(work: Workspace, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelled]:
    """One graph a number of neighbours, one factor a strength, all sets solved together.

    The limit has the form of LNP's, (1 - alpha) (I - alpha S)^-1 Y, with another graph.
    """
    Y = _tables(work, sets)
    for n_neighbors, group in _groups(candidates, "n_neighbors"):
        start = perf_counter()
        graph = normalized_knn(knn_graph(work.rows, n_neighbors))
        spent = (perf_counter() - start) / len(group)
        for params in group:
            start = perf_counter()
            found = _found(_solve_lnp(graph, Y, params["alpha"]), Y)
            yield params, found, spent + perf_counter() - start
