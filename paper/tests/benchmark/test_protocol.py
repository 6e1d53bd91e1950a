"""Which rows are labelled, and which labels are hidden."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from otprop_paper.benchmark.protocol import Cell, ProtocolError, check_drawable, draw, hidden_draws, n_draws

Y = np.repeat([0, 1, 2], [100, 60, 40])


@pytest.mark.parametrize("percent", [5, 15, 25, 35])
def test_stratified_splits_are_those_of_train_test_split(percent: float) -> None:
    for seed in range(10):
        chosen, _ = train_test_split(np.arange(200), train_size=percent / 100, stratify=Y, random_state=seed)
        assert set(np.flatnonzero(draw(Y, Cell(percent, seed)) >= 0)) == set(chosen)


@pytest.mark.parametrize("how", ["stratified", "random", "equal"])
def test_every_way_of_drawing_gives_true_labels_to_the_asked_share_with_every_class_there(how: str) -> None:
    for seed in range(10):
        codes = draw(Y, Cell(5, seed, how))
        assert np.count_nonzero(codes >= 0) == 10
        assert set(codes) == {-1, 0, 1, 2}
        assert (codes[codes >= 0] == Y[codes >= 0]).all()


def test_equal_drawing_gives_every_class_the_same_number_until_a_class_has_given_half_its_rows() -> None:
    y = np.repeat([0, 1, 2], [100, 90, 10])
    assert np.bincount(draw(y, Cell(6, 0, "equal")) + 1)[1:].tolist() == [4, 4, 4]
    counts = np.bincount(draw(y, Cell(35, 0, "equal")) + 1)[1:]
    assert counts[2] == 5
    assert abs(counts[0] - counts[1]) <= 1
    assert counts.sum() == 70


def test_random_drawing_does_not_follow_the_class_shares() -> None:
    counts = {tuple(np.bincount(draw(Y, Cell(10, seed, "random")) + 1)[1:]) for seed in range(10)}
    assert len(counts) > 1


def test_the_same_seed_draws_the_same_labels_and_another_seed_others() -> None:
    for how in ("stratified", "random", "equal"):
        assert (draw(Y, Cell(10, 3, how)) == draw(Y, Cell(10, 3, how))).all()
        assert (draw(Y, Cell(10, 3, how)) != draw(Y, Cell(10, 4, how))).any()


def test_hidden_labels_are_given_ones_and_leave_every_class_a_label() -> None:
    codes = draw(Y, Cell(10, 0))
    draws = hidden_draws(codes, 0)
    assert len(draws) == 5
    for hidden in draws:
        assert (codes[hidden] >= 0).all()
        kept = codes.copy()
        kept[hidden] = -1
        assert set(kept[kept >= 0]) == {0, 1, 2}


def test_nothing_is_hidden_where_a_class_has_a_single_label() -> None:
    codes = np.full(200, -1)
    codes[[0, 1, 2, 100, 101, 160]] = Y[[0, 1, 2, 100, 101, 160]]
    assert hidden_draws(codes, 0) == []


def test_labels_are_hidden_less_often_where_each_draw_hides_many() -> None:
    assert [n_draws(count) for count in (7, 200, 500, 1000, 5000)] == [5, 5, 2, 1, 1]


def test_a_data_set_with_one_class_is_refused() -> None:
    with pytest.raises(ProtocolError, match="one class only"):
        check_drawable("mine", np.zeros(50, dtype=int), (5.0,), 2, "stratified")


def test_a_class_of_one_row_is_refused() -> None:
    with pytest.raises(ProtocolError, match="a class with 1 row"):
        check_drawable("mine", np.repeat([0, 1], [50, 1]), (50.0,), 2, "stratified")


def test_a_class_that_stratified_labels_would_miss_is_refused_with_a_way_out() -> None:
    y = np.repeat([0, 1], [196, 4])
    with pytest.raises(ProtocolError, match=r"class 1 \(4 rows\) without a label in split 0.*'random' or 'equal'"):
        check_drawable("mine", y, (5.0,), 2, "stratified")
    check_drawable("mine", y, (5.0,), 2, "random")


def test_fewer_labels_than_classes_are_refused() -> None:
    with pytest.raises(ProtocolError, match="1 labels: too few"):
        check_drawable("mine", np.repeat([0, 1], [15, 15]), (5.0,), 2, "random")
