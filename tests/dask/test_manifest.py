"""Counts that workers send back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from otprop.dask._manifest import Tally
from otprop.labelling.outcome import RowLabels
from otprop.propagation.calibration import coverage_table
from otprop.propagation.error import ErrorEstimate


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    given = rng.random(5000) < 0.1
    confidence = np.where(given, 1.0, rng.beta(8, 1, size=5000))
    codes = rng.integers(-1, 4, size=5000)
    return np.where(given, np.abs(codes), codes), given, confidence


def test_counts_of_parts_add_up_whatever_the_parts(rows):
    codes, given, confidence = rows
    whole = Tally.of(RowLabels(codes=codes, given=given, confidence=confidence), 4)
    for size in (1700, 313):
        parts = [slice(at, at + size) for at in range(0, 5000, size)]
        labels = [RowLabels(codes=codes[p], given=given[p], confidence=confidence[p]) for p in reversed(parts)]
        found = Tally.total([Tally.of(one, 4) for one in labels], 4)
        assert found == whole
    assert Tally.from_json(json.loads(json.dumps(whole.to_json())), 4) == whole
    assert whole.n_rows == 5000
    assert sum(whole.given) + sum(whole.labeled) + whole.abstained == 5000


def test_the_coverage_is_that_of_the_rows_up_to_a_thousandth_of_confidence(rows):
    codes, given, confidence = rows
    error = ErrorEstimate(0.1, 50.0, int((~given).sum()))
    exact = {line.share: line for line in coverage_table(confidence[~given], error)}
    found = Tally.of(RowLabels(codes=codes, given=given, confidence=confidence), 4).coverage(error)
    assert found[0].n_rows == int((~given).sum())
    assert found[0].expected_error == pytest.approx(exact[1.0].expected_error, abs=1e-6)
    for line in found:
        labelled = confidence[~given] >= line.confidence
        assert labelled.sum() == line.n_rows
        assert line.expected_error == pytest.approx((1 - confidence[~given][labelled]).mean(), abs=1e-6)
        assert 0 <= line.low <= line.expected_error <= line.high <= 1
    assert len(found) == pytest.approx(len(exact), abs=2)


def test_without_open_rows_there_is_nothing_to_cover():
    tally = Tally.of(RowLabels(codes=np.array([0, 1]), given=np.ones(2, dtype=bool), confidence=np.ones(2)), 2)
    assert tally.coverage(None) == []
    assert tally.expected_error() is None
