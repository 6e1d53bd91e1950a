"""`OTP.fit(groups=...)`: whole groups of rows were labelled."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP
from otprop._validation import ParameterError
from otprop.evidence.held_out import balanced_folds, design_effect, make_folds


def patients(n_patients=80, visits=6, n_labelled=20, seed=0):
    """Rows of patients: visits of a patient are alike, and the class belongs to the patient."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_patients)
    centre = rng.normal(size=(n_patients, 6)) + 0.7 * truth[:, None] * (np.arange(6) < 2)
    patient = np.repeat(np.arange(n_patients), visits)
    X = centre[patient] + 0.1 * rng.normal(size=(len(patient), 6))
    y = np.where(patient < n_labelled, truth[patient], -1)
    return X, truth[patient], y, patient


def test_error_by_group_holds_where_error_by_row_is_far_too_low():
    by_row, by_group, real, holds = [], [], [], []
    for seed in range(3):
        X, truth, y, patient = patients(seed=seed)
        left = y == -1
        with_groups = OTP().fit(X, y, groups=[f"patient {number}" for number in patient])
        by_group.append(with_groups.expected_error_)
        real.append((with_groups.transduction_ != truth)[left].mean())
        low, high = with_groups.error_range_
        holds.append(low <= real[-1] <= high)
        shuffled = np.random.default_rng(seed).permutation(len(y))  # as many groups that tell nothing
        by_row.append(OTP().fit(X, y, groups=patient[shuffled] // 3).error_.evidence.held_out)
    assert np.mean(by_row) < np.mean(real) - 0.2
    assert np.mean(by_group) == pytest.approx(np.mean(real), abs=0.12)
    assert all(holds)


def test_folds_never_split_a_group():
    _, _, y, patient = patients()
    held_out = make_folds(y, 2, 0, groups=np.where(y >= 0, patient, -1))
    for one in np.unique(patient[held_out.rows]):
        assert len(np.unique(held_out.fold[patient[held_out.rows] == one])) == 1
    for fold in range(held_out.n_folds):
        hidden = held_out.hidden_with(held_out.fold == fold)
        assert set(patient[hidden]).isdisjoint(patient[np.setdiff1d(np.flatnonzero(y >= 0), hidden)])


def test_folds_of_groups_are_about_equally_large():
    groups = np.repeat(np.arange(30), np.random.default_rng(0).integers(1, 9, 30))
    sizes = np.bincount(balanced_folds(groups, 0))
    assert len(sizes) == 5
    assert sizes.max() - sizes.min() <= 8


def test_a_class_of_one_group_is_not_held_out():
    codes = np.array([0, 0, 1, 1, 2, 2, -1])
    held_out = make_folds(codes, 3, 0, groups=np.array([0, 1, 0, 1, 2, 2, -1]))
    assert sorted(held_out.rows.tolist()) == [0, 1, 2, 3]


def test_design_effect_counts_rows_of_a_group_once_where_they_are_the_same():
    groups = np.repeat(np.arange(10), 4)
    assert design_effect(groups, 1.0) == pytest.approx(4.0)
    assert design_effect(groups, 0.0) == pytest.approx(1.0)


def test_labels_of_one_group_leave_the_error_unknown():
    X, _, y, patient = patients(n_labelled=4)
    model = OTP().fit(X, y, groups=np.where(y >= 0, 0, patient))
    assert model.error_range_ == (0.0, 1.0)
    assert not (model.transduction_ == -1).any()


def test_a_group_for_each_row_is_the_same_as_no_groups():
    X, _, y, _ = patients()
    model, plain = OTP().fit(X, y, groups=np.arange(len(y))), OTP().fit(X, y)
    np.testing.assert_array_equal(model.label_distributions_, plain.label_distributions_)


def test_groups_of_unlabelled_rows_are_not_used():
    X, _, y, patient = patients()
    groups = np.where(y >= 0, patient, None)
    model, whole = OTP().fit(X, y, groups=groups), OTP().fit(X, y, groups=patient)
    np.testing.assert_array_equal(model.label_distributions_, whole.label_distributions_)


def test_groups_of_another_length_are_refused():
    X, _, y, patient = patients()
    with pytest.raises(ParameterError, match=r"groups has shape \(479,\), expected \(480,\): one group per row"):
        OTP().fit(X, y, groups=patient[1:])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_labelled_row_without_a_group_is_refused(missing):
    X, _, y, patient = patients()
    groups = patient.astype(object)
    groups[3] = missing
    with pytest.raises(ParameterError, match="groups has no value in 1 labelled rows, the first of them row 3"):
        OTP().fit(X, y, groups=groups)


@pytest.mark.filterwarnings("ignore:.*given labels are doubtful")
def test_groups_work_with_label_noise_and_chosen_labels_and_other_costs():
    X, _, y, patient = patients(n_patients=40)
    chosen = np.arange(len(y)) % 7 == 0
    for options, fit in (({"label_noise": "auto"}, {}), ({}, {"chosen": chosen}), ({"cost": "sqeuclidean"}, {})):
        model = OTP(**options).fit(X, y, groups=patient, **fit)
        assert np.isfinite(model.label_distributions_).all()
