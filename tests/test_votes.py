"""`OTP.fit(votes=...)`: labels by voters that err."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from otprop._validation import ParameterError
from otprop._votes import dawid_skene, judge_voters, read_votes
from tests.voters import NAMES, accuracy, quick, trees, voter

ALL_TREES = True


def test_votes_make_labels_better_than_either_alone():
    alone, voted, both = [], [], []
    for seed in range(3):
        X, truth, y = trees(seed=seed, n_labels=48, distance=2.0)
        votes = voter(truth, 0.3, seed)
        alone.append(accuracy(X, truth, y))
        voted.append((votes == truth)[y == -1].mean())
        both.append(accuracy(X, truth, y, votes[:, None]))
    assert np.mean(both) > max(np.mean(alone), np.mean(voted)) + 0.02


def test_votes_at_random_cost_next_to_nothing():
    alone, noisy = [], []
    for seed in range(4):
        X, truth, y = trees(seed=seed, distance=1.5, n_labels=40)
        alone.append(accuracy(X, truth, y))
        noisy.append(accuracy(X, truth, y, np.random.default_rng(seed).integers(3, size=(len(y), 1))))
    assert np.mean(noisy) >= np.mean(alone) - 0.01


def test_announced_range_holds_with_votes():
    holds = []
    for seed in range(6):
        X, truth, y = trees(seed=seed)
        model = quick().fit(X, y, votes=np.column_stack([voter(truth, 0.25, seed), voter(truth, 0.4, seed + 50)]))
        low, high = model.error_range_
        holds.append(low <= (model.transduction_ != truth)[y == -1].mean() <= high)
    assert sum(holds) >= 5


def test_votes_on_labelled_rows_only_do_not_make_the_expected_error_small():
    X, truth, y = trees(distance=1.0, n_labels=60)
    votes = np.where(y >= 0, truth, np.nan)[:, None]  # as a copy of the target has them
    alone, both = quick().fit(X, y), quick().fit(X, y, votes=votes)
    assert alone.expected_error_ > 0.2
    assert both.expected_error_ == pytest.approx(alone.expected_error_, abs=0.03)
    soft = quick().fit(X, y, votes={"llm": np.where(y[:, None] >= 0, np.eye(3)[truth] * 0.9 + 0.1 / 3, np.nan)})
    assert soft.expected_error_ == pytest.approx(alone.expected_error_, abs=0.03)
    some = np.where(np.arange(len(y)) % 10 == 0, truth, votes[:, 0])  # and on every tenth row
    model = quick().fit(X, y, votes=some)
    error = (model.transduction_ != truth)[y < 0].mean()
    assert model.error_range_[0] <= error <= model.error_range_[1]


def test_predict_works_without_votes():
    X, truth, y = trees(distance=3.0)
    model = quick().fit(X, y, votes=voter(truth, 0.2, 0)[:, None])
    new, classes, _ = trees(distance=3.0, seed=9)
    assert (model.predict(new) == classes).mean() > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(new) == model.predict(new)).all()
    assert again.voters_ == model.voters_


def test_votes_are_labels_of_any_type():
    X, truth, y = trees()
    codes = voter(truth, 0.2, 0).astype(float)
    codes[::5] = np.nan
    plain = quick().fit(X, y, votes=codes[:, None])
    names = np.where(y < 0, None, NAMES[truth].astype(object))
    frame = pd.DataFrame({"llm": [None if np.isnan(code) else NAMES[int(code)] for code in codes]})
    named = quick().fit(X, names, votes=frame)
    assert (named.transduction_ == NAMES[plain.transduction_]).all()
    assert named.voters_[0].name == "llm"
    nullable = quick().fit(X, names, votes=frame.astype("string"))
    assert (nullable.transduction_ == named.transduction_).all()
    marked = np.where(np.isnan(codes), -1, codes).astype(int)  # -1 is the marker of y
    assert (quick().fit(X, y, votes=marked).transduction_ == plain.transduction_).all()
    unknown = pd.Series(np.where(y < 0, None, y), dtype="Int64")
    by_na = quick().set_params(unlabeled=pd.NA).fit(X, unknown.astype(object), votes=codes[:, None])
    assert (by_na.transduction_ == plain.transduction_).all()


def test_voters_are_judged_by_the_labels_drawn_at_random():
    X, truth, y = trees(n_labels=100)
    votes = voter(truth, 0.25, 0).astype(float)
    votes[:50] = np.nan
    found = quick().fit(X, y, votes=votes[:, None]).voters_[0]
    right = votes[50:100] == truth[50:100]
    assert (found.n_judged, found.n_votes) == (50, len(y) - 50)
    assert found.accuracy == pytest.approx(right.mean())
    assert found.low < right.mean() < found.high
    assert sum(one.n_judged for one in found.by_class.values()) == 50
    of_two = found.by_class[2]
    assert of_two.accuracy == pytest.approx(right[truth[50:100] == 2].mean())
    chosen = quick().fit(X, y, votes=votes[:, None], chosen=np.arange(len(y)) >= 80).voters_[0]
    assert chosen.n_judged == 30


def test_range_of_a_voter_holds_about_nine_times_in_ten():
    rng, inside = np.random.default_rng(0), []
    for _ in range(300):
        truth = rng.integers(2, size=40)
        votes = read_votes(np.where(rng.random(40) < 0.8, truth, 1 - truth)[:, None], np.arange(2), 40)
        found = judge_voters(votes, truth, np.arange(2))[0]
        inside.append(found.low <= 0.8 <= found.high)
    assert 0.85 <= np.mean(inside) <= 0.96


def test_a_voter_silent_on_all_labelled_rows_is_not_judged():
    X, truth, y = trees()
    votes = np.where(y >= 0, np.nan, truth)
    found = quick().fit(X, y, votes=votes[:, None]).voters_[0]
    assert np.isnan(found.accuracy)
    assert (found.low, found.high, found.n_judged) == (0.0, 1.0, 0)


def test_fit_without_votes_has_no_voters():
    X, _, y = trees()
    model = quick().fit(X, y)
    assert model.voters_ == []
    assert "votes" not in [source.name for source in model.evidence_]


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (np.zeros((10, 1)), "votes have 10 rows, and X has 240"),
        (np.full((240, 1), np.nan), "votes of voter 1 are empty: the voter has no vote"),
        (np.full((240, 1), 5), "votes of voter 1 hold 5 .* which no labelled row has. The classes are 0, 1, 2"),
        (np.zeros((240, 10_000)), "votes have 10000 columns; at most 1000"),
        (np.zeros((240, 0)), "votes have no column"),
        (np.zeros((240, 1, 1)), "one column per voter; got 3-D"),
        ("llm", "votes must be a table of labels, one column per voter; got str"),
        ([[0], [0, 1]], "votes have rows of different lengths"),
        (5, "votes must be a table of labels, one column per voter; got int"),
        (sp.csr_array((240, 1)), "votes must be a table of labels, one column per voter; got csr_array"),
        (pd.DataFrame(np.zeros((240, 2)), columns=["llm", "llm"]), "votes have more than one column 'llm'"),
        (pd.DataFrame({"llm": [None, [0]] * 120}), "votes of llm hold a list in row 1; give one label per row"),
    ],
)
def test_fit_refuses_votes_it_cannot_use(votes, message):
    X, _, y = trees()
    with pytest.raises(ParameterError, match=message) as caught:
        quick().fit(X, y, votes=votes)
    assert caught.value.parameter == "votes"


def test_dawid_skene_believes_the_better_voter():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=600)
    errors = (0.05, 0.35, 0.35)
    votes = np.column_stack([np.where(rng.random(600) < error, 1 - truth, truth) for error in errors])
    found = dawid_skene(votes, 2)
    assert found.sum(axis=1) == pytest.approx(np.ones(600))
    assert (found.argmax(axis=1) == truth).mean() > ((votes.sum(axis=1) > 1) == truth).mean() + 0.05


def test_probabilities_are_columns_of_classes_in_any_order():
    X, truth, y = trees()
    given = np.full((len(y), 3), 0.1)
    given[np.arange(len(y)), voter(truth, 0.2, 0)] = 0.8
    given[::7] = np.nan
    plain = quick().fit(X, y, votes={"llm": given})
    names = np.where(y < 0, None, NAMES[truth].astype(object))
    frame = pd.DataFrame(given[:, [2, 0, 1]], columns=NAMES[[2, 0, 1]])
    named = quick().fit(X, names, votes={"llm": frame})
    assert (named.transduction_ == NAMES[plain.transduction_]).all()
    assert plain.voters_[0].n_votes == np.count_nonzero(~np.isnan(given[:, 0]))
    with pytest.warns(UserWarning, match="y has no label"):
        alone = quick().fit(X, [None] * len(y), votes={"llm": frame})
    assert (alone.transduction_ == NAMES[truth]).mean() > 0.7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full((240, 2), 0.5), "of llm have 2 columns of probabilities, and there are 3 classes"),
        (np.full((240, 3), 0.5), "of llm are not probabilities in 240 rows; row 0 has 0.5, 0.5, 0.5"),
        (np.tile([-0.1, 0.6, 0.5], (240, 1)), "of llm are not probabilities"),
        (np.tile([np.nan, 0.5, 0.5], (240, 1)), "of llm are not probabilities"),
        (np.tile([np.inf, 0.0, 0.0], (240, 1)), "of llm are not probabilities"),
        (np.zeros((240, 3)), "of llm are empty"),
        (np.full((10, 3), 1 / 3), "of llm have 10 rows, and X has 240"),
        (np.full((240, 3), "elm"), "of llm have two dimensions, but are not probabilities"),
        (pd.DataFrame(np.full((240, 2), 0.5), columns=[0, 7]), "of llm have a column for 7, which no labelled row has"),
        ("elm", "of llm must be one label per row; got str"),
        (3, "of llm must be one label per row; got int"),
    ],
)
def test_fit_refuses_probabilities_it_cannot_use(given, message):
    X, _, y = trees()
    with pytest.raises(ParameterError, match=message):
        quick().fit(X, y, votes={"llm": given})
