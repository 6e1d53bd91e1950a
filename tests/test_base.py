"""What all estimators have in common."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from otprop import OTP
from otprop._validation import ParameterError
from otprop.model_selection import HiddenLabelSplit


def test_score_refuses_rows_without_a_label() -> None:
    X, y = load_iris(return_X_y=True)
    few = np.where(np.arange(150) % 5 == 0, y, -1)
    model = OTP(evidence=None).fit(X, few)
    assert model.score(X, y) > 0.9
    with pytest.raises(ParameterError, match=r"y holds 120 of 150 rows without a label.*HiddenLabelSplit"):
        model.score(X, few)
    with pytest.warns(UserWarning, match="HiddenLabelSplit"):
        assert np.isnan(cross_val_score(OTP(evidence=None), X, few, cv=2)).all()


def test_no_rows_are_said_to_be_none() -> None:
    model = OTP(evidence=None).fit([[0.0], [0.1], [1.0], [1.1]], [0, -1, 1, -1])
    with pytest.raises(ValueError, match="X is an empty list: give at least one row"):
        model.predict([])


@pytest.mark.parametrize(
    ("X", "reason"), [(None, "X is None: pass the table of features"), (np.empty((0, 3)), r"X has no rows.*\(0, 3\)")]
)
def test_no_table_is_said_to_be_none(X, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        OTP().fit(X, [])


def test_cross_val_score_with_hidden_labels_is_the_accuracy_on_them() -> None:
    X, y = load_iris(return_X_y=True)
    few = np.where(np.arange(150) % 5 == 0, y, -1)
    for with_unlabeled in (False, True):
        split = HiddenLabelSplit(n_splits=3, random_state=0, with_unlabeled=with_unlabeled)
        scores = cross_val_score(OTP(evidence=None), X, few, cv=split)
        assert scores.mean() > 0.8


def test_a_split_keeps_the_unlabelled_rows_where_it_is_asked_to() -> None:
    y = np.array([0, 0, 1, 1, -1, -1])
    for kept, hidden in HiddenLabelSplit(n_splits=3, random_state=0, with_unlabeled=True).split(None, y):
        assert {4, 5} <= set(kept)
        assert sorted([*kept, *hidden]) == list(range(6))
