"""Costs carried over the rounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

import otprop.geometry.cost
from otprop.geometry.cost import ArrayCost, RowCost, cost_summary
from otprop.geometry.pairwise import MatrixCost


@pytest.fixture
def matrix():
    return pairwise_distances(np.random.default_rng(0).normal(size=(60, 3)), metric="sqeuclidean")


class CountingPairs(MatrixCost):
    """Counts how many costs were asked for."""

    def __init__(self, matrix):
        super().__init__(matrix)
        self.asked = 0

    def columns(self, sources, new=None):
        columns = super().columns(sources, new)

        def counted(here):
            self.asked += len(here) * len(sources)
            return columns(here)

        return counted


def assembled(cost):
    out = np.full(cost.shape, np.nan)
    for lines, block in cost.blocks():
        out[lines] = block
    return out


@pytest.mark.parametrize("block_bytes", [1, 8 * 25 * 3, 2**20])
@pytest.mark.parametrize("memory_limit", [0, 2**30])
def test_after_any_number_of_rounds_the_blocks_are_the_matrix(matrix, monkeypatch, block_bytes, memory_limit):
    monkeypatch.setattr(otprop.geometry.cost, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(1)
    cost = RowCost(MatrixCost(matrix), np.arange(10, 60), np.arange(10), memory_limit)
    while len(cost.unlabeled):
        np.testing.assert_array_equal(assembled(cost), matrix[np.ix_(cost.unlabeled, cost.labeled)])
        moved = rng.random(len(cost.unlabeled)) < 0.3
        moved[0] = True
        leaving = cost.unlabeled[moved]
        cost.advance(moved)
        assert cost.labeled[-len(leaving) :].tolist() == leaving.tolist()
        assert len(cost.unlabeled) + len(cost.labeled) == 60


def test_no_cost_is_computed_twice(matrix):
    pairs = CountingPairs(matrix)
    cost = RowCost(pairs, np.arange(10, 60), np.arange(10))
    assert pairs.asked == 10 * 50
    assembled(cost)
    assembled(cost)
    cost.advance(np.arange(50) < 5)
    assert pairs.asked == 10 * 50 + 5 * 45


def test_costs_beyond_the_limit_are_computed_anew_and_not_kept(matrix):
    pairs = CountingPairs(matrix)
    cost = RowCost(pairs, np.arange(10, 60), np.arange(10), memory_limit=100)
    assert not cost.stored
    assert pairs.asked == 0
    assembled(cost)
    assembled(cost)
    assert pairs.asked == 2 * 10 * 50


def test_costs_that_grow_beyond_the_limit_are_let_go_of(matrix):
    cost = RowCost(MatrixCost(matrix), np.arange(5, 60), np.arange(5), memory_limit=8 * 5 * 55)
    assert cost.stored
    cost.advance(np.arange(55) < 20)
    assert not cost.stored
    np.testing.assert_array_equal(assembled(cost), matrix[np.ix_(cost.unlabeled, cost.labeled)])


def test_only_small_costs_are_kept_in_single_precision(matrix, monkeypatch):
    monkeypatch.setattr(otprop.geometry.cost, "BLOCK_BYTES", 8 * 10)  # a line a block
    cost = RowCost(MatrixCost(matrix), np.arange(10, 60), np.arange(10))
    limit = float(np.median(assembled(cost).max(axis=1)))
    cost.narrow(limit)
    dtypes = {block.dtype.name for _, block in cost.blocks()}
    assert dtypes == {"float32", "float64"}
    assert all((block.dtype == np.float32) == (block.max() <= limit) for _, block in cost.blocks())


def test_the_nearest_row_of_every_row_and_the_mean_cost_are_found(matrix):
    of_targets, of_sources, mean = cost_summary(RowCost(MatrixCost(matrix), np.arange(10, 60), np.arange(10)))
    np.testing.assert_array_equal(of_targets, matrix[10:, :10].min(axis=1))
    np.testing.assert_array_equal(of_sources, matrix[10:, :10].min(axis=0))
    assert mean == pytest.approx(matrix[10:, :10].mean())


def test_extreme_costs_are_not_narrowed_to_float32():
    for size in (1e-35, 1e37):
        matrix = np.full((6, 6), size)
        cost = RowCost(MatrixCost(matrix), np.arange(3, 6), np.arange(3), float32_below=np.inf)
        (block,) = [block for _, block in cost.blocks()]
        assert np.isfinite(block).all()
        np.testing.assert_allclose(block * cost.pairs.scale, matrix[3:, :3], rtol=1e-7)
        array = RowCost(_Unscaled(matrix), np.arange(3, 6), np.arange(3), float32_below=size)
        assert {block.dtype for _, block in array.blocks()} == {np.dtype(np.float64)}


class _Unscaled(MatrixCost):
    def __init__(self, matrix):
        self.matrix = matrix


def test_the_mean_of_the_largest_costs_does_not_overflow():
    _, _, mean = cost_summary(ArrayCost(np.full((50, 4), 1e308)))
    assert mean == pytest.approx(1e308)
