"""Labelled rows that differ from the unlabelled ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop.evidence.scaling import ScaledRows
from otprop.evidence.shift import matched_groups, measure_shift, weighted_auc

ALL_TREES = True


def rows_and_codes(labelled, n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[:, 0] = np.linspace(-2, 2, n_rows)
    codes = np.full(n_rows, -1)
    chosen = labelled(rng, n_rows)
    codes[chosen] = rng.integers(0, 2, len(chosen))
    return ScaledRows.of(X), codes


def at_random(rng, n_rows):
    return rng.choice(n_rows, 80, replace=False)


def first_rows(rng, n_rows):
    return np.arange(80)


def test_labels_drawn_at_random_show_no_shift():
    for seed in range(8):
        scaled, codes = rows_and_codes(at_random, seed=seed)
        assert not measure_shift(scaled, codes, np.ones(len(codes)), 0).found


def test_first_rows_of_a_sorted_table_show_a_shift_in_the_column_it_is_sorted_by():
    scaled, codes = rows_and_codes(first_rows)
    shift = measure_shift(scaled, codes, np.ones(len(codes)), 0)
    assert shift.found
    assert shift.auc > 0.95
    assert shift.importance.argmax() == 0
    assert shift.importance.sum() == pytest.approx(1.0)


def test_sparse_rows_give_the_same_shift_as_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(400, 6)).astype(float)
    X[:100, 0] += 2
    codes = np.where(np.arange(400) < 100, 0, -1)
    found = measure_shift(ScaledRows.of(sp.csr_array(X)), codes, np.ones(400), 0)
    assert found.found
    assert found.importance.argmax() == 0


def test_too_few_rows_to_compare_give_none():
    scaled, codes = rows_and_codes(lambda rng, n: np.arange(5))
    assert measure_shift(scaled, codes, np.ones(len(codes)), 0) is None


def test_weights_can_take_a_shift_of_shares_away():
    rng = np.random.default_rng(1)
    kind = rng.random(2000) < 0.1
    X = rng.normal(size=(2000, 3)) + 4 * kind[:, None]
    codes = np.full(2000, -1)
    codes[rng.choice(np.flatnonzero(kind), 60, replace=False)] = 1
    codes[rng.choice(np.flatnonzero(~kind), 60, replace=False)] = 0
    scaled = ScaledRows.of(X)
    rows_per_label = np.where(codes == 1, 0.1, 0.9)
    assert measure_shift(scaled, codes, np.ones(2000), 0).found
    assert not measure_shift(scaled, codes, np.where(codes >= 0, rows_per_label, 1.0), 0).found


def test_weighted_auc_counts_a_row_of_weight_two_twice():
    scores, positive = np.array([0.1, 0.4, 0.4, 0.8, 0.9]), np.array([False, True, False, False, True])
    twice = weighted_auc(scores, positive, np.array([1.0, 2.0, 1.0, 1.0, 1.0]))[0]
    again = weighted_auc(scores[[0, 1, 1, 2, 3, 4]], positive[[0, 1, 1, 2, 3, 4]], np.ones(6))[0]
    assert twice == pytest.approx(again)
    assert weighted_auc(scores, positive, np.ones(5))[0] == pytest.approx((1.5 + 3) / 6)


def test_matched_groups_are_blocks_of_the_sorted_column():
    scaled, codes = rows_and_codes(first_rows)
    groups = matched_groups(scaled, codes, np.array([1.0, 0, 0, 0, 0]), 0)
    labelled = groups[:80]
    assert (groups[80:] == -1).all()
    assert 2 <= len(np.unique(labelled)) <= 20
    assert np.count_nonzero(np.diff(labelled)) == len(np.unique(labelled)) - 1  # each group is one run of rows


def test_matched_groups_are_single_rows_where_labels_are_random():
    found = []
    for seed in range(5):
        scaled, codes = rows_and_codes(at_random, seed=seed)
        groups = matched_groups(scaled, codes, np.full(5, 0.2), 0)
        found.append(80 if groups is None else len(np.unique(groups[codes >= 0])))
    assert np.mean(found) > 55
