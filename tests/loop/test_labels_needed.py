"""How many more labels to an error."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from otprop import OTP
from otprop._validation import ParameterError
from otprop.loop.labels_needed import SLOPE_SCALE, SLOPE_SHAPE, LabelsNeeded, estimate_labels_needed


def needed(goal: float, expected: float = 0.2, known: float = 50, n_labels: int = 50, n_rows: int = 10_000):
    return estimate_labels_needed(goal, expected, known, n_labels, n_rows)


def test_a_smaller_error_takes_more_labels():
    found = [needed(goal) for goal in (0.3, 0.2, 0.1, 0.05, 0.01)]
    for more, fewer in zip(found[1:], found, strict=False):
        assert more.value >= fewer.value
        assert more.low >= fewer.low
        assert more.high >= fewer.high
    assert found[2].low > 0
    assert found[-1].value > 1000


def test_an_error_that_is_likely_reached_takes_none_but_perhaps_some():
    found = needed(0.21)
    assert (found.low, found.value) == (0, 0)
    assert found.high > 0
    assert needed(0.5) == LabelsNeeded(0, 0, 0)


def test_the_less_is_known_the_wider_the_range():
    well, badly, unknown = (needed(0.1, known=known) for known in (1000, 10, 0))
    assert well.low > badly.low >= unknown.low == 0
    assert well.value > 0
    assert unknown.high == 10_000


def test_no_more_rows_are_asked_for_than_there_are():
    assert needed(0.001, n_rows=80).value == 80
    assert needed(0.001, n_rows=0) == LabelsNeeded(0, 0, 0)


def test_the_estimate_grows_with_the_labels_behind_it():
    fifty, hundred = needed(0.15), needed(0.15, n_labels=100)
    assert abs(hundred.value - 2 * fifty.value) <= 2


def test_a_fitted_model_says_how_many_labels_it_needs():
    X, y = make_blobs([100] * 3, centers=2 * np.eye(3), random_state=0)
    shown = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    model = OTP(evidence=None).fit(X, shown)
    assert model.labels_needed(0.9) == LabelsNeeded(0, 0, 0)
    found = model.labels_needed(model.expected_error_ / 4)
    assert 0 < found.low <= found.value <= found.high <= (shown < 0).sum()
    assert OTP(evidence=None).fit(X, y).labels_needed(0.1) == LabelsNeeded(0, 0, 0)
    for wrong in (0, 1, "half", float("nan")):
        with pytest.raises(ParameterError, match=r"^error must be"):
            model.labels_needed(wrong)


@pytest.mark.parametrize("earlier", [5, "20", [(10,)], [("a", 0.1)], [(10, -1)], [(10, 1.5)], [(10, float("nan"))]])
def test_earlier_fits_that_are_no_pairs_of_numbers_are_refused(earlier):
    model = OTP(evidence=None).fit([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], [0, 0, -1, 1, 1, -1])
    with pytest.raises(ParameterError, match=r"^earlier"):
        model.labels_needed(0.1, earlier)


def test_no_more_labels_are_needed_only_where_the_expected_error_is_reached():
    for expected in (0.1, 0.1436, 0.3):
        assert estimate_labels_needed(0.99 * expected, expected, 50.0, 100, 10_000).value > 0
        assert estimate_labels_needed(1.01 * expected, expected, 50.0, 100, 10_000).value == 0


def test_a_range_of_more_than_ten_times_is_not_known():
    assert LabelsNeeded(30, 9, 99).is_known
    assert not LabelsNeeded(30, 9, 100).is_known
    assert LabelsNeeded(0, 0, 0).is_known
    assert not needed(0.15).is_known


def test_earlier_fits_tell_how_fast_the_error_falls():
    steep = [(10, 0.2 * 5**0.9), (20, 0.2 * 2.5**0.9), (30, 0.2 * (5 / 3) ** 0.9)]
    flat = [(n, 0.2) for n in (10, 20, 30)]
    fast, unknown, slow = (estimate_labels_needed(0.1, 0.2, 500, 50, 100_000, earlier) for earlier in (steep, (), flat))
    assert fast.value < unknown.value < slow.value
    assert fast.high < unknown.high
    assert fast.is_known
    assert not unknown.is_known


def test_fits_with_nearly_as_many_labels_or_more_tell_nothing():
    assert needed(0.1) == estimate_labels_needed(0.1, 0.2, 50, 50, 10_000, [(48, 0.5), (90, 0.01)])


def test_without_labels_nothing_is_known():
    needed = estimate_labels_needed(0.05, 0.2, 0.0, 0, 500)
    assert (needed.value, needed.low, needed.high) == (500, 0, 500)
    assert not needed.is_known


def test_the_range_leaves_out_a_tenth_at_either_end():
    """An 80 % interval, by a simulation of the power law with the error and the slope drawn at random."""
    rng = np.random.default_rng(0)
    errors, slopes = rng.beta(0.3 * 200, 0.7 * 200, 200_000), rng.gamma(SLOPE_SHAPE, SLOPE_SCALE, 200_000)
    with np.errstate(over="ignore"):
        more = 50 * (np.maximum(errors / 0.2, 1.0) ** (1.0 / slopes) - 1.0)
    found = estimate_labels_needed(0.2, 0.3, 200, 50, 10**12)
    assert np.mean(more < found.low) == pytest.approx(0.1, abs=0.02)
    assert np.mean(more > found.high) == pytest.approx(0.1, abs=0.02)
