"""Which rows are landmarks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from otprop.dask._landmarks import MAX_HASH, LandmarkRule, make_sample, merge_samples, row_hashes


def keys_of(n_rows, labeled):
    keys = [None] * n_rows
    for place, name in labeled.items():
        keys[place] = name
    return keys


def sample_of(keys, cuts, choice, shuffle=False):
    """The sample of all partitions, cut at `cuts`, merged three at a time."""
    bounds = [0, *cuts, len(keys)]
    numbers = np.arange(len(keys))
    samples = [
        make_sample(start, keys[start:stop], (numbers[start:stop],), choice)
        for start, stop in itertools.pairwise(bounds)
    ]
    if shuffle:
        samples = samples[::-1]
    while len(samples) > 1:
        samples = [merge_samples(samples[at : at + 3], choice) for at in range(0, len(samples), 3)]
    return samples[0]


def test_no_two_rows_have_the_same_hash_and_seeds_differ():
    numbers = np.arange(200_000)
    assert len(np.unique(row_hashes(numbers, 0))) == 200_000
    assert (row_hashes(numbers, 0) != row_hashes(numbers, 1)).all()
    assert row_hashes(numbers, 7).astype(float).mean() == pytest.approx(2.0**63, rel=0.01)


@pytest.mark.parametrize("landmarks", [1, 50, 5000])
def test_the_landmarks_do_not_depend_on_the_partitions(landmarks):
    rng = np.random.default_rng(0)
    keys = [None if rng.random() < 0.8 else "abc"[rng.integers(3)] for _ in range(1000)]
    choice = LandmarkRule(landmarks, seed=3)
    whole = sample_of(keys, [], choice)
    for cuts in ([500], [1, 2, 3, 259, 516], list(range(10, 1000, 7))):
        for shuffle in (False, True):
            found = sample_of(keys, cuts, choice, shuffle)
            np.testing.assert_array_equal(found.numbers, whole.numbers)
            np.testing.assert_array_equal(found.parts[0], whole.numbers)
            assert found.keys == [keys[number] for number in whole.numbers]
            assert (found.n_labeled, found.n_unlabeled) == (1000 - keys.count(None), keys.count(None))


def test_all_labelled_rows_and_as_many_others_as_asked_for_are_landmarks():
    keys = keys_of(1000, {5: "a", 700: "b", 701: "a"})
    found = sample_of(keys, [300], LandmarkRule(100, seed=0))
    assert len(found.numbers) == 103
    assert {5, 700, 701} <= set(found.numbers.tolist())
    assert (np.diff(found.numbers) > 0).all()
    everything = sample_of(keys, [300], LandmarkRule(1000, seed=0))
    assert everything.numbers.tolist() == list(range(1000))


def test_of_too_many_labelled_rows_the_largest_classes_are_cut_to_one_size():
    keys = ["big"] * 900 + ["mid"] * 60 + ["rare"] * 2
    for cuts in ([], [450, 920], [100, 200, 300, 901]):
        found = sample_of(keys, cuts, LandmarkRule(100, seed=1))
        counts = {name: found.keys.count(name) for name in ("big", "mid", "rare")}
        assert counts == {"big": 49, "mid": 49, "rare": 2}


def test_a_limit_on_the_hash_lets_pass_enough_and_not_much_more():
    choice = LandmarkRule(1000, seed=0).with_limit_for(100_000)
    numbers = np.arange(100_000)
    passing = int((row_hashes(numbers, 0) <= choice.limit).sum())
    assert 1000 < passing < 1600
    assert LandmarkRule(1000, seed=0).with_limit_for(1000).limit == MAX_HASH


def test_too_few_rows_below_the_limit_are_noticed():
    keys = ["a"] * 990 + [None] * 10  # hardly a row is unlabelled
    choice = LandmarkRule(8, seed=0, limit=MAX_HASH // 1000)
    found = sample_of(keys, [500], choice)
    assert not choice.has_enough_rows(found)
    while not choice.has_enough_rows(found):
        choice = choice.with_wider_limit()
        found = sample_of(keys, [500], choice)
    assert found.keys.count(None) == 8
