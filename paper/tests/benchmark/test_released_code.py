"""The released loop does what the released code does."""

from __future__ import annotations

import numpy as np
import pytest

from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import Cell, draw
from otprop_paper.benchmark.released_code import (
    algorithm1_rounds,
    as_printed,
    as_released,
    released_loop,
    squared_costs,
)
from otprop_paper.benchmark.scores import nmi


def test_it_labels_every_row_of_iris_about_as_well_as_measured_before(iris: PreparedData) -> None:
    pytest.importorskip("ot")
    costs = squared_costs(iris.X)
    scores = []
    for split in range(3):
        codes = draw(iris.y, Cell(35, split))
        found = released_loop(costs, codes, 0.016)
        assert (found[codes >= 0] == codes[codes >= 0]).all()
        scores.append(nmi(iris.y[codes < 0], found[codes < 0]))
    assert 0.75 < np.mean(scores) < 0.95


def test_where_the_solver_underflows_it_votes_with_the_gibbs_kernel() -> None:
    pytest.importorskip("ot")
    X = np.array([[0.0], [1.0], [0.1], [0.2], [0.8], [0.95]])
    found = released_loop(squared_costs(X), np.array([0, 1, -1, -1, -1, -1]), 1e-3)
    assert found.tolist() == [0, 1, 0, 0, 1, 1]


def test_a_row_too_far_for_floating_point_comes_out_without_a_label() -> None:
    pytest.importorskip("ot")
    X = np.array([[0.0], [1.0], [0.1], [50.0]])
    found = released_loop(squared_costs(X), np.array([0, 1, -1, -1]), 0.01)
    assert found.tolist() == [0, 1, 0, -1]


def test_the_rounds_run_over_any_plan_and_tell_which_rows_each_labelled() -> None:
    X = np.array([[0.0], [1.0], [0.1], [0.45], [0.9]])
    costs, codes = squared_costs(X), np.array([0, 1, -1, -1, -1])
    steps = list(
        algorithm1_rounds(lambda cost: np.exp(-cost / 0.1), lambda a, b: costs[np.ix_(a, b)], codes, as_printed)
    )
    assert [step.rows.tolist() for step in steps] == [[2, 4], [3]]
    assert codes.tolist() == [0, 1, 0, 0, 1]
    assert sum(step.n_nan for step in steps) == 0


def test_a_row_without_a_certainty_waits_where_printed_and_is_gone_where_released() -> None:
    certainty = np.array([0.95, np.nan, 0.3])
    assert [part.tolist() for part in as_printed(certainty)] == [[True, False, False], [False, True, True]]
    assert [part.tolist() for part in as_released(certainty)] == [[True, False, False], [False, False, True]]


def test_where_no_row_is_above_alpha_the_most_certain_ones_are_chosen() -> None:
    certainty = np.array([0.4, 0.2, 0.4])
    for choose in (as_printed, as_released):
        chosen, remaining = choose(certainty)
        assert chosen.tolist() == [True, False, True]
        assert remaining.tolist() == [False, True, False]
