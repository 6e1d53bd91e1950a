"""Finding neighbours by brute force, through cells, and with FAISS, hnswlib and pynndescent, in one run.

First where brute force stops being the fastest, by rows and features; then all of MNIST, Covertype and a million rows.
FAISS and hnswlib build the same kind of graph with the same settings (16 links, 60 candidates when building, 40 when
searching); pynndescent has its defaults, and is run once on few rows before, so that compiling does not count.
Everything runs in one thread, and what counts are the seconds of the processor: they hardly change when other programs
run, as seconds by the clock do. Recall is the share of the 15 true neighbours, on 500 rows. Writes
benchmarks/results/neighbors.csv. Libraries that are not installed are skipped.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

import otprop.geometry.neighbors as module
from common import argument_parser, load, write_csv
from otprop.geometry.approximate_search import brute_force
from otprop.geometry.exact_search import DenseSearch
from otprop.geometry.neighbors import NeighborIndex, Neighbors
from otprop.geometry.parallel import Jobs

K = 15
LINKS, BUILD, SEARCH = 16, 60, 40  # settings of HNSW graphs
Search = Callable[[np.ndarray], Neighbors]


def made_up(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Rows of a hundred curved classes, each of twelve dimensions at most, with some noise."""
    rng = np.random.default_rng(seed)
    classes, inner = rng.integers(100, size=n_rows), min(12, n_features)
    X = 0.1 * rng.normal(size=(n_rows, n_features))
    for number in range(100):
        members = np.flatnonzero(classes == number)
        directions = rng.normal(size=(inner, n_features)) / np.sqrt(inner)
        X[members] += 0.7 * rng.normal(size=n_features) + np.tanh(rng.normal(size=(len(members), inner)) @ directions)
    return X


def without_structure(n_rows: int, n_features: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_rows, n_features))


def ours(exact_work: float) -> Search:
    def search(X: np.ndarray) -> Neighbors:
        module.EXACT_WORK = exact_work
        return NeighborIndex(X, n_jobs=1).graph(K)

    return search


def by_faiss(X: np.ndarray) -> Neighbors:
    import faiss

    faiss.omp_set_num_threads(1)
    vectors = (X - X.mean(axis=0)).astype(np.float32)
    index = faiss.IndexHNSWFlat(X.shape[1], LINKS)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILD, SEARCH
    index.add(vectors)
    return without_self(index.search(vectors, K + 1)[1])


def by_hnswlib(X: np.ndarray) -> Neighbors:
    import hnswlib

    vectors = (X - X.mean(axis=0)).astype(np.float32)
    index = hnswlib.Index(space="l2", dim=X.shape[1])
    index.init_index(max_elements=len(X), M=LINKS, ef_construction=BUILD, random_seed=0)
    index.set_num_threads(1)
    index.set_ef(SEARCH)
    index.add_items(vectors)
    return without_self(index.knn_query(vectors, K + 1)[0])


def by_pynndescent(X: np.ndarray) -> Neighbors:
    from pynndescent import NNDescent

    vectors = (X - X.mean(axis=0)).astype(np.float32)
    return without_self(NNDescent(vectors, n_neighbors=K + 1, random_state=0, n_jobs=1).neighbor_graph[0])


def without_self(found: np.ndarray) -> Neighbors:
    return Neighbors(*module._without_self(found.astype(np.int64), np.zeros(found.shape)))


LIBRARIES: dict[str, Search] = {"faiss": by_faiss, "hnswlib": by_hnswlib, "pynndescent": by_pynndescent}


def installed() -> dict[str, Search]:
    """The libraries that are here, without those that are not."""
    found = {name: search for name, search in LIBRARIES.items() if importlib.util.find_spec(name) is not None}
    if missing := LIBRARIES.keys() - found.keys():
        print(f"not installed and skipped: {', '.join(sorted(missing))}")
    return found


def true_neighbors(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the distances of each to its 15th neighbour."""
    sample = np.sort(np.random.default_rng(5).choice(len(X), 500, replace=False))
    vectors = DenseSearch(X, "euclidean")
    _, distances = brute_force(vectors, X[sample], K + 1, Jobs(None))
    return sample, distances[:, -1]


def measured(name: str, X: np.ndarray, searches: dict[str, Search]) -> Iterator[dict[str, object]]:
    sample, farthest = true_neighbors(X)
    for method, search in searches.items():
        wall, processor = time.perf_counter(), time.process_time()
        found = search(X)
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        gaps = X[found.indices[sample]] - X[sample][:, None]
        hits = np.sqrt((gaps**2).sum(axis=2)) <= farthest[:, None] * (1 + 1e-9)
        row = {
            "data": name,
            "rows": X.shape[0],
            "features": X.shape[1],
            "method": method,
            "processor_seconds": f"{processor:.2f}",
            "seconds": f"{wall:.2f}",
            "recall": f"{hits.mean():.4f}",
        }
        print(*row.values(), flush=True)
        yield row


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--most", type=int, default=1_000_000, help="skip data with more rows")
    options = parser.parse_args()
    libraries = installed()
    small = {"brute force": ours(np.inf), "cells": ours(0)} | libraries
    large = {"as chosen": ours(module.EXACT_WORK)} | libraries
    if "pynndescent" in libraries:
        by_pynndescent(made_up(5_000, 10))  # compiles
    rows: list[dict[str, object]] = []
    for n_features in (10, 64, 256):
        for n_rows in (5_000, 10_000, 20_000, 40_000):
            rows += measured("made up", made_up(n_rows, n_features), small)
    mnist = load("mnist70k")[0].astype(np.float64)
    for n_rows in (5_000, 10_000, 20_000):
        rows += measured("mnist", mnist[-n_rows:], small)
    rows += measured("no structure", without_structure(40_000, 32), small)
    rows += measured("mnist", mnist, large)
    del mnist
    covertype = load("covtype")[0].astype(np.float64)
    if len(covertype) <= options.most:
        rows += measured("covertype, standardised", (covertype - covertype.mean(0)) / covertype.std(0), large)
    if options.most >= 1_000_000:
        rows += measured("made up", made_up(1_000_000, 64), large)
    write_csv("neighbors.csv", rows)


if __name__ == "__main__":
    main()
