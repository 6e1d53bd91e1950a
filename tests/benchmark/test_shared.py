"""Work shared between splits gives the labels that a fit of each split gives."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.baselines import LNP, KernelVote, LabelPropagation, LabelSpreading
from otprop.benchmark import shared
from otprop.benchmark.protocol import Cell, draw
from otprop.benchmark.workspace import Data, Workspace


@pytest.fixture(scope="module")
def work(iris: Data) -> Workspace:
    return Workspace(iris)


@pytest.fixture(scope="module")
def sets(iris: Data) -> list[np.ndarray]:
    return [draw(iris.y, Cell(percent, split)) for percent in (5, 35) for split in range(2)]


def _agree(found: np.ndarray, expected: list[np.ndarray]) -> None:
    assert found.shape == (len(expected), len(expected[0]))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_label_propagation(work: Workspace, sets: list[np.ndarray], ratio: float) -> None:
    [(_, found, _)] = shared.label_propagation(work, [{"sigma": ratio}], sets)
    model = LabelPropagation(sigma=ratio * work.data.gap)
    _agree(found, [model.fit(work.data.X, codes).transduction_ for codes in sets])


def test_label_propagation_by_iteration_finds_nearly_the_same(work: Workspace, sets: list[np.ndarray]) -> None:
    found = shared._iterated_lp(work, 2.0, shared._tables(work, sets))
    assert found is not None
    model = LabelPropagation(sigma=2.0 * work.data.gap)
    expected = np.stack([model.fit(work.data.X, codes).transduction_ for codes in sets])
    assert np.mean(found == expected) > 0.99


def test_label_spreading_for_several_widths_and_strengths(work: Workspace, sets: list[np.ndarray]) -> None:
    candidates = [{"sigma": s, "alpha": a} for s in (0.5, 2.0) for a in (0.5, 0.99)]
    results = list(shared.label_spreading(work, candidates, sets))
    assert [params for params, _, _ in results] == candidates
    for params, found, _ in results:
        model = LabelSpreading(sigma=params["sigma"] * work.data.gap, alpha=params["alpha"])
        _agree(found, [model.fit(work.data.X, codes).transduction_ for codes in sets])


def test_linear_neighborhoods(work: Workspace, sets: list[np.ndarray]) -> None:
    for params, found, _ in shared.linear_neighborhoods(work, [{"n_neighbors": 7, "alpha": 0.9}], sets):
        model = LNP(params["n_neighbors"], alpha=params["alpha"], tol=1e-9)
        _agree(found, [model.fit(work.data.X, codes).transduction_ for codes in sets])


def test_label_spreading_on_neighbours(work: Workspace, sets: list[np.ndarray]) -> None:
    candidates = [{"n_neighbors": k, "alpha": a} for k in (5, 10) for a in (0.5, 0.95)]
    for params, found, _ in shared.neighbor_spreading(work, candidates, sets):
        model = LabelSpreading("knn", n_neighbors=params["n_neighbors"], alpha=params["alpha"], tol=1e-9)
        _agree(found, [model.fit(work.data.X, codes).transduction_ for codes in sets])


def test_kernel_vote(work: Workspace, sets: list[np.ndarray]) -> None:
    for params, found, _ in shared.kernel_vote(work, [{"sigma": 0.5}, {"sigma": 5.0}], sets):
        model = KernelVote(2 * (params["sigma"] * work.data.gap) ** 2)
        _agree(found, [model.fit(work.data.X, codes).transduction_ for codes in sets])


def test_given_labels_are_never_changed(work: Workspace, sets: list[np.ndarray]) -> None:
    [(_, found, _)] = shared.label_spreading(work, [{"sigma": 10.0, "alpha": 0.99}], sets)
    for answer, codes in zip(found, sets, strict=True):
        assert (answer[codes >= 0] == codes[codes >= 0]).all()
