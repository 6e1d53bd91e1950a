"""Votes as evidence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from otprop._validation import ParameterError
from otprop._votes import read_votes
from otprop.evidence.held_out import make_folds
from otprop.evidence.votes import VotesSource
from tests.voters import accuracy, quick, trees, voter

ALL_TREES = True


def test_a_voter_copied_twice_does_not_count_twice():
    once, thrice, three_voters = [], [], []
    for seed in range(3):
        X, truth, y = trees(seed=seed, distance=2.0)
        votes = voter(truth, 0.4, seed)[:, None]
        once.append(accuracy(X, truth, y, votes))
        thrice.append(accuracy(X, truth, y, np.repeat(votes, 3, axis=1)))
        others = np.column_stack([voter(truth, 0.4, 10 * seed + number) for number in range(3)])
        three_voters.append(accuracy(X, truth, y, others))
    assert np.mean(thrice) == pytest.approx(np.mean(once), abs=0.015)
    assert np.mean(three_voters) > np.mean(thrice)


def test_silence_that_tells_the_class_is_learnt():
    X, truth, y = trees(distance=0.3, n_labels=60)
    votes = np.where(truth == 2, np.nan, np.random.default_rng(0).integers(2, size=len(y)))  # silent on one class
    model = quick().fit(X, y, votes=votes[:, None])
    silent = np.isnan(votes) & (y == -1)
    assert (model.transduction_ == 2)[silent].mean() > 0.9


def test_a_voter_that_is_always_wrong_is_understood():
    X, truth, y = trees(n_classes=2, distance=0.3, n_labels=60)
    model = quick().fit(X, y, votes=(1 - truth)[:, None])
    assert (model.transduction_ == truth)[y == -1].mean() > 0.9
    assert model.voters_[0].high < 0.1


def test_probabilities_say_more_than_the_class_they_make_most_probable():
    sure, hard = [], []
    for seed in range(4):
        X, truth, y = trees(seed=seed, n_classes=2, distance=0.5, n_labels=60)
        log_odds = 1.5 * np.random.default_rng(seed).normal(size=len(y)) + np.where(truth == 1, 1.0, -1.0)
        first, second = (1.0 / (1.0 + np.exp(-log_odds * scale)) for scale in (1.0, 0.2))  # the second is too modest
        votes = {"one": np.column_stack([1.0 - first, first]), "two": np.column_stack([1.0 - second, second])}
        sure.append(accuracy(X, truth, y, {"one": votes["one"]}))
        hard.append(accuracy(X, truth, y, {"one": (first > 0.5).astype(int)}))
        modest = accuracy(X, truth, y, {"two": votes["two"]})
        assert modest > accuracy(X, truth, y) - 0.02
    assert np.mean(sure) > np.mean(hard)


def test_explain_shows_the_votes_on_rows_of_the_fit_only():
    X, truth, y = trees(n_classes=2)
    votes = voter(truth, 0.1, 0, n_classes=2)
    model = quick().fit(X, y, votes=votes)
    assert "votes" not in model.explain(X[100:120])
    by_votes = model.explain(X[100:120], rows=np.arange(100, 120))["votes"]
    assert (by_votes.argmax(axis=1) == votes[100:120]).all()
    with pytest.raises(ParameterError, match="rows must be from 0 to 239, since fit had 240 rows"):
        model.explain(X[:1], rows=[240])
    with pytest.raises(ParameterError, match="rows must be one row number for each of the 2 rows of X"):
        model.explain(X[:2], rows=[0])
    again = pickle.loads(pickle.dumps(model))
    assert "votes" not in again.explain(X[:1], rows=[0])


def log_odds(votes, y):
    """Log-odds of class 1 by the votes alone, learnt from the labels in y."""
    source = VotesSource(read_votes(votes, np.arange(2), len(y)), 2)
    held_out = make_folds(y, 2, 0)
    found = source.fit(y, np.ones(len(y)), held_out).rows
    return found[:, 1] - found[:, 0]


def test_agreement_makes_independent_voters_count_and_copies_not():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2000)
    y = np.where(np.arange(2000) < 40, truth, -1)
    one = voter(truth, 0.25, 0, n_classes=2)
    others = np.column_stack([one, *(voter(truth, 0.25, seed, n_classes=2) for seed in (1, 2))])
    alone = np.abs(log_odds(one[:, None], y)).max()
    assert np.abs(log_odds(np.repeat(one[:, None], 3, axis=1), y)).max() < 1.3 * alone
    unanimous = np.ptp(others, axis=1) == 0
    assert np.abs(log_odds(others, y))[unanimous].max() > 2.0 * alone


def test_a_voter_that_does_not_look_hardly_counts():
    truth = np.random.default_rng(0).integers(2, size=400)
    y = np.where(np.arange(400) < 60, truth, -1)
    noise = np.random.default_rng(1).integers(2, size=(400, 1))
    assert np.abs(log_odds(noise, y)).max() < 0.5
    assert np.abs(log_odds(voter(truth, 0.2, 0, n_classes=2)[:, None], y)).max() > 1.0
