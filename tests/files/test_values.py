"""Cells of text as values: numbers, truth values, dates, text."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import read_table


def column(cells, decimal=None):
    lines = ["id\tc", *(f"{i}\t{cell}" for i, cell in enumerate(cells))]
    table = read_table(io.BytesIO("\n".join(lines).encode()), decimal=decimal)
    return table.frame(["c"])["c"], table.notes


@settings(deadline=None)  # the first call imports much
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_numbers_are_read_exactly(numbers):
    values, _ = column([repr(number) for number in numbers])
    assert values.tolist() == numbers


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_stay_integers(numbers):
    values, _ = column(numbers)
    assert values.dtype == np.int64
    assert values.tolist() == numbers


def test_integers_of_more_than_64_bits_become_floats():
    values, _ = column([2**70, 1])
    assert values.tolist() == [2.0**70, 1.0]


def test_missing_numbers_are_nan():
    values, _ = column(["1", "", "NA", "?", " 2.5 ", "-", "None"])
    np.testing.assert_array_equal(values, [1, np.nan, np.nan, np.nan, 2.5, np.nan, np.nan])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,234", "5", "1,234,567.5"], [1234, 5, 1234567.5]),
        (["1.234,5", "7,25", "1.234.567"], [1234.5, 7.25, 1234567]),
        (["1 234", "5", "-12 000"], [1234, 5, -12000]),
        (["1'234.5", "2"], [1234.5, 2]),
        (["1\u202f234,5", "0,5"], [1234.5, 0.5]),
    ],
)
def test_thousands_separators_are_read_and_noted(cells, expected):
    values, notes = column(cells)
    assert values.tolist() == expected
    assert any("column 'c' has thousands separators" in note for note in notes)


def test_a_given_decimal_sign_counts():
    assert column(["1,234", "5,678"])[0].tolist() == [1234, 5678]
    assert column(["1,234", "5,678"], decimal=",")[0].tolist() == [1.234, 5.678]


def test_leading_zeros_are_codes():
    values, notes = column(["007", "123"])
    assert values.tolist() == ["007", "123"]
    assert notes == ["column 'c' has leading zeros, so it is read as text"]


def test_mixed_columns_stay_text_and_are_noted():
    values, notes = column(["1", "2", "three", "4"])
    assert values.tolist() == ["1", "2", "three", "4"]
    assert notes == ["column 'c' mixes numbers with other text (row 3: 'three'), so it is read as text"]


def test_truth_values():
    values, _ = column(["true", "False", "TRUE"])
    assert values.dtype == bool
    assert values.tolist() == [True, False, True]
    values, _ = column(["yes", "", "no"])
    assert values.isna().tolist() == [False, True, False]
    assert values.dtype == "boolean"
    assert column(["yes", "true"])[0].tolist() == ["yes", "true"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2024-12-31", "", "2024-01-02"], ["2024-12-31", None, "2024-01-02"]),
        (["2024-12-31 10:30", "2024-12-31T10:30:15.5"], ["2024-12-31 10:30", "2024-12-31 10:30:15.5"]),
        (["2024/12/31", "2024/1/2"], ["2024-12-31", "2024-01-02"]),
        (["31.12.2024", "2.1.2024"], ["2024-12-31", "2024-01-02"]),
        (["31/12/2024", "02/01/2024"], ["2024-12-31", "2024-01-02"]),
        (["12/31/2024", "01/02/2024"], ["2024-12-31", "2024-01-02"]),
    ],
)
def test_dates(cells, expected):
    values, notes = column(cells)
    assert values.dtype.kind == "M"
    assert values.tolist() == [pd.NaT if day is None else pd.Timestamp(day) for day in expected] or None in expected
    assert values.dropna().tolist() == [pd.Timestamp(day) for day in expected if day]
    assert notes == []


def test_times_with_zones_are_put_into_one_zone():
    values, _ = column(["2024-12-31T10:00:00Z", "2024-12-31T10:00:00+02:00"])
    assert values.tolist() == [pd.Timestamp("2024-12-31 10:00", tz="UTC"), pd.Timestamp("2024-12-31 08:00", tz="UTC")]


def test_dates_that_could_be_either_way_stay_text_and_are_noted():
    values, notes = column(["01/02/2024", "03/04/2024"])
    assert values.tolist() == ["01/02/2024", "03/04/2024"]
    assert "days and months cannot be told apart" in notes[0]


def test_a_day_that_does_not_exist_makes_text():
    assert column(["2024-02-30", "2024-02-01"])[0].tolist() == ["2024-02-30", "2024-02-01"]


def test_text_is_missing_where_blank_and_without_blanks_around_it():
    values, _ = column([" a ", "", "NA", "None", "?"])
    assert values.isna().tolist() == [False, True, True, False, False]
    assert values[0] == "a"


def test_a_column_of_nothing_is_missing():
    values, _ = column(["", "NA", " "])
    assert values.isna().all()
