"""From a request to a job: groups, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop import OtpropError

FAST = {"evidence": ["forest"]}


def labelled(frame, rows):
    return frame.assign(kind=frame["kind"].where(rows))


def test_groups_by_name_are_no_feature_and_widen_the_range(visits):
    frame = labelled(visits, visits["site"].isin([f"site {number}" for number in (1, 4, 6, 8)]))
    result = otprop.label(frame, "kind", groups="site", settings=FAST)
    assert "site" not in [use.name for use in result.job.columns if use.width]
    assert result.estimator.error_.evidence.grouped
    same = otprop.label(frame.drop(columns="site"), "kind", groups=list(frame["site"]), settings=FAST)
    assert same.table["kind_label"].tolist() == result.table["kind_label"].tolist()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("kind", "groups='kind': names the target"),
        ("sit", "there is no column 'sit'"),
        ([1, 2], "has 2 values"),
        (5, "groups must name a column, or be a list with the value of each row; got int"),
        (set(range(400)), "be a list with the value of each row; got set"),
        (np.array(3), "be a list with the value of each row; got ndarray"),
        (["one"] * 400, "has one value, 'one', for all rows"),
        ([None] * 400, "is empty in 80 of them, the first being row 1"),
        ([pd.NA, *range(399)], "is empty in 1 of them, the first being row 1"),
        ([pd.NaT, *range(399)], "is empty in 1 of them, the first being row 1"),
        ([np.array([1, 2])] * 400, "has one value, .*, for all rows"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(visits, groups, message):
    frame = labelled(visits, np.arange(400) % 5 == 0)
    with pytest.raises(OtpropError, match=message):
        otprop.label(frame, "kind", groups=groups)


def test_a_group_for_each_row_is_without_effect(visits):
    frame = labelled(visits, np.arange(400) % 5 == 0)
    notes = otprop.label(frame, "kind", groups=list(range(400)), settings=FAST).notes
    assert any(note.startswith("without effect: groups") for note in notes)


def test_all_threads_are_used_unless_a_number_is_given(visits):
    frame = labelled(visits, np.arange(len(visits)) % 3 == 0)
    found = [otprop.label(frame, "kind", settings=FAST, n_jobs=jobs).estimator.n_jobs for jobs in (None, 1)]
    assert found == [-1, 1]


def test_the_vectors_are_not_copied_by_the_estimator(visits):
    result = otprop.label(labelled(visits, np.arange(len(visits)) % 3 == 0), "kind", settings=FAST)
    assert np.shares_memory(result.job.vectors, result.estimator._rows)


@pytest.mark.parametrize("value", [None, np.nan, pd.NA])
def test_a_missing_value_for_unlabelled_rows_is_the_default(visits, value):
    frame = labelled(visits, np.arange(400) % 5 == 0)
    usual, given = (otprop.label(frame, "kind", settings=FAST, **more) for more in ({}, {"unlabeled": value}))
    assert given.notes == usual.notes
    assert given.table["kind_label"].tolist() == usual.table["kind_label"].tolist()


def test_a_marker_that_is_no_value_is_refused(visits):
    with pytest.raises(OtpropError, match="unlabeled must be a value that means unlabelled, or a list of these; got"):
        otprop.label(visits, "kind", unlabeled=object())
