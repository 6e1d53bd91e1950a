"""Which row comes next."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.studio.propagator import NO_CLASS, Result
from otprop.studio.rows import GIVEN, HERE, NONE, PILE, PROPAGATED, Queues, compose
from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN

N = 10


def result_of(labels: list[int], confidence: list[int]) -> Result:
    best = np.array(labels, dtype=np.uint16)[:, None]
    return Result(
        revision=1,
        labels=np.array(labels, dtype=np.uint16),
        confidence=np.array(confidence, dtype=np.uint8),
        rounds=np.ones(N, dtype=np.uint8),
        best=best,
        probability=np.ones((N, 1), dtype=np.float32),
        changed=np.empty(0, dtype=np.uint32),
        error=None,
        issues=[],
        n_labels=2,
        n_rounds=1,
        classes_found=2,
        seconds=0.0,
        reused=[],
        notes=[],
    )


def states(**changed: int) -> np.ndarray:
    state = np.full(N, AS_IN_FILE)
    for row, value in changed.items():
        state[int(row[1:])] = value
    return state


GIVEN_IDS = np.array([0, 1, *[-1] * 8])
RESULT = result_of([0, 1, 0, 1, 0, 1, 0, 1, 0, NO_CLASS], [255, 255, 200, 100, 50, 250, 30, 90, 10, 0])


def test_a_label_of_a_person_counts_at_once_over_the_last_result() -> None:
    shown = compose(states(r2=1, r3=UNKNOWN, r0=REMOVED), GIVEN_IDS, RESULT)
    assert shown.sources.tolist() == [
        PROPAGATED,
        GIVEN,
        HERE,
        PILE,
        PROPAGATED,
        PROPAGATED,
        PROPAGATED,
        PROPAGATED,
        PROPAGATED,
        NONE,
    ]
    assert shown.classes.tolist() == [0, 1, 1, NO_CLASS, 0, 1, 0, 1, 0, NO_CLASS]
    assert shown.confidence[[1, 2, 3, 4]].tolist() == [255, 255, 0, 50]
    assert shown.rounds.tolist() == [1, 0, 0, 255, 1, 1, 1, 1, 1, 255]


@pytest.mark.parametrize(("n_classes", "expected"), [(2, bytes([0, 255])), (300, bytes([0, 0, 255, 255]))])
def test_many_classes_take_two_bytes_a_row(n_classes: int, expected: bytes) -> None:
    shown = compose(states(r0=0), np.full(N, -1), None)
    assert shown.class_bytes(n_classes)[: len(expected)] == expected


def test_the_least_sure_rows_come_first() -> None:
    shown = compose(states(), GIVEN_IDS, RESULT)
    queues = Queues(N, 0)
    assert queues.unsure(shown, 3) == [9, 8, 6]
    assert queues.unsure(shown, 20, number=1) == [7, 3, 5]
    assert queues.n_free(shown) == 8


def test_a_random_row_comes_first_until_a_fifth_of_the_labels_is_random() -> None:
    queues = Queues(N, 0)
    queues.set_suggestions([(2, "uncertain"), (3, "uncertain"), (4, "random"), (5, "uncertain")])
    shown = compose(states(), GIVEN_IDS, RESULT)
    orders = {(0, 0): [4, 2, 3, 5], (1, 1): [2, 3, 4, 5], (1, 4): [2, 3, 4, 5], (1, 5): [4, 2, 3, 5]}
    for (n_drawn, n_by_key), rows in orders.items():
        assert [row for row, _ in queues.suggested(shown, 4, n_drawn, n_by_key, [])] == rows


def test_rows_that_were_labelled_meanwhile_are_omitted_and_skipped_ones_come_last() -> None:
    queues = Queues(N, 0)
    queues.set_suggestions([(2, "uncertain"), (3, "uncertain"), (4, "uncertain"), (5, "uncertain")])
    shown = compose(states(r3=1, r5=UNKNOWN), GIVEN_IDS, RESULT)
    assert [row for row, _ in queues.suggested(shown, 9, 1, 1, [2])] == [4, 9, 8, 6, 7, 2]


def test_the_queue_is_never_empty_while_a_row_is_without_a_label() -> None:
    queues = Queues(N, 0)
    queues.set_suggestions([(2, "uncertain")])
    found = queues.suggested(compose(states(r2=0), GIVEN_IDS, RESULT), 2, 1, 1, [])
    assert [row for row, _ in found][:2] == [9, 8]


def test_only_rows_drawn_for_the_suggestions_count_as_drawn() -> None:
    queues = Queues(N, 0)
    queues.set_suggestions([(2, "uncertain"), (4, "random")])
    queues.set_suggestions([(3, "uncertain")])
    queues.set_suggestions([(4, "uncertain"), (2, "random")])
    assert queues.was_drawn(4, "random")  # a page may show an earlier list still
    assert not queues.was_drawn(4, "uncertain")
    assert queues.was_drawn(2, "random")
    assert not queues.was_drawn(2, "uncertain")


def test_a_row_that_was_never_offered_as_random_does_not_count_as_drawn() -> None:
    queues = Queues(1000, 0)
    first = [row for row in range(1000) if queues.was_drawn(row, "random")]
    assert len(first) == 20  # before the first suggestions come
    other = next(row for row in range(1000) if row not in first)
    queues.set_suggestions([(other, "uncertain")])
    assert not queues.was_drawn(other, "random")
