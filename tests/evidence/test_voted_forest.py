"""A forest that learns from votes."""

from __future__ import annotations

import pickle

import numpy as np

from otprop import OTP
from tests.voters import trees, voter

ALL_TREES = True


def test_columns_learn_from_votes_and_show_votes_cast_at_random():
    X, truth, y = trees(n_rows=400, n_classes=2, distance=2.0)
    by_vote = OTP().fit(X, y, votes=voter(truth, 0.2, 0, n_classes=2))
    weights = {source.name: source.weight for source in by_vote.evidence_}
    assert weights["voted_forest"] > 0.1
    noise = np.random.default_rng(5).integers(2, size=len(y))
    by_noise = OTP().fit(X, y, votes=noise)
    weights = {source.name: source.weight for source in by_noise.evidence_}
    assert weights["voted_forest"] < 0.1
    assert weights["votes"] < 0.6
    again = pickle.loads(pickle.dumps(by_vote))
    assert (again.predict(X[:50] + 0.01) == by_vote.predict(X[:50] + 0.01)).all()
