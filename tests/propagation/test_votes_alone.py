"""Labels from votes alone."""

from __future__ import annotations

import numpy as np
import pytest

from otprop._validation import ParameterError
from tests.voters import NAMES, quick, trees, voter

ALL_TREES = True


def test_votes_alone_label_rows_better_than_their_majority():
    X, truth, _ = trees(distance=2.5)
    votes = np.column_stack([voter(truth, 0.35, number) for number in range(3)])
    with pytest.warns(UserWarning, match="error cannot be checked. Label 20 random rows"):
        model = quick().fit(X, [None] * len(truth), votes=NAMES[votes])
    counts = np.stack([(votes == code).sum(axis=1) for code in range(3)], axis=1)
    assert (model.transduction_ == NAMES[truth]).mean() > (counts.argmax(axis=1) == truth).mean() + 0.05
    assert model.error_range_ == (0.0, 1.0)
    assert [np.isnan(one.accuracy) for one in model.voters_] == [True] * 3
    assert (model.round_ == 1).all()
    assert {one.reason for one in model.suggest(20, random_share=1.0)} == {"random"}
    assert model.predict(X).shape == (len(truth),)


def test_votes_alone_keep_a_class_that_few_rows_have():
    X, truth, _ = trees(distance=2.5)
    votes = voter(np.minimum(truth, 1), 0.1, 0, n_classes=2)
    votes[0] = 2
    with pytest.warns(UserWarning, match="y has no label"):
        model = quick().fit(X, np.full(len(truth), -1), votes=votes)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.label_distributions_.shape == model.predict_proba(X).shape == (len(truth), 3)


def test_votes_alone_need_a_vote():
    X, _, y = trees()
    with pytest.raises(ParameterError, match="votes are empty, and y has no label"):
        quick().fit(X, np.full(len(y), -1), votes=np.full((len(y), 2), np.nan))
