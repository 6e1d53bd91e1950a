"""Finding neighbours by brute force, through cells and with FAISS's HNSW graphs, in one run.

First where brute force stops being the fastest, by rows and features; then all of MNIST, Covertype and a million rows,
with several settings of HNSW. Everything runs in one thread, and what counts are the seconds of the processor: they
hardly change when other programs run, as seconds by the clock do. Recall is the share of the 15 true neighbours, on
500 rows. Writes benchmarks/results/neighbors.csv. FAISS is left out where it is not installed.
"""

from __future__ import annotations

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
HNSW = ((16, 60, 40, "flat"), (16, 60, 40, "8 bit"), (12, 40, 40, "flat"), (16, 40, 80, "flat"))  # M, build, search
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


def hnsw(m: int, build: int, ef: int, storage: str, threads: int = 1) -> Search:
    import faiss

    def search(X: np.ndarray) -> Neighbors:
        faiss.omp_set_num_threads(threads)
        X = (X - X.mean(axis=0)).astype(np.float32)
        kind = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexHNSWFlat(X.shape[1], m) if storage == "flat" else faiss.IndexHNSWSQ(X.shape[1], kind, m)
        index.hnsw.efConstruction, index.hnsw.efSearch = build, ef
        if not index.is_trained:
            index.train(X)
        index.add(X)
        _, found = index.search(X, K + 1)
        return Neighbors(*module._without_self(found, np.zeros(found.shape)))

    return search


def true_neighbors(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the distances of each to its 15th neighbour."""
    sample = np.sort(np.random.default_rng(5).choice(len(X), 500, replace=False))
    vectors = DenseSearch(X, "euclidean")
    _, distances = brute_force(vectors, X[sample], K + 1, Jobs(None))
    return sample, distances[:, -1]


def measured(name: str, X: np.ndarray, searches: dict[str, Search], repeat: int = 1) -> Iterator[dict[str, object]]:
    sample, farthest = true_neighbors(X)
    for method, search in searches.items():
        runs = []
        for _ in range(repeat):
            wall, processor = time.perf_counter(), time.process_time()
            found = search(X)
            runs.append((time.process_time() - processor, time.perf_counter() - wall))
        gaps = X[found.indices[sample]] - X[sample][:, None]
        hits = np.sqrt((gaps**2).sum(axis=2)) <= farthest[:, None] * (1 + 1e-9)
        row = {
            "data": name,
            "rows": X.shape[0],
            "features": X.shape[1],
            "method": method,
            "processor_seconds": f"{min(runs)[0]:.2f}",
            "seconds": f"{min(wall for _, wall in runs):.2f}",
            "recall": f"{hits.mean():.4f}",
        }
        print(*row.values(), flush=True)
        yield row


def have_faiss() -> bool:
    try:
        import faiss  # noqa: F401
    except ImportError:
        print("FAISS is not installed: its rows are left out (pip install faiss-cpu)")
        return False
    return True


def differing_share(X: np.ndarray) -> float:
    """The share of the neighbours that HNSW finds with one thread and not with four."""
    one, four = (np.sort(hnsw(*HNSW[0], threads=threads)(X).indices, axis=1) for threads in (1, 4))
    return float(np.mean([1 - len(np.intersect1d(a, b)) / K for a, b in zip(one, four, strict=True)]))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out data with more rows")
    options = parser.parse_args()
    usual = module.EXACT_WORK
    faiss = have_faiss()
    first = {"brute force": ours(np.inf), "cells": ours(0)}
    if faiss:
        first["HNSW 16 60 40"] = hnsw(*HNSW[0])
    rows: list[dict[str, object]] = []
    for n_features in (10, 64, 256):
        for n_rows in (5_000, 10_000, 20_000, 40_000, 80_000):
            rows += measured("made up", made_up(n_rows, n_features), first, 2)
    mnist = load("mnist70k")[0].astype(np.float64)
    for n_rows in (5_000, 10_000, 20_000):
        rows += measured("mnist", mnist[-n_rows:], first, 2)
    rows += measured("no structure", without_structure(40_000, 32), first)
    large = {"as chosen": ours(usual)}
    if faiss:
        large |= {f"HNSW {m} {build} {ef} {storage}": hnsw(m, build, ef, storage) for m, build, ef, storage in HNSW}
    rows += measured("mnist", mnist, large)
    if faiss:
        print("HNSW, one thread or four, MNIST 10000: neighbours that differ", differing_share(mnist[-10_000:]))
    del mnist
    first_two = dict(list(large.items())[:2])
    covertype = load("covtype")[0].astype(np.float64)
    if len(covertype) <= options.most:
        rows += measured("covertype, standardised", (covertype - covertype.mean(0)) / covertype.std(0), first_two)
    if options.most >= 1_000_000:
        rows += measured("made up", made_up(1_000_000, 64), first_two)
    write_csv("neighbors.csv", rows)


if __name__ == "__main__":
    main()
