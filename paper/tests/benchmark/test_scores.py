"""The scores are the formulas printed in the paper."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop_paper.benchmark.scores import accuracy, ari, nmi

labellings = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n) for _ in range(2)])
)


def printed_nmi(truth: list[int], found: list[int]) -> float:
    """The paper's formula, sum by sum."""
    N = len(truth)
    n = {(i, j): sum(f == i and t == j for f, t in zip(found, truth, strict=True)) for i in found for j in truth}
    b = {i: found.count(i) for i in found}
    d = {j: truth.count(j) for j in truth}
    top = 2 * sum(v * math.log(v * N / (b[i] * d[j])) for (i, j), v in n.items() if v)
    bottom = -sum(v * math.log(v / N) for v in b.values()) - sum(v * math.log(v / N) for v in d.values())
    return top / bottom


def printed_ari(truth: list[int], found: list[int]) -> float:
    N = len(truth)
    n = [sum(f == i and t == j for f, t in zip(found, truth, strict=True)) for i in set(found) for j in set(truth)]
    b = sum(math.comb(found.count(i), 2) for i in set(found))
    d = sum(math.comb(truth.count(j), 2) for j in set(truth))
    chance = b * d / math.comb(N, 2)
    return (sum(math.comb(v, 2) for v in n) - chance) / ((b + d) / 2 - chance)


@given(labellings)
@settings(deadline=None)
def test_both_equal_the_printed_formulas(pair: tuple[list[int], list[int]]) -> None:
    truth, found = pair
    if len(set(truth)) > 1 or len(set(found)) > 1:  # elsewhere the formulas give 0/0
        assert nmi(truth, found) == pytest.approx(printed_nmi(truth, found), abs=1e-12)
    if 1 < len(set(truth)) < len(truth) or 1 < len(set(found)) < len(found):
        assert ari(truth, found) == pytest.approx(printed_ari(truth, found), abs=1e-12)


@given(labellings, st.permutations(range(6)))
@settings(deadline=None, max_examples=30)
def test_the_names_of_the_groups_do_not_matter(pair: tuple[list[int], list[int]], names: list[int]) -> None:
    truth, found = pair
    renamed = [f"group {names[label]}" for label in found]
    assert nmi(truth, renamed) == pytest.approx(nmi(truth, found))
    assert ari(truth, renamed) == pytest.approx(ari(truth, found))


@pytest.mark.parametrize("score", [nmi, ari])
def test_both_are_symmetric_and_one_for_equal_groupings(score) -> None:
    rng = np.random.default_rng(0)
    truth, found = rng.integers(4, size=200), rng.integers(3, size=200)
    assert score(truth, found) == pytest.approx(score(found, truth))
    assert score(truth, truth) == pytest.approx(1)


@pytest.mark.parametrize("score", [nmi, ari])
@pytest.mark.parametrize("labels", [[7], [7, 7, 7], [1, 2, 3]])
def test_where_the_formula_gives_zero_over_zero_equal_groupings_score_one(score, labels: list[int]) -> None:
    assert score(labels, labels) == 1.0


def test_the_index_does_not_overflow_on_the_largest_data_set() -> None:
    truth = np.repeat([0, 1], 300_000)
    found = np.tile([0, 1], 300_000)
    assert ari(truth, truth) == 1.0
    assert abs(ari(truth, found)) < 1e-5


def test_missing_labels_are_one_group_and_never_right() -> None:
    truth = np.array([0.0, 0.0, 1.0, 1.0])
    assert nmi(truth, [0.0, 0.0, np.nan, np.nan]) == pytest.approx(1)
    assert ari(truth, [0, 0, None, None]) == 1.0
    assert accuracy(truth, [0.0, 0.0, np.nan, None]) == 0.5
    assert accuracy([None, "a"], [None, "a"]) == 0.5


def test_columns_of_other_libraries_are_read() -> None:
    assert accuracy(pd.Series(["a", "b"], dtype="string"), pd.Series(["a", None], dtype="string")) == 0.5


@pytest.mark.parametrize("score", [nmi, ari, accuracy])
def test_labellings_of_different_rows_are_refused(score) -> None:
    with pytest.raises(ValueError, match="same rows, got 2 and 3"):
        score([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="truth is empty"):
        score([], [])
    with pytest.raises(ValueError, match="found must be one label per row"):
        score([0, 1], np.zeros((2, 2)))
