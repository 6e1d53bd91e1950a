"""Sums over rows in blocks, and over rows in several places."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from otprop.transport import row_sums
from otprop.transport.class_level import solve_rows
from otprop.transport.row_sums import LocalRows
from tests.transport.problems import class_problem


class PartedRows:
    """Rows in three places; what is asked of them travels as bytes."""

    def __init__(self, logits, masses):
        cuts = [0, len(logits) // 5, len(logits) // 2, len(logits)]
        self._places = [LocalRows(logits[i:j], masses[i:j]) for i, j in pairwise(cuts)]

    def sum(self, function):
        answers = [place.sum(pickle.loads(pickle.dumps(function))) for place in self._places]
        return tuple(np.sum(parts, axis=0) for parts in zip(*answers, strict=True))


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("strength", [0.0, 0.5, 0.99, 1.0])
def test_rows_in_several_places_give_the_same_answer(strength, holes):
    logits, q, b = class_problem(300, 6, scale=5.0, weights="uneven", holes=holes)
    here, there = (solve_rows(rows(logits, b), q, strength) for rows in (LocalRows, PartedRows))
    assert here.converged
    assert here.iterations == there.iterations
    np.testing.assert_allclose(there.h, here.h, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there.class_masses, here.class_masses, rtol=1e-12)


def test_rows_in_several_places_agree_on_what_is_not_feasible():
    logits = np.where(np.arange(40)[:, None] < 30, [0.0, 0.0, -np.inf], [-np.inf, -np.inf, 0.0])
    transport = solve_rows(PartedRows(logits, np.full(40, 1 / 40)), np.array([0.5, 0.1, 0.4]), 1.0)
    assert not transport.feasible
    assert transport.converged


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_rows_are_summed_over_in_blocks_of_bounded_size(n_classes):
    n_rows = 50_000 if n_classes < 100 else 25_000
    sizes = []

    def count(logits, masses):
        sizes.append(logits.size)
        return np.array(masses.sum()), logits.sum(axis=0)

    total, ones = LocalRows(np.ones((n_rows, n_classes), dtype=np.float32), np.ones(n_rows)).sum(count)
    assert total == n_rows
    assert (ones == n_rows).all()
    assert len(sizes) > 1
    assert 8 * max(sizes) <= row_sums.LARGE_BLOCK_BYTES


def test_plan_sums_are_those_of_a_softmax_in_which_unreached_rows_count_for_nothing():
    logits, q, b = class_problem(50, 4, weights="uneven", holes=0.5)
    logits[7] = -np.inf
    h = np.log(q)
    value, m, overlap = row_sums.plan_sums(logits, b, h, 0.5, overlap=True)
    reached = (logits > -np.inf).any(axis=1)
    shares = softmax(h + 0.5 * logits[reached], axis=1)
    assert value == pytest.approx(b[reached] @ logsumexp(h + 0.5 * logits[reached], axis=1))
    np.testing.assert_allclose(m, b[reached] @ shares)
    np.testing.assert_allclose(overlap, (shares * b[reached, None]).T @ shares)


def test_first_reached_counts_every_reached_row_once():
    logits = np.array([[0.0, -np.inf, 1.0], [-np.inf, 2.0, 0.0], [-np.inf, -np.inf, -np.inf], [5.0, 1.0, -np.inf]])
    (found,) = row_sums.first_reached(logits, np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 2, 0]))
    assert found.tolist() == [10.0, 1.0, 0.0]
