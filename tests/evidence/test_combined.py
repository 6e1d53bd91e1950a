"""All sources together."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.evidence.base import SourceOutput
from otprop.evidence.combined import Evidence
from otprop.evidence.held_out import make_folds
from otprop.evidence.nearness import NearnessSource
from otprop.geometry.pairwise import make_pairwise_cost

X = np.array([[0.0], [0.2], [1.0], [1.2], [0.1], [1.1]])
CODES = np.array([0, 0, 1, 1, -1, -1])
WEIGHTS = np.ones(6)


class Oracle:
    """SourceOutput one class of every row with some probability, of the hidden ones too."""

    def __init__(self, name, truth, probability=0.9):
        self.name, self._said = name, np.log(np.where(np.eye(2)[truth] == 1, probability, 1 - probability))

    def fit(self, codes, weights, hidden):
        return SourceOutput(self._said.astype(np.float32), self._said[hidden.rows])

    def predict_log_proba(self, rows):
        return np.tile(self._said[0], (len(rows), 1))


class Nowhere(NearnessSource):
    """A geometry that reaches the first four rows only, and no new one."""

    def reached(self):
        return np.arange(6) < 4

    def predict_log_proba(self, rows):
        return np.full((len(rows), 2), -np.inf)


def nearness(kind=NearnessSource):
    return kind(make_pairwise_cost(X, "sqeuclidean"), 6, 2, 0.05)


def combine(iterative, *fixed):
    evidence = Evidence(iterative, fixed, make_folds(CODES, 2, 0))
    return evidence, evidence.fit(CODES, WEIGHTS)


def test_what_the_sources_say_is_added_up_by_weight():
    alone = nearness().fit(CODES, WEIGHTS, make_folds(CODES, 2, 0))
    evidence, logits = combine(nearness(), Oracle("forest", np.array([0, 0, 1, 1, 1, 0])))
    said = np.log(np.where(np.eye(2)[[0, 0, 1, 1, 1, 0]] == 1, 0.9, 0.1))
    np.testing.assert_allclose(logits, evidence.weights[0] * alone.rows + evidence.weights[1] * said, rtol=1e-5)
    new, _ = evidence.predict_log_proba(X, X)
    np.testing.assert_allclose(new, evidence.weights[0] * alone.rows + evidence.weights[1] * said[0], rtol=1e-4)


def test_only_the_geometry_follows_the_rounds():
    evidence, before = combine(nearness(), Oracle("forest", np.array([0, 0, 1, 1, 1, 0])))
    codes = np.array([0, 0, 1, 1, 1, -1])
    alone = nearness()
    first = alone.fit(CODES, WEIGHTS, make_folds(CODES, 2, 0)).rows
    moved = evidence.weights[0] * (alone.update(codes, WEIGHTS) - first)
    np.testing.assert_allclose(evidence.update(codes, WEIGHTS) - before, moved, atol=1e-4)
    assert np.abs(moved).max() > 0.1


def test_each_contribution_says_how_good_it_was_on_hidden_labels():
    right, wrong = Oracle("right", np.array([0, 0, 1, 1, 0, 1])), Oracle("wrong", np.array([1, 1, 0, 0, 1, 0]))
    evidence, _ = combine(nearness(), right, wrong)
    names = [contribution.name for contribution in evidence.contributions]
    assert names == ["nearness", "right", "wrong"]
    _, good, bad = evidence.contributions
    assert (good.accuracy, bad.accuracy) == (1.0, 0.0)
    assert good.likelihood == pytest.approx(np.log(0.9))
    assert bad.likelihood == pytest.approx(np.log(0.1))
    assert good.weight > bad.weight >= 0


def test_the_hidden_rows_are_answered_for_with_the_same_weights():
    evidence, _ = combine(nearness(), Oracle("forest", np.array([0, 0, 1, 1, 0, 1])))
    alone = nearness().fit(CODES, WEIGHTS, evidence.held_out)
    said = np.log(np.where(np.eye(2)[evidence.held_out.codes] == 1, 0.9, 0.1))
    np.testing.assert_allclose(
        evidence.held_out_log_proba, evidence.weights[0] * alone.held_out + evidence.weights[1] * said
    )


def test_where_nothing_could_be_hidden_the_sources_keep_their_usual_weights():
    codes = np.array([0, -1, 1, -1, -1, -1])
    evidence = Evidence(nearness(), [Oracle("forest", codes)], make_folds(codes, 2, 0))
    logits = evidence.fit(codes, WEIGHTS)
    assert np.isfinite(logits).all()
    assert evidence.weights.tolist() == [0.6, 0.6]
    assert all(np.isnan(contribution.accuracy) for contribution in evidence.contributions)


def test_rows_out_of_reach_are_out_of_reach_unless_a_classifier_speaks():
    evidence, logits = combine(nearness(Nowhere))
    assert np.isfinite(logits[:4]).all()
    assert (logits[4:] == -np.inf).all()
    assert (evidence.predict_log_proba(X, X)[0] == -np.inf).all()
    evidence, logits = combine(nearness(Nowhere), Oracle("forest", np.array([0, 0, 1, 1, 0, 1])))
    assert np.isfinite(logits).all()
    assert np.isfinite(evidence.predict_log_proba(X, X)[0]).all()
