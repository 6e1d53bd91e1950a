"""Blocks of rows, and threads to work on them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from otprop.geometry.parallel import Jobs, in_fixed_blocks, row_blocks


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_jobs_give_results_in_order_whatever_block_ends_first(n_jobs):
    def wait(number):
        time.sleep(0.01 * (3 - number % 4))
        return number

    assert list(Jobs(n_jobs).run(wait, range(8))) == list(range(8))


@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 20])
def test_row_blocks_cover_every_row_once(n_rows):
    blocks = row_blocks(n_rows, 8)
    covered = [row for block in blocks for row in range(n_rows)[block]]
    assert covered == list(range(n_rows))
    assert all(0 < block.stop - block.start <= 8 for block in blocks)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 20])
def test_in_fixed_blocks_has_blocks_of_one_size_and_the_result_of_each_row(n_rows):
    rows, sizes = np.random.default_rng(0).normal(size=(n_rows, 3)), []

    def double(block):
        sizes.append(len(block))
        return 2 * block

    np.testing.assert_array_equal(in_fixed_blocks(double, rows, 8), 2 * rows)
    assert set(sizes) == {8}
