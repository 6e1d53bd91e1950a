"""The rows to review are unsure, differ from each other, and are the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from otprop.labelling.next_rows import rows_to_review
from otprop.labelling.outcome import Outcome


def outcome(sure: np.ndarray, labelled: np.ndarray | None = None, confidence: bool = True) -> Outcome:
    n_rows = len(sure)
    labelled = np.zeros(n_rows, bool) if labelled is None else labelled
    shares = np.column_stack([sure, 1 - sure])
    return Outcome(
        target="y",
        classes=["a", "b"],
        codes=np.zeros(n_rows, int),
        given=labelled,
        distributions=shares,
        certainty=1 - sure if confidence else sure,  # the other way round: confidence must win
        confidence=sure if confidence else None,
        round=np.where(labelled, 0, 1),
        n_rounds=1,
        coverage=[],
        n_held_out=0,
        error=None,
        sources=[],
        method="otp",
        params={},
        seconds=0.0,
    )


def test_the_least_sure_row_comes_first() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    sure = np.linspace(1.0, 0.5, 200)
    assert rows_to_review(outcome(sure), X, 5)[0] == 199


def test_without_confidence_certainty_decides() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    sure = np.linspace(0.2, 1.0, 50)
    assert rows_to_review(outcome(sure, confidence=False), X, 5)[0] == 0


def test_a_row_that_is_there_ten_thousand_times_is_shown_once() -> None:
    X = np.vstack([np.zeros((10_000, 2)), np.random.default_rng(0).normal(size=(30, 2))])
    sure = np.r_[np.full(10_000, 0.4), np.full(30, 0.9)]
    rows = rows_to_review(outcome(sure), X, 20)
    assert len(rows) == 20
    assert sum(row < 10_000 for row in rows) == 1


def test_every_doubtful_corner_is_looked_at_before_any_twice() -> None:
    rng = np.random.default_rng(0)
    corners = np.repeat(np.array([[0, 0], [9, 0], [0, 9], [9, 9]]), 100, axis=0)
    X = corners + rng.normal(scale=0.1, size=(400, 2))
    sure = rng.uniform(0.5, 0.55, 400)
    rows = rows_to_review(outcome(sure), X, 4)
    assert sorted(row // 100 for row in rows) == [0, 1, 2, 3]


def test_a_sure_outlier_is_no_reason_to_skip_doubtful_rows() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(500, 2)), [[1e6, 1e6]]])
    sure = np.r_[rng.uniform(0.5, 0.6, 500), 0.99]
    assert 500 not in rows_to_review(outcome(sure), X, 20)


def test_given_rows_are_not_reviewed() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    labelled = np.arange(40) < 30
    assert set(rows_to_review(outcome(np.full(40, 0.5), labelled), X, 20)) == set(range(30, 40))
    assert rows_to_review(outcome(np.ones(40), np.ones(40, bool)), X, 20) == []


def test_sparse_and_dense_rows_give_the_same_choice() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.4)
    sure = rng.uniform(0.3, 1, 300)
    assert rows_to_review(outcome(sure), csr_matrix(X), 15) == rows_to_review(outcome(sure), X, 15)


def test_a_million_rows_without_any_certainty_come_from_all_over_the_file() -> None:
    X = np.arange(2_000_000, dtype=np.float32).reshape(1_000_000, 2)
    rows = rows_to_review(outcome(np.zeros(1_000_000)), X, 20)
    assert len(set(rows)) == 20
    assert max(rows) - min(rows) > 500_000


@given(st.integers(1, 60), st.integers(1, 30), st.sampled_from([1e-150, 1.0, 1e150]), st.integers(0, 5))
@settings(deadline=None)
def test_it_returns_different_rows_as_many_as_there_are(n_rows: int, n: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n_rows, 2)) * scale
    sure = rng.random(n_rows)
    rows = rows_to_review(outcome(sure), X, n)
    assert rows == rows_to_review(outcome(sure), X, n)
    assert len({tuple(X[row]) for row in rows}) == len(rows) == min(n, len(np.unique(X, axis=0)))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_it_returns_no_more_than_asked(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert len(rows_to_review(outcome(np.full(30, 0.5)), X, n)) == n
