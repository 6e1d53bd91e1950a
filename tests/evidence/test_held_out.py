"""Which labels are hidden, and with which others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.evidence import held_out as module
from otprop.evidence.held_out import GROUP_CORRELATION, MAX_LEAVE_ONE_OUT, N_FOLDS, label_correlation, make_folds


@settings(deadline=None)
@given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=200), seed=st.integers(0, 9))
def test_a_class_keeps_a_label_whichever_fold_is_hidden(codes, seed):
    codes = np.array(codes)
    hidden = make_folds(codes, 4, seed)
    np.testing.assert_array_equal(hidden.codes, codes[hidden.rows])
    assert len(np.unique(hidden.rows)) == len(hidden)
    counts = np.bincount(codes[codes >= 0], minlength=4)
    assert sorted(hidden.rows) == sorted(np.flatnonzero((codes >= 0) & (counts[codes] >= 2)))
    for fold in range(hidden.n_folds):
        kept = counts - np.bincount(hidden.codes[hidden.fold == fold], minlength=4)
        assert (kept[counts > 0] >= 1).all()


def test_few_labels_are_hidden_one_by_one_and_many_in_folds_that_share_out_every_class():
    few, many = np.arange(MAX_LEAVE_ONE_OUT) % 2, np.arange(10 * MAX_LEAVE_ONE_OUT) % 2
    assert make_folds(few, 2, 0).leave_one_out
    assert sorted(make_folds(few, 2, 0).fold) == list(range(MAX_LEAVE_ONE_OUT))
    hidden = make_folds(many, 2, 0)
    assert not hidden.leave_one_out
    assert hidden.n_folds == N_FOLDS
    sizes = [np.bincount(hidden.codes[hidden.fold == fold]).tolist() for fold in range(N_FOLDS)]
    assert sizes == [[50, 50]] * N_FOLDS


def test_of_many_rows_two_folds_are_enough_and_never_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", 1000)
    monkeypatch.setattr(module, "MAX_HELD_OUT", 300)
    hidden = make_folds(np.arange(2000) % 2, 2, 0)
    assert hidden.n_folds == 2
    assert set(hidden.fold) == {0, 1}
    assert len(hidden) == 300
    np.testing.assert_array_equal(hidden.codes, hidden.rows % 2)


def test_without_a_second_label_nothing_can_be_hidden():
    hidden = make_folds(np.array([0, 1, 2, -1]), 3, 0)
    assert len(hidden) == 0
    assert hidden.leave_one_out


def test_the_seed_decides_who_shares_a_fold():
    codes = np.arange(400) % 3
    first, again, other = (make_folds(codes, 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    assert (first.rows != other.rows).any()


@pytest.mark.parametrize("n_classes", [2, 20])
def test_all_labels_of_a_class_lie_in_different_folds_of_a_classifier_as_far_as_possible(n_classes):
    hidden = make_folds(np.arange(3 * n_classes) % n_classes, n_classes, 0)
    for code in range(n_classes):
        assert len(set(hidden.fold[hidden.codes == code] % N_FOLDS)) == 3


def test_what_is_left_of_a_class_speaks_for_what_was_hidden_of_it():
    codes = np.array([0, 0, 0, 1, 1, 2, -1])
    hidden = make_folds(codes, 3, 0)  # each alone, so that of three labels two are left and of two one
    expected = np.array([[1.5, 1, 1]] * 3 + [[1, 2, 1]] * 2)
    np.testing.assert_allclose(hidden.class_mass_correction(), expected)
    np.testing.assert_allclose(hidden.leave_one_out_correction(), expected)


def test_in_folds_every_class_is_lifted_by_what_the_fold_took_from_it():
    hidden = make_folds(np.arange(200) % 2, 2, 0)
    np.testing.assert_allclose(hidden.class_mass_correction(), 100 / 80)  # a fifth of each class, whichever the fold
    np.testing.assert_allclose(hidden.leave_one_out_correction()[np.arange(200), hidden.codes], 100 / 99)


def test_with_many_classes_of_few_labels_a_sample_of_the_labels_is_left_out_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "MAX_LEAVE_ONE_OUT_MANY_CLASSES", 70)
    codes = np.repeat(np.arange(40), 5)
    hidden = make_folds(codes, 40, 0)
    assert hidden.leave_one_out
    assert len(hidden) == len(np.unique(hidden.rows)) == 70
    assert len(np.unique(hidden.codes)) > 30  # from all over the classes
    np.testing.assert_array_equal(hidden.counts, 5)
    np.testing.assert_array_equal(hidden.rows, make_folds(codes, 40, 0).rows)


def test_labels_of_repeated_measurements_are_worth_one_label_per_group():
    groups = np.repeat(np.arange(12), 8)
    same = np.repeat(np.arange(12) % 2, 8)
    mixed = np.random.default_rng(0).integers(0, 2, 96)
    assert label_correlation(same, groups) == pytest.approx(1.0)
    assert label_correlation(mixed, groups) == GROUP_CORRELATION
    assert make_folds(same, 2, 0, groups=groups).worth == pytest.approx(1 / 8)
    assert make_folds(same, 2, 0).worth == 1.0


def test_label_correlation_is_that_of_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 9, 80)
    codes = (rng.random(80) < rng.random(9)[groups]).astype(int)
    sizes = np.bincount(groups)
    means = np.bincount(groups, codes) / sizes
    between = sizes @ (means - codes.mean()) ** 2 / 8
    within = ((codes - means[groups]) ** 2).sum() / 71
    size = (80 - sizes @ sizes / 80) / 8
    expected = (between - within) / (between + (size - 1) * within)
    assert label_correlation(codes, groups) == pytest.approx(max(expected, GROUP_CORRELATION))
