"""Work shared between splits gives the labels that a fit of each split gives."""

from __future__ import annotations

import numpy as np
import pytest

from otprop_paper.baselines import LNP, KernelVote, LabelPropagation, LabelSpreading
from otprop_paper.benchmark import shared_graphs
from otprop_paper.benchmark.prepared import DatasetCache, PreparedData
from otprop_paper.benchmark.protocol import Cell, draw


@pytest.fixture(scope="module")
def cache(iris: PreparedData) -> DatasetCache:
    return DatasetCache(iris)


@pytest.fixture(scope="module")
def sets(iris: PreparedData) -> list[np.ndarray]:
    return [draw(iris.y, Cell(percent, split)) for percent in (5, 35) for split in range(2)]


def _agree(found: np.ndarray, expected: list[np.ndarray]) -> None:
    assert found.shape == (len(expected), len(expected[0]))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_label_propagation(cache: DatasetCache, sets: list[np.ndarray], ratio: float) -> None:
    [(_, found, _, _)] = shared_graphs.label_propagation(cache, [{"sigma": ratio}], sets)
    model = LabelPropagation(sigma=ratio * cache.data.gap)
    _agree(found, [model.fit(cache.data.X, codes).transduction_ for codes in sets])


def test_label_propagation_by_iteration_finds_nearly_the_same(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    found = shared_graphs._iterated_lp(cache, 2.0, shared_graphs._one_hot_sets(cache, sets))
    assert found is not None
    model = LabelPropagation(sigma=2.0 * cache.data.gap)
    expected = np.stack([model.fit(cache.data.X, codes).transduction_ for codes in sets])
    assert np.mean(found == expected) > 0.99


def test_label_spreading_for_several_widths_and_strengths(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    candidates = [{"sigma": s, "alpha": a} for s in (0.5, 2.0) for a in (0.5, 0.99)]
    results = list(shared_graphs.label_spreading(cache, candidates, sets))
    assert [params for params, *_ in results] == candidates
    for params, found, _, _ in results:
        model = LabelSpreading(sigma=params["sigma"] * cache.data.gap, alpha=params["alpha"])
        _agree(found, [model.fit(cache.data.X, codes).transduction_ for codes in sets])


def test_linear_neighborhoods(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    for params, found, _, _ in shared_graphs.linear_neighborhoods(cache, [{"n_neighbors": 7, "alpha": 0.9}], sets):
        model = LNP(params["n_neighbors"], alpha=params["alpha"], tol=1e-9)
        _agree(found, [model.fit(cache.data.X, codes).transduction_ for codes in sets])


def test_label_spreading_on_neighbours(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    candidates = [{"n_neighbors": k, "alpha": a} for k in (5, 10) for a in (0.5, 0.95)]
    for params, found, _, _ in shared_graphs.neighbor_spreading(cache, candidates, sets):
        model = LabelSpreading("knn", n_neighbors=params["n_neighbors"], alpha=params["alpha"], tol=1e-9)
        _agree(found, [model.fit(cache.data.X, codes).transduction_ for codes in sets])


def test_kernel_vote(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    for params, found, _, _ in shared_graphs.kernel_vote(cache, [{"sigma": 0.5}, {"sigma": 5.0}], sets):
        model = KernelVote(2 * (params["sigma"] * cache.data.gap) ** 2)
        _agree(found, [model.fit(cache.data.X, codes).transduction_ for codes in sets])


def test_given_labels_are_never_changed(cache: DatasetCache, sets: list[np.ndarray]) -> None:
    [(_, found, _, _)] = shared_graphs.label_spreading(cache, [{"sigma": 10.0, "alpha": 0.99}], sets)
    for answer, codes in zip(found, sets, strict=True):
        assert (answer[codes >= 0] == codes[codes >= 0]).all()
