"""Booleans, categories, dates and times as numbers, and blocks of numbers."""

from __future__ import annotations

import datetime
import tracemalloc

import numpy as np
import pytest

from otprop.table.columns import Block
from tests.table.frames import fitted

pd = pytest.importorskip("pandas")


def test_hours_of_the_day_are_near_across_midnight():
    frame = pd.DataFrame({"it": pd.date_range("2020-01-01", periods=24 * 60, freq="h")})
    features = fitted(frame)
    names = features.feature_names
    day = [names.index("it: sine of the day"), names.index("it: cosine of the day")]
    X = features.transform(frame)[:, day]
    late, early, noon = X[23], X[24], X[12]
    assert np.linalg.norm(late - early) < np.linalg.norm(late - noon) / 3


def test_dates_of_another_time_zone_are_the_same_moments():
    when = pd.Series(pd.date_range("2020-01-01", periods=50, freq="7h", tz="UTC"))
    features = fitted(pd.DataFrame({"it": when}))
    here = features.transform(pd.DataFrame({"it": when}))
    np.testing.assert_array_equal(features.transform(pd.DataFrame({"it": when.dt.tz_convert("Asia/Tokyo")})), here)
    text = pd.DataFrame({"it": when.dt.strftime("%Y-%m-%d %H:%M:%S")})
    np.testing.assert_allclose(features.transform(text), here, atol=1e-5)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(7, 40), (40, 7)])
def test_a_block_has_a_variance_of_the_root_of_its_effective_dimensions(n_rows, n_columns):
    values = np.random.default_rng(0).normal(size=(n_rows, n_columns)) * np.linspace(1, 3, n_columns)
    found = Block(values)(values)
    covariance = np.cov(values.T, bias=True)
    effective = np.trace(covariance) ** 2 / (covariance**2).sum()
    np.testing.assert_allclose(found.var(axis=0).sum(), np.sqrt(effective))


def test_a_wide_block_needs_memory_for_its_values_and_not_for_pairs_of_columns():
    values = np.random.default_rng(0).normal(size=(20, 20_000)).astype(np.float32)  # 3.2 GB for pairs of columns
    tracemalloc.start()
    try:
        Block(values)
        assert tracemalloc.get_traced_memory()[1] < 50 * values.nbytes
    finally:
        tracemalloc.stop()


def test_a_category_never_seen_is_none_of_the_known():
    frame = pd.DataFrame({"it": ["a", "b"] * 10, "x": np.arange(20.0) ** 2})
    features = fitted(frame)
    new = features.transform(pd.DataFrame({"it": ["c", "a", None], "x": [1.0, 2.0, 3.0]}))
    np.testing.assert_array_equal(new[:, :2], [[0, 0], [1, 0], [0, 0]])


def test_a_category_that_became_a_number_is_still_the_same():
    frame = pd.DataFrame({"zip": ["10", "20", "007"] * 5, "x": np.arange(15.0) ** 2})
    features = fitted(frame)
    text = features.transform(pd.DataFrame({"zip": ["10", "20"], "x": [0.0, 0.0]}))
    for numbers in ([10, 20], [10.0, 20.0]):
        np.testing.assert_array_equal(features.transform(pd.DataFrame({"zip": numbers, "x": [0.0, 0.0]})), text)
    assert not features.transform(pd.DataFrame({"zip": [1e300, np.inf], "x": [0.0, 0.0]}))[:, :3].any()


def test_times_of_day_are_near_across_midnight():
    frame = pd.DataFrame({"it": [datetime.time(hour, 30) for hour in range(24)] + [None]})
    features = fitted(frame)
    X = features.transform(frame)[:, :2]
    assert features.feature_names == ["it: sine of the day", "it: cosine of the day", "it: missing"]
    assert np.linalg.norm(X[23] - X[0]) == pytest.approx(np.linalg.norm(X[12] - X[11]), rel=1e-5)
    np.testing.assert_allclose(X[24], 0)
    with pytest.raises(ValueError, match="column 'it' holds 'noon' in row 1, where times of day are expected"):
        features.transform(pd.DataFrame({"it": ["noon"]}))
