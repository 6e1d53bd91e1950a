"""Methods on a graph over all rows, for the labels of many splits at once.

All widths share one matrix of distances, all sets of labels of a width one graph and one factorisation. The labels are
those of the estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from scipy import linalg

from otprop_paper.baselines.graph import affinity, distributions, iterate, knn_graph, one_hot
from otprop_paper.baselines.lnp import neighborhood_graph
from otprop_paper.baselines.lp import propagate, propagate_exact, transition
from otprop_paper.baselines.ls import normalized_knn, spread_exact
from otprop_paper.baselines.nearest import class_potentials
from otprop_paper.benchmark.grids import Params
from otprop_paper.benchmark.prepared import DatasetCache, Labelings

FEW_ROWS = 2000  # up to here label propagation is always solved by factors
QUICK = 40  # iterations within which conjugate gradients beat a factor for every split
MOST_DENSE = 12_000  # rows up to which LNP's system is factored as a dense matrix
TINY_WEIGHT = 1e-30  # smaller links are dropped before iterating: numbers near underflow are slow to multiply


def _one_hot_sets(cache: DatasetCache, sets: list[np.ndarray]) -> np.ndarray:
    """One-hot labels of all sets, of shape (n_rows, n_sets, n_classes)."""
    return np.stack([one_hot(codes, cache.n_classes) for codes in sets], axis=1)


def _labels_from_scores(scores: np.ndarray, Y: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """The class of every row, set by set: shape (n_sets, n_rows); given labels are kept."""
    out = np.empty(Y.shape[1::-1], dtype=np.intp)
    for number in range(Y.shape[1]):
        given = Y[:, number]
        shares = distributions(scores[:, number], given, floor)
        out[number] = np.where(given.any(axis=1), given.argmax(axis=1), shares.argmax(axis=1))
    return out


def label_propagation(cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelings]:
    """LP: conjugate gradients for all sets at once where they converge quickly, else a factorisation for each set."""
    Y = _one_hot_sets(cache, sets)
    for params in candidates:
        start = perf_counter()
        found = _iterated_lp(cache, params["sigma"], Y) if len(Y) > FEW_ROWS else None
        if found is None:
            S, log_degree = affinity(cache.sq, cache.sigma(params["sigma"]))
            parts = (propagate_exact(S, log_degree, Y[:, i]).scores for i in range(Y.shape[1]))
            found = np.concatenate(
                [_labels_from_scores(part[:, None], Y[:, i : i + 1]) for i, part in enumerate(parts)]
            )
        yield Labelings(params, found, perf_counter() - start)


def _iterated_lp(cache: DatasetCache, ratio: float, Y: np.ndarray) -> np.ndarray | None:
    tol = 1e-6
    T, weight = transition(cache.sq, cache.sigma(ratio))
    T[T < TINY_WEIGHT] = 0.0
    if not propagate(T, Y[:, 0], weight=weight, tol=tol, max_iter=QUICK).converged:
        return None
    solution = propagate(T, Y, weight=weight, tol=tol, max_iter=3 * QUICK)
    return _labels_from_scores(solution.scores, Y, floor=10 * tol) if solution.converged else None


def label_spreading(cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelings]:
    """LS: one affinity per width, one factorisation per alpha, all sets solved together."""
    Y = _one_hot_sets(cache, sets)
    for ratio, group in _groups(candidates, "sigma"):
        start = perf_counter()
        S, _ = affinity(cache.sq, cache.sigma(ratio))
        spent = (perf_counter() - start) / len(group)
        for params in group:
            start = perf_counter()
            found = _labels_from_scores(spread_exact(S, Y, alpha=params["alpha"]).scores, Y)
            yield Labelings(params, found, spent + perf_counter() - start)


def linear_neighborhoods(cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelings]:
    """LNP."""
    return _over_neighbors(cache, candidates, sets, neighborhood_graph)


def neighbor_spreading(cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelings]:
    """Label spreading on neighbours, whose limit has the form of LNP's, (1 - alpha) (I - alpha S)^-1 Y."""
    return _over_neighbors(cache, candidates, sets, lambda rows, k: normalized_knn(knn_graph(rows, k)))


def _over_neighbors(
    cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray], make_graph: Callable[[Any, int], Any]
) -> Iterator[Labelings]:
    """One graph per number of neighbours, one factorisation per alpha, all sets solved together."""
    Y = _one_hot_sets(cache, sets)
    for n_neighbors, group in _groups(candidates, "n_neighbors"):
        start = perf_counter()
        graph = make_graph(cache.rows, n_neighbors)
        spent = (perf_counter() - start) / len(group)
        for params in group:
            start = perf_counter()
            found = _labels_from_scores(_solve(graph, Y, params["alpha"]), Y)
            yield Labelings(params, found, spent + perf_counter() - start)


def _solve(graph: Any, Y: np.ndarray, alpha: float) -> np.ndarray:
    """The limit (1 - alpha) (I - alpha W)^-1 Y; beyond `MOST_DENSE` rows by iteration."""
    if len(Y) > MOST_DENSE:
        return iterate(graph, Y, alpha=alpha).scores
    A = graph.astype(np.float64 if len(Y) <= FEW_ROWS else np.float32).toarray()
    A *= -alpha
    A[np.diag_indices_from(A)] += 1.0
    factor = linalg.lu_factor(A, overwrite_a=True, check_finite=False)
    source = ((1.0 - alpha) * Y).reshape(len(Y), -1).astype(A.dtype)
    return linalg.lu_solve(factor, source, overwrite_b=True, check_finite=False).reshape(Y.shape)


def kernel_vote(cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray]) -> Iterator[Labelings]:
    """The vote exp(-d^2 / 2 sigma^2) of the labelled rows, from the shared distances."""
    for params in candidates:
        start = perf_counter()
        epsilon = 2.0 * cache.sigma(params["sigma"]) ** 2
        found = np.empty((len(sets), len(cache.rows)), dtype=np.intp)
        for number, codes in enumerate(sets):
            given = np.flatnonzero(codes >= 0)
            potentials = class_potentials(cache.sq[:, given], codes[given], cache.n_classes, epsilon)
            found[number] = np.where(codes >= 0, codes, potentials.argmax(axis=1))
        yield Labelings(params, found, perf_counter() - start)


def _groups(candidates: list[Params], name: str) -> list[tuple[Any, list[Params]]]:
    """Candidates that share the value of a parameter."""
    values = dict.fromkeys(params[name] for params in candidates)
    return [(value, [params for params in candidates if params[name] == value]) for value in values]
