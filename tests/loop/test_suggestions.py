"""Which rows to label next."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from otprop import OTP
from otprop.loop.suggestions import label_uncertainty, suggest_rows


@pytest.fixture(scope="module")
def clouds():
    """Ten separate clouds of 40 rows."""
    X, y = make_blobs([40] * 10, centers=10 * np.eye(10), cluster_std=0.5, random_state=0)
    return X, y


def test_without_labels_typical_rows_of_different_regions_come_first(clouds):
    X, y = clouds
    found = suggest_rows(X, np.arange(len(X)), 10, random_share=0.0)
    assert len({int(y[one.row]) for one in found}) >= 9
    assert {one.reason for one in found} == {"typical"}


def test_uncertain_regions_come_first():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(20, 2)) + 8])
    distributions = np.tile([0.99, 0.01], (220, 1))
    distributions[200:] = [0.55, 0.45]
    found = suggest_rows(X, np.arange(220), 5, distributions=distributions, random_share=0.0)
    assert sum(one.row >= 200 for one in found) >= 4
    assert found[0].row >= 200


def test_of_equally_uncertain_rows_the_typical_one_is_taken(clouds):
    X, _ = clouds
    typicality = np.zeros(len(X))
    typicality[::40] = 1.0
    found = suggest_rows(X, np.arange(len(X)), 10, typicality=typicality, random_share=0.0)
    assert sum(typicality[one.row] for one in found) >= 7


def test_a_share_is_drawn_at_random_spread_over_the_list_and_marked(clouds):
    X, _ = clouds
    found = suggest_rows(X, np.arange(len(X)), 20, random_share=0.25)
    assert sum(not one.chosen for one in found) == 5
    assert any(not one.chosen for one in found[:5])
    assert len({one.row for one in found}) == 20


@pytest.mark.parametrize("n", [1, 7, 50, 400, 1000])
def test_rows_are_suggested_once_and_never_a_labelled_one(clouds, n):
    X, _ = clouds
    candidates = np.arange(0, len(X), 2)
    rows = [one.row for one in suggest_rows(X, candidates, n)]
    assert len(rows) == len(set(rows)) == min(n, len(candidates))
    assert set(rows) <= set(candidates.tolist())


def test_equal_rows_sparse_rows_and_wide_rows_are_no_trouble():
    for X in (np.ones((30, 3)), sp.csr_array(np.eye(30)), np.random.default_rng(0).normal(size=(30, 500)) * 1e200):
        assert len(suggest_rows(X, np.arange(30), 8)) == 8


def test_uncertainty_is_one_minus_the_gap_of_the_two_best_classes():
    np.testing.assert_allclose(label_uncertainty(np.array([[0.5, 0.3, 0.2], [1, 0, 0]])), [0.8, 0.0])


def test_a_fitted_model_suggests_rows_and_the_same_ones_again(clouds):
    X, y = clouds
    shown = np.where(np.arange(len(X)) % 40 < 2, y, -1)
    shown[y == 3] = -1
    model = OTP(evidence=None).fit(X, shown)
    found = model.suggest(12)
    assert found == model.suggest(12)
    assert all(shown[one.row] == -1 for one in found)
    assert 3 in {int(y[one.row]) for one in found}  # the class without a label


def test_only_some_rows_may_be_suggested(clouds):
    X, y = clouds
    shown = np.where(np.arange(len(X)) % 40 < 2, y, -1)
    model = OTP(evidence=None).fit(X, shown)
    allowed = np.arange(0, 200)
    rows = [one.row for one in model.suggest(30, candidates=allowed)]
    assert len(rows) == 30
    assert set(rows) <= set(allowed.tolist()) - set(np.flatnonzero(shown >= 0).tolist())
    with pytest.raises(ValueError, match="every row of `candidates` has a given label"):
        model.suggest(3, candidates=[0, 1])
    for wrong in ([0.5], [[1]], [400], [-1]):
        with pytest.raises(ValueError, match=r"^candidates "):
            model.suggest(3, candidates=wrong)


def test_what_cannot_be_suggested_is_said(clouds):
    X, y = clouds
    model = OTP(evidence=None).fit(X, y)
    with pytest.raises(ValueError, match="every row has a given label"):
        model.suggest()
    with pytest.raises(ValueError, match=r"^n must be an integer >= 1; got 0"):
        model.suggest(0)
    with pytest.raises(ValueError, match=r"^random_share must be"):
        model.suggest(5, random_share=2)
    with pytest.raises(RuntimeError, match="copies and saved models do not keep"):
        pickle.loads(pickle.dumps(model)).suggest()


@pytest.mark.parametrize("size", [1e-310, 1e300, 1.7e308])
def test_the_unit_of_many_columns_does_not_matter(size):
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 100))
    plain, other = (suggest_rows(X * unit, np.arange(50), 5) for unit in (1.0, size))
    assert [each.row for each in other] == [each.row for each in plain]


def test_a_few_labels_drawn_at_random_do_not_decide_the_shares_of_a_model_with_many_chosen_ones():
    X, y = make_blobs([200, 200], centers=[[0, 0], [1.5, 0]], random_state=0)
    shown = np.full(len(y), -1)
    chosen = np.zeros(len(y), dtype=bool)
    drawn, picked = [0, 200, 201, 202, 203, 204], [*range(1, 10), *range(210, 219)]
    shown[drawn + picked], chosen[picked] = y[drawn + picked], True
    assert 0.3 < OTP(evidence=None).fit(X, shown, chosen=chosen).class_prior_[0] < 0.7


def test_more_rows_than_are_clustered(monkeypatch):
    monkeypatch.setattr("otprop.loop.suggestions.MAX_CLUSTERED", 50)
    X = np.random.default_rng(0).normal(size=(200, 3))
    for n in (49, 50, 120, 200, 300):
        found = [one.row for one in suggest_rows(X, np.arange(200), n)]
        assert len(set(found)) == len(found) == min(n, 200)


def test_the_seed_of_a_fit_decides_which_rows_are_drawn_at_random():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.full(200, -1)
    y[:20] = X[:20, 0] > 0
    first, again, other = (
        [one.row for one in OTP(evidence=None, random_state=seed).fit(X, y).suggest(10, random_share=1.0)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
