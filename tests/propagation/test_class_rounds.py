"""The rounds at the level of classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

import otprop.propagation.class_rounds as module
from otprop.propagation.class_rounds import ClassLevelRounds, tempered
from otprop.propagation.rounds import certainty


class Messages:
    """Evidence that says the same in every round, and remembers what it was told."""

    def __init__(self, logits):
        self.logits, self.told = logits.copy(), []

    def update(self, codes, weights):
        self.told.append((codes.copy(), weights.copy()))
        return self.logits.copy()


def problem(n_rows=40, n_classes=3, n_labeled=6, seed=0, spread=3.0):
    """Logits at random, and the first rows labelled."""
    rng = np.random.default_rng(seed)
    logits = (spread * rng.normal(size=(n_rows, n_classes))).astype(np.float32)
    codes = np.where(np.arange(n_rows) < n_labeled, np.arange(n_rows) % n_classes, -1)
    return logits, codes


def propagate(logits, codes, prior=None, weights=None, **parameters):
    n_rows, n_classes = logits.shape
    prior = np.full(n_classes, 1 / n_classes) if prior is None else np.asarray(prior)
    weights = np.ones(n_rows) if weights is None else weights
    parameters = {"strength": 0.5, "max_rounds": 4} | parameters
    run = ClassLevelRounds(Messages(logits), logits.copy(), codes, weights, prior, **parameters)
    return run, list(run)


@settings(deadline=None)
@given(
    n_rows=st.integers(2, 40),
    n_classes=st.integers(1, 4),
    seed=st.integers(0, 99),
    strength=st.sampled_from([0.0, 0.5, 1.0]),
    epsilon=st.sampled_from([1.0, 1e-300, 0.1, 1e300]),
    alpha=st.sampled_from([None, 0.0, 0.8, 1.0]),
    max_rounds=st.sampled_from([None, 1, 3]),
    share=st.sampled_from([0.0, 0.3]),
)
def test_whatever_the_setting_every_row_is_labelled_once_and_the_record_says_when(
    n_rows, n_classes, seed, strength, epsilon, alpha, max_rounds, share
):
    logits, codes = problem(n_rows, n_classes, min(n_classes, n_rows - 1), seed)
    given_rows = codes >= 0
    run, rounds = propagate(
        logits,
        codes,
        strength=strength,
        epsilon=epsilon,
        alpha=alpha,
        max_rounds=max_rounds,
        min_round_share=share,
    )
    assert sorted(np.concatenate([round_.rows for round_ in rounds])) == np.flatnonzero(~given_rows).tolist()
    n_left = n_rows - given_rows.sum()
    for number, round_ in enumerate(rounds, start=1):
        assert round_.number == number
        assert (run.round[round_.rows] == number).all()
        assert (round_.n_unlabeled, round_.n_labeled) == (n_left, n_rows - n_left)
        assert len(round_.rows) >= max(1, share * n_left)
        assert (run.certainty[round_.rows] >= round_.threshold - 1e-9).all()
        assert round_.converged or epsilon < 0.1  # below, a potential has no digits left for the masses
        n_left -= len(round_.rows)
    assert max_rounds is None or len(rounds) <= max_rounds
    assert (run.codes[given_rows] == codes[given_rows]).all()
    assert np.isfinite(run.distributions).all()
    np.testing.assert_allclose(run.distributions.sum(axis=1), 1)
    np.testing.assert_array_equal(run.codes, run.distributions.argmax(axis=1))
    np.testing.assert_allclose(run.certainty, certainty(run.distributions), atol=1e-12)
    assert (run.round[given_rows] == 0).all()


@pytest.mark.parametrize("epsilon", [1.0, 0.5, 3.0])
def test_without_shares_one_round_is_a_softmax(epsilon):
    logits, codes = problem()
    run, rounds = propagate(logits, codes, strength=0.0, max_rounds=1, epsilon=epsilon)
    assert len(rounds) == 1
    left = codes < 0
    np.testing.assert_allclose(run.distributions[left], softmax(logits[left] / epsilon, axis=1), rtol=1e-5)


def test_at_full_strength_each_class_ships_what_it_owes_in_one_round():
    logits, codes = problem()
    prior = np.array([0.5, 0.3, 0.2])
    run, _ = propagate(logits, codes, prior, strength=1.0, max_rounds=1, tol=1e-9)
    np.testing.assert_allclose(run.distributions.sum(axis=0), 40 * prior, atol=1e-6)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_the_ledger_has_the_mass_that_every_class_shipped_or_its_rows_where_shares_are_exact(monkeypatch, strength):
    asked = []

    def spy(logits, owed, *args, **kwargs):
        asked.append((len(logits), owed))
        return solve(logits, owed, *args, **kwargs)

    solve = module.solve_classes
    monkeypatch.setattr(module, "solve_classes", spy)
    logits, codes = problem(n_rows=200)
    prior = np.array([0.6, 0.3, 0.1])
    run, rounds = propagate(logits, codes, prior, strength=strength, max_rounds=5)
    labeled = codes.copy()
    for round_, (n_left, owed) in zip(rounds, asked, strict=True):
        counts = np.bincount(labeled[labeled >= 0], minlength=3)
        booked = counts if strength == 1 else run.distributions[labeled >= 0].sum(axis=0)
        expected = np.maximum(200 * prior - booked, module.MIN_OWED_SHARE * n_left * prior)
        assert n_left == (labeled < 0).sum()
        np.testing.assert_allclose(owed, expected * n_left / expected.sum())
        labeled[round_.rows] = run.codes[round_.rows]


def test_where_classes_overlap_the_last_rows_do_not_go_to_the_rarer_one():
    """All rows say 0.7 of the same class, and its share is 0.7: its label is right for each of them."""
    logits = np.tile(np.log([0.7, 0.3]), (1000, 1)) + np.random.default_rng(0).normal(scale=0.01, size=(1000, 2))
    codes = np.r_[[0] * 70, [1] * 30, np.full(900, -1)]
    run, rounds = propagate(logits, codes, np.array([0.7, 0.3]), strength=0.9, max_rounds=10)
    assert len(rounds) > 3
    assert (run.codes[100:] == 0).all()


def test_shares_that_bind_are_met_more_nearly():
    logits, codes = problem(n_rows=300)
    prior = np.array([0.7, 0.2, 0.1])
    missed = []
    for strength in (0.0, 0.5, 1.0):
        run, _ = propagate(logits, codes, prior, strength=strength, max_rounds=6)
        missed.append(np.abs(np.bincount(run.codes, minlength=3) / 300 - prior).sum())
    assert missed[0] > missed[1] > missed[2]
    assert missed[2] < 0.05


def test_left_to_itself_a_round_labels_the_probable_rows_and_at_least_a_tenth_of_those_left():
    logits, codes = problem(n_rows=106)
    run, rounds = propagate(logits, codes, strength=0.0, max_rounds=None)
    sure = run.distributions.max(axis=1) > module.AUTO_PROBABILITY
    np.testing.assert_array_equal(np.sort(rounds[0].rows), np.flatnonzero(sure & (codes < 0)))
    assert not rounds[0].lowered
    assert all(round_.lowered for round_ in rounds[1:])
    for round_ in rounds[1:]:
        part = np.ceil(max(module.MIN_SHARE_LEFT * round_.n_unlabeled, module.MIN_SHARE_ALL * 100))
        assert len(round_.rows) == min(part, round_.n_unlabeled)
    assert (np.diff([run.certainty[round_.rows].min() for round_ in rounds]) < 0).all()


def test_a_round_of_a_large_table_labels_more_of_the_rows_left(monkeypatch):
    logits, codes = problem(n_rows=106)
    monkeypatch.setattr(module, "MANY_ROWS", 105)
    _, rounds = propagate(logits, codes, strength=0.0, max_rounds=None)
    assert len(rounds) > 2
    for round_ in rounds[1:]:
        assert len(round_.rows) == np.ceil(max(0.3 * round_.n_unlabeled, module.MIN_SHARE_ALL * 100))


def test_the_fewer_rows_are_left_the_less_the_shares_bind():
    logits, codes = problem(n_rows=106)
    run, _ = propagate(logits, codes, strength=0.5, max_rounds=3)
    assert 1 > run._trust(100) > run._trust(10) > run._trust(1) > 0
    exact, _ = propagate(logits, codes, strength=1.0, max_rounds=3)
    assert exact._trust(1) == 1


def test_above_alpha_all_are_labelled_and_below_it_the_most_certain():
    logits, codes = problem(n_rows=106)
    _, rounds = propagate(logits, codes, strength=0.0, alpha=0.9, max_rounds=None)
    assert not rounds[0].lowered
    assert rounds[0].threshold == 0.9
    assert all(round_.lowered and len(round_.rows) == 1 for round_ in rounds[1:])


def test_rows_that_join_speak_with_less_weight_than_given_ones():
    logits, codes = problem()
    weights = np.where(codes >= 0, 2.0, 1.0)
    prior = np.array([0.5, 0.3, 0.2])
    run, rounds = propagate(logits, codes, prior, weights, max_rounds=3)
    told = run._evidence.told
    assert len(told) == len(rounds) - 1
    labeled = np.zeros(len(codes), dtype=bool)
    for round_, (said, weight) in zip(rounds, told, strict=False):
        labeled[round_.rows] = True
        assert (weight[codes >= 0] == 2).all()
        assert (weight[~labeled & (codes < 0)] == 0).all()
        assert ((said >= 0) == (labeled | (codes >= 0))).all()
        for code in set(said[labeled]):  # in all what the shares say, whichever class was clearest
            mass = weight[labeled & (said == code)].sum()
            assert mass == pytest.approx(module.JOINING_WEIGHT * labeled.sum() * prior[code])


def test_rows_that_nothing_reaches_get_the_prior_no_certainty_and_the_last_round():
    logits, codes = problem(n_rows=50)
    logits[30:] = -np.inf
    prior = np.array([0.2, 0.5, 0.3])
    run, rounds = propagate(logits, codes, prior, max_rounds=None)
    np.testing.assert_allclose(run.distributions[30:], np.tile(prior, (20, 1)))
    assert (run.certainty[30:] == 0).all()
    assert (run.codes[30:] == 1).all()
    assert (run.round[30:] == len(rounds)).all()
    assert (run.round[:30] < len(rounds)).all()
    assert (run.certainty[6:30] > 0).all()


def test_rows_that_the_next_round_reaches_are_waited_for():
    class Creeping(Messages):
        """Reaches twice as many rows as are labelled."""

        def update(self, codes, weights):
            reached = np.arange(len(codes)) < 2 * (codes >= 0).sum()
            return np.where(reached[:, None], self.logits, -np.inf).astype(np.float32)

    logits = np.tile(np.array([2.0, 0.0], dtype=np.float32), (20, 1))
    codes = np.where(np.arange(20) < 2, np.arange(20), -1)
    evidence, weights = Creeping(logits), np.ones(20)
    first = evidence.update(codes, weights)
    run = ClassLevelRounds(evidence, first, codes, weights, np.array([0.5, 0.5]), strength=0.0, max_rounds=7)
    assert [round_.rows.tolist() for round_ in run] == [[2, 3], [4, 5, 6, 7], list(range(8, 16)), list(range(16, 20))]
    assert (run.certainty > 0).all()


def test_a_class_of_no_share_gets_no_row():
    logits, codes = problem()
    run, _ = propagate(logits, codes, np.array([0.5, 0.5, 0.0]))
    assert (run.distributions[codes < 0, 2] == 0).all()


def test_it_can_be_left_after_any_round():
    logits, codes = problem()
    run = ClassLevelRounds(Messages(logits), logits, codes, np.ones(40), np.full(3, 1 / 3), strength=0.5, max_rounds=4)
    first = next(iter(run))
    left = run.codes == -1
    assert left.sum() == 34 - len(first.rows)
    assert (run.round[left] == -1).all()
    np.testing.assert_allclose(run.distributions.sum(axis=1), 1)


@pytest.mark.parametrize("epsilon", [1e-320, 1e-300, 1e-3, 1.0, 1e300])
def test_any_temperature_leaves_the_best_class_at_zero(epsilon):
    logits = np.array([[-3.0, -1.0], [-np.inf, -2.0], [-np.inf, -np.inf], [-1e-30, -2e-30]], dtype=np.float32)
    found = tempered(logits, epsilon)
    assert found.max(axis=1).tolist() == [0, 0, -np.inf, 0]
    assert not np.isnan(found).any()


def test_blocks_of_rows_give_what_all_rows_together_give(monkeypatch):
    logits, codes = problem(n_rows=90, n_classes=4, n_labeled=8)
    logits[20:23] = -np.inf
    whole, records = propagate(logits.copy(), codes)
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 12)
    blocks, block_records = propagate(logits.copy(), codes)
    np.testing.assert_array_equal(blocks.codes, whole.codes)
    np.testing.assert_array_equal(blocks.round, whole.round)
    np.testing.assert_allclose(blocks.distributions, whole.distributions, rtol=1e-12)
    assert [record.class_gap for record in block_records] == pytest.approx([record.class_gap for record in records])
