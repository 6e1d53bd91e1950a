"""Cells of text as values: numbers, truth values, dates, text."""

from __future__ import annotations

import io
from datetime import time

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


ADVICE = "empty or fix this cell to use the column as a number"


def test_mixed_columns_stay_text_and_are_noted():
    values, notes = column(["1", "2", "three", "4"])
    assert values.tolist() == ["1", "2", "three", "4"]
    assert notes == ["column 'c' mixes numbers with other text (row 3: 'three'), so it is read as text; " + ADVICE]
    values, notes = column([*map(str, range(30)), "x", "y"])
    assert notes == [
        "column 'c' mixes numbers with other text (2 of 32 cells, the first in row 31: 'x'), so it is read as text; "
        "empty or fix these cells to use the column as a number"
    ]
    values, notes = column(["1", "2", "three", "4", "five", "6"])
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
        (["31-12-2024", "02-01-2024"], ["2024-12-31", "2024-01-02"]),
        (["31.12.2024 14:30", "", "2.1.2024"], ["2024-12-31 14:30", None, "2024-01-02"]),
        (["31/12/2024 14:30:15", "02/01/2024 09:00"], ["2024-12-31 14:30:15", "2024-01-02 09:00"]),
        (["12/31/2024 02:30 PM", "01/02/2024 12:05 am"], ["2024-12-31 14:30", "2024-01-02 00:05"]),
        (["2024-12-31 02:30 PM"], ["2024-12-31 14:30"]),
        (["12 Feb 2024", "3 mar 2024"], ["2024-02-12", "2024-03-03"]),
        (["12-FEB-2024", "03-Mar-2024"], ["2024-02-12", "2024-03-03"]),
        (["Feb 12, 2024", "Mar 3, 2024"], ["2024-02-12", "2024-03-03"]),
        (["12. February 2024", "3 May 2024"], ["2024-02-12", "2024-05-03"]),
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
    assert values.isna().tolist() == [False, True, True, True, False]
    assert values[0] == "a"
    assert column(["none", "NONE", "na", "x"])[0].isna().sum() == 0  # these may be categories


def test_a_column_of_nothing_is_missing():
    values, _ = column(["", "NA", " "])
    assert values.isna().all()


@settings(deadline=None)
@given(
    st.lists(st.datetimes(min_value=pd.Timestamp("1700-01-01"), max_value=pd.Timestamp("2200-01-01")), min_size=1),
    st.sampled_from(["%d.%m.%Y %H:%M:%S", "%d %b %Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S.%f", "%d-%b-%Y %H:%M:%S"]),
)
def test_a_moment_is_read_as_it_was_written(moments, form):
    values, _ = column([moment.strftime(form) for moment in moments])
    exact = "%f" in form  # others have whole seconds
    assert values.tolist() == [
        pd.Timestamp(moment.replace(microsecond=moment.microsecond * exact)) for moment in moments
    ]


def test_years_of_two_digits_are_read_and_noted():
    values, notes = column(["31.12.24", "2.1.69"])
    assert values.tolist() == [pd.Timestamp("2024-12-31"), pd.Timestamp("1969-01-02")]
    assert notes == ["column 'c' has years of two digits, read as 1969 to 2068"]


def test_times_of_day_are_times():
    values, notes = column(["14:30", "02:05:07", "", "11:59:59.5 PM", "12:00 am"])
    expected = [time(14, 30), time(2, 5, 7), None, time(23, 59, 59, 500_000), time(0, 0)]
    assert values.tolist() == expected
    assert notes == []


@pytest.mark.parametrize(
    ("cells", "expected", "read_as"),
    [
        (["3.2%", "4.5 %", "0"], [0.032, 0.045, 0], "'3.2%', read as 0.032"),
        (["12,50 €", "1.234,50 €"], [12.5, 1234.5], "'12,50 €', read as 12.5"),
        (["$5,012.20", "-$3", "$ 4"], [5012.2, -3, 4], "'$5,012.20', read as 5012.2"),
        (["CHF 12.50", "CHF 1'200.00"], [12.5, 1200], "'CHF 12.50', read as 12.5"),
        (["3", "(12.50)", "($4)"], [3, -12.5, -4], "'(12.50)', read as -12.5"),
        (["12.50-", "1"], [-12.5, 1], "'12.50-', read as -12.5"),
        (["\u22127.25", "1"], [-7.25, 1], "'\u22127.25', read as -7.25"),
    ],
)
def test_numbers_with_signs_around_them_are_read_and_noted(cells, expected, read_as):
    values, notes = column(cells)
    assert values.tolist() == pytest.approx(expected)
    assert any(f"column 'c' has cells such as {read_as}" in note for note in notes)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["$5", "€4"], "mixes $ and €, so it is read as text"),
        (["3.2%", "5"], "a percent sign in some cells and none in others, so it is read as text"),
        (["1", "2", "<0.1", "3"], "mixes numbers with other text (row 3: '<0.1')"),
        (["1", "n.d.", "2"], "mixes numbers with other text (row 2: 'n.d.')"),
        ([f"{number} kg" for number in range(20)], "looks like numbers with a unit ('0 kg'), but is read as text"),
        (["2024-02-30", "2024-02-01"], "looks like dates ('2024-02-30'), but is read as text"),
        ([*["31.12.2024"] * 20, "soon"], "looks like dates ('soon'), but is read as text"),
        (["26:15", "1:00"], "looks like times ('26:15'), but is read as text"),
    ],
)
def test_what_looks_like_numbers_or_dates_and_is_text_is_noted(cells, why):
    values, notes = column(cells)
    assert values.tolist() == cells
    assert len(notes) == 1
    assert why in notes[0]


def test_words_are_not_said_to_look_like_numbers():
    for cells in (["1st", "2nd", "3rd"] * 9, ["A1", "B2", "C3"] * 9, [f"x{number}" for number in range(30)]):
        assert column(cells)[1] == []


def test_errors_of_a_spreadsheet_are_missing_and_noted():
    values, notes = column(["1.5", "#DIV/0!", "#VALUE!", "2", "#N/A"])
    np.testing.assert_array_equal(values, [1.5, np.nan, np.nan, 2, np.nan])
    assert notes == ["column 'c' has #DIV/0! in 2 rows, taken as missing"]
    assert column(["a", "#REF!"])[0].isna().tolist() == [False, True]
