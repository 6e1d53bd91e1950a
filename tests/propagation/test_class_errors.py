"""Expected precision and recall of each class."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP
from otprop.propagation.class_errors import JudgedLabels, estimate_class_errors
from otprop.propagation.error import ErrorEvidence

EVIDENCE = ErrorEvidence(held_out=0.2, doubt=0.2, unseen=0.0, n_labels=40, n_classes=2, n_rows=100)
CLASSES = np.array(["no", "yes"])


def judged(n_labels: int, n_right: int) -> tuple[JudgedLabels, np.ndarray]:
    """Labels of the class "yes", of which some were found."""
    codes = np.ones(n_labels, dtype=int)
    found = np.where(np.arange(n_labels) < n_right, 1, 0)
    labels = JudgedLabels(np.arange(n_labels), codes, np.zeros((n_labels, 2)), np.ones(n_labels), np.ones(n_labels))
    return labels, found


def test_recall_follows_the_held_out_labels_of_the_class_as_they_grow() -> None:
    counts = np.array([[80.0, 20.0], [80, 20], [70, 10]])
    few, many = (estimate_class_errors(CLASSES, counts, *judged(n, n), EVIDENCE)[1] for n in (4, 400))
    assert 0.5 < few.recall < many.recall < 1.0
    assert many.recall > 0.9
    assert few.recall_range[1] - few.recall_range[0] > many.recall_range[1] - many.recall_range[0]
    assert few.n_held_out == 4


def test_recall_is_pulled_to_the_number_of_right_labels_that_precision_implies() -> None:
    counts = np.array([[20.0, 80.0], [10, 90], [8, 76]])  # nearly all rows of "yes" got that label
    yes = estimate_class_errors(CLASSES, counts, *judged(60, 30), EVIDENCE)[1]  # half of the held-out ones did not
    implied = yes.precision * yes.n_labelled / yes.n_expected
    assert yes.recall > 0.5 * implied + 0.5 * 0.5
    assert yes.recall_range[0] < yes.recall < yes.recall_range[1]


def test_recall_of_a_class_that_no_row_got_is_zero() -> None:
    counts = np.array([[70.0, 30.0], [100, 0], [70, 0]])
    rare = estimate_class_errors(CLASSES, counts, *judged(3, 0), EVIDENCE)[1]
    assert (rare.recall, rare.recall_range) == (0.0, (0.0, 0.0))
    assert np.isnan(rare.precision)
    assert rare.hardly_found
    assert rare.f1 == 0.0


def test_f1_is_the_harmonic_mean_and_nan_where_no_row_is_expected() -> None:
    counts = np.array([[80.0, 20.0], [80, 20], [70, 10]])
    one = estimate_class_errors(CLASSES, counts, *judged(4, 4), EVIDENCE)[1]
    assert np.isclose(one.f1, 2 / (1 / one.precision + 1 / one.recall))
    counts[:, 1] = 0
    assert np.isnan(estimate_class_errors(CLASSES, counts, *judged(0, 0), EVIDENCE)[1].f1)


def test_ranges_are_wider_where_labels_are_worth_less() -> None:
    counts = np.array([[80.0, 20.0], [80, 20], [70, 15]])
    labels, found = judged(40, 30)
    alone = estimate_class_errors(CLASSES, counts, labels, found, EVIDENCE)[1]
    fields = {**vars(labels), "worth": 0.1}
    grouped = estimate_class_errors(CLASSES, counts, JudgedLabels(**fields), found, EVIDENCE)[1]
    assert np.diff(grouped.recall_range) > np.diff(alone.recall_range)


def test_ranges_are_from_0_to_1_where_nothing_was_held_out() -> None:
    counts = np.array([[80.0, 20.0], [80, 20], [70, 15]])
    nothing = ErrorEvidence(held_out=float("nan"), doubt=0.2, unseen=0.0, n_labels=0, n_classes=2, n_rows=100)
    for one in estimate_class_errors(CLASSES, counts, *judged(0, 0), nothing):
        assert one.precision_range == one.recall_range == (0.0, 1.0)


@pytest.fixture(scope="module")
def fitted() -> tuple[OTP, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.choice(3, p=[0.6, 0.3, 0.1], size=600)
    X = rng.normal(size=(600, 2)) + 2.0 * np.eye(3)[truth][:, :2]
    y = np.where(np.arange(600) < 90, truth, -1)
    return OTP().fit(X, y), truth, y


def test_class_errors_count_the_rows_and_hold_the_truth(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, truth, y = fitted
    left, errors = y == -1, model.class_errors()
    assert [one.label for one in errors] == [0, 1, 2]
    assert [one.n_labelled for one in errors] == np.bincount(model.transduction_[left], minlength=3).tolist()
    assert np.isclose(sum(one.n_expected for one in errors), left.sum(), rtol=0.05)
    for one in errors:
        said, real = model.transduction_[left] == one.label, truth[left] == one.label
        assert one.precision_range[0] <= (said & real).sum() / said.sum() <= one.precision_range[1]
        assert one.recall_range[0] <= (said & real).sum() / real.sum() <= one.recall_range[1]
        assert one.recall_range[0] <= one.recall <= one.recall_range[1]


def test_class_errors_count_abstained_rows_as_not_found(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, _, y = fitted
    threshold = float(np.median(model.confidence_[y == -1]))
    careful = OTP(abstain_below=threshold).fit(model._rows, y)
    assert sum(one.n_labelled for one in careful.class_errors()) == (careful.transduction_[y == -1] != -1).sum()
    before, after = model.class_errors()[0], careful.class_errors()[0]
    assert after.recall < before.recall
    assert after.precision > before.precision


def test_class_errors_are_wider_with_groups(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, _, y = fitted
    grouped = OTP().fit(model._rows, y, groups=np.arange(600) // 9)
    for alone, apart in zip(model.class_errors()[:2], grouped.class_errors()[:2], strict=True):
        assert np.diff(apart.recall_range) > np.diff(alone.recall_range)


@pytest.mark.parametrize("held_out", [0.2, float("nan")])
def test_precision_and_recall_are_shares_within_their_ranges(held_out: float) -> None:
    evidence = ErrorEvidence(held_out=held_out, doubt=0.2, unseen=0.0, n_labels=40, n_classes=2, n_rows=100)
    rng = np.random.default_rng(0)
    for _ in range(300):
        expected = rng.choice([1e-3, 0.997, 1.78, 30, 93]) * rng.uniform(0.9, 1.0, 2)
        n_labelled = np.maximum(np.round(expected), 1)
        right = np.minimum(expected, n_labelled) * rng.choice([1e-9, 0.02, 1.0])
        labels = judged(n_labels := int(rng.integers(1, 30)), int(rng.integers(n_labels + 1)))
        for one in estimate_class_errors(CLASSES, np.array([expected, n_labelled, right]), *labels, evidence):
            assert 0 <= one.precision_range[0] <= one.precision <= one.precision_range[1] <= 1
            assert 0 <= one.recall_range[0] <= one.recall <= one.recall_range[1] <= 1
