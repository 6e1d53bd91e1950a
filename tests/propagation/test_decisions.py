"""Which errors count: costs, and labels of least expected cost."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import f1_score

from otprop.propagation.decisions import (
    POWERS,
    balanced_costs,
    class_probabilities,
    cost_matrix,
    decide,
    expected_counts,
    expected_f1,
)

CLASSES = np.array(["no", "yes"])


def test_class_probabilities_give_the_confidence_to_the_best_class_and_share_the_rest() -> None:
    found = class_probabilities(np.array([[0.6, 0.3, 0.1]]), np.array([0.8]))
    assert np.allclose(found, [[0.8, 0.15, 0.05]])


def test_class_probabilities_of_no_other_class_exceed_the_confidence() -> None:
    found = class_probabilities(np.array([[0.6, 0.4]]), np.array([0.3]))
    assert np.allclose(found, [[0.3, 0.3]])  # the rest is that of a class without a label


def test_class_probabilities_of_a_sure_row_are_left_alone() -> None:
    assert np.allclose(class_probabilities(np.array([[1.0, 0.0]]), np.array([0.9])), [[0.9, 0.0]])


def test_class_probabilities_share_the_rest_however_small_the_others_are() -> None:
    found = class_probabilities(np.array([[1.0, 2e-310, 6e-310]]), np.array([0.8]))
    assert np.allclose(found, [[0.8, 0.05, 0.15]])


def test_expected_counts_sum_the_probabilities_and_leave_out_rows_without_a_label() -> None:
    probabilities = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    counts = expected_counts(probabilities, np.array([0, 1, -1]))
    assert np.allclose(counts, [[1.6, 1.4], [1, 1], [0.9, 0.6]])


def test_decide_takes_the_most_probable_class_where_all_errors_cost_the_same() -> None:
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)
    assert (decide(probabilities, 1.0 - np.eye(3)) == probabilities.argmax(axis=1)).all()


def test_decide_by_costs_has_the_threshold_of_their_ratio() -> None:
    costs = cost_matrix({("yes", "no"): 10}, CLASSES)
    assert costs.tolist() == [[0, 1], [10, 0]]
    below, above = 1 / 11 - 0.001, 1 / 11 + 0.001
    assert decide(np.array([[1 - below, below], [1 - above, above]]), costs).tolist() == [0, 1]


def test_expected_f1_of_known_classes_is_the_macro_f1() -> None:
    rng = np.random.default_rng(0)
    truth, labels = rng.choice(4, size=80), rng.choice(3, size=80)  # one class is never labelled
    assert np.isclose(expected_f1(np.eye(4)[truth], labels), f1_score(truth, labels, average="macro", zero_division=0))


def test_balanced_costs_have_the_largest_expected_f1_of_all_powers() -> None:
    probabilities = np.random.default_rng(1).dirichlet([8, 2, 0.5], size=400)
    shares = probabilities.mean(axis=0)
    best = expected_f1(probabilities, decide(probabilities, balanced_costs(probabilities, shares)))
    others = [expected_f1(probabilities, (probabilities / shares**power).argmax(axis=1)) for power in POWERS]
    assert np.isclose(best, max(others))
    assert best > others[0] + 0.02  # the most probable class
    assert best > others[10] + 0.005  # the power 1: equal recalls


def test_balanced_costs_of_equal_classes_are_those_of_accuracy() -> None:
    probabilities = np.random.default_rng(2).dirichlet([1, 1, 1], size=300)
    probabilities = np.vstack([probabilities[:, np.roll(np.arange(3), k)] for k in range(3)])  # equal shares
    assert (decide(probabilities, balanced_costs(probabilities, np.ones(3))) == probabilities.argmax(axis=1)).all()


def test_balanced_costs_without_a_row_go_by_the_shares() -> None:
    costs = balanced_costs(np.empty((0, 2)), np.array([0.9, 0.1]))
    assert costs[1, 0] > costs[0, 1] > 0
    assert decide(np.array([[0.7, 0.3]]), costs).tolist() == [1]
