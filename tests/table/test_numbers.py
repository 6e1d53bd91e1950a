"""Numbers and vectors as features."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

from otprop.table.features import Features
from otprop.table.numbers import NumberEncoder
from tests.table.frames import fitted, mixed, one, reasons

pd = pytest.importorskip("pandas")


def test_an_outlier_does_not_squeeze_the_others():
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    _, without = one(values)
    values[3] = 1e12
    _, X = one(values)
    others = np.arange(200) != 3
    assert X[others].std() > 0.9 * without[others].std()
    assert X[3] == X.max()


def test_missing_numbers_are_in_the_middle_and_flagged():
    features, X = one([1.0, 2.0, np.nan, 3.0, 4.0, 5.0])
    assert features.feature_names[:2] == ["it", "it: missing"]
    assert X[2, 0] == X[3, 0]  # the median
    np.testing.assert_array_equal(X[:, 1], [0, 0, 1, 0, 0, 0])


def test_one_value_or_missing_is_a_flag_alone():
    for values in ([3.0, np.nan, 3.0], ["a", None, "a"], [True, None, True], pd.to_datetime(["2020-01-01", None] * 2)):
        features, X = one(values)
        assert X.shape[1] == 1
        assert X[1] == 1
        assert X[0] == 0
        assert "flag alone" in reasons(features)["it"]


def test_a_column_of_pictures_as_arrays_needs_memory_for_its_values():
    pixels = np.random.default_rng(0).integers(0, 256, (120, 128, 128, 3)).astype(np.uint8)
    frame = pd.DataFrame({"picture": list(pixels)})  # pairs of columns would take 19 GB
    tracemalloc.start()
    try:
        found = Features(["picture"], None).fit_transform(frame)
        assert tracemalloc.get_traced_memory()[1] < 300e6  # the values take 47 MB as float64
    finally:
        tracemalloc.stop()
    assert found.shape == (120, 128 * 128 * 3)


def test_an_embedding_keeps_its_proportions():
    frame = mixed()
    features = fitted(frame, only=["age"], embedding="e_")
    X = features.transform(frame)[:, -2:].astype(float)
    raw = frame[["e_0", "e_1"]].to_numpy()
    np.testing.assert_allclose(X.std(axis=0) / raw.std(axis=0), X.std() / raw.std(), rtol=0.1)


def test_many_columns_of_numbers_are_encoded_as_each_alone():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{place}": rng.normal(size=50) * 10.0 ** rng.integers(-200, 200) for place in range(40)})
    frame["whole"] = rng.integers(0, 5, 50)
    frame["rare"] = np.where(np.arange(50) == 3, 7.0, 0.0)
    frame["same"], frame["far"], frame["endless"] = 2.0, 1e308 * rng.choice([-1, 1], 50), rng.choice([0, 1, np.inf], 50)
    frame.iloc[3:6, ::5] = np.nan
    features = fitted(frame)
    whole = features.transform(frame)
    start = 0
    for use in features.columns:
        if use.skipped:
            continue
        alone = NumberEncoder()
        alone.fit(frame[use.name])
        np.testing.assert_array_equal(whole[:, start : start + use.width], alone.transform(frame[use.name]))
        start += use.width
    assert start == whole.shape[1]


def test_ten_thousand_columns_of_numbers_are_no_ten_thousand_calls(monkeypatch):
    calls = []
    monkeypatch.setattr(NumberEncoder, "read", lambda self, column: calls.append(column))
    monkeypatch.setattr(NumberEncoder, "fit_values", lambda self, values, missing: calls.append(values))
    values = np.random.default_rng(0).normal(size=(40, 10_000))
    frame = pd.DataFrame(values, columns=[f"n{number}" for number in range(10_000)])
    assert fitted(frame).transform(frame).shape == (40, 10_000)
    assert calls == []


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 1.0, np.inf, -1e308] * 4,
        [1e308, 1.7e308, 1.2e308] * 4,
        [1e308, -1e308] * 5,
        [0.0] * 9 + [1.7e308, -1.7e308],
    ],
)
def test_the_largest_numbers_give_no_warning(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, X = one(values)
    assert np.isfinite(X).all()
    assert np.ptp(X) > 0.5


def test_infinite_numbers_are_outliers_and_a_note_names_their_column():
    frame = pd.DataFrame({"a": [*np.arange(50.0), np.inf, -np.inf], "b": np.arange(52.0) ** 1.5})
    features = Features(list(frame)).fit(frame)
    found = features.transform(frame)[:, features.feature_names.index("a")]
    assert found.argmax() == 50
    assert found.argmin() == 51
    assert features.notes == [
        "infinite numbers count as outliers beyond all others of their column: 'a' (2 of 52 rows)"
    ]
