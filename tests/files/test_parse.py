"""Cells of text as values: numbers, truth values, dates, text."""

from __future__ import annotations

import io
from datetime import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError, read_table
from tests.files.tables import column, later, parquet

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


def test_errors_of_a_spreadsheet_are_missing_and_noted():
    values, notes = column(["1.5", "#DIV/0!", "#VALUE!", "2", "#N/A"])
    np.testing.assert_array_equal(values, [1.5, np.nan, np.nan, 2, np.nan])
    assert notes == ["column 'c' has #DIV/0! in 2 rows, taken as missing"]
    assert column(["a", "#REF!"])[0].isna().tolist() == [False, True]


@pytest.mark.parametrize("first", [["31/12/2024"], ["31/12/2024 10:00", "01/02/2024 11:00"]])
def test_a_date_that_could_be_either_way_is_read_as_in_the_earlier_file(first):
    values, notes = later(first, ["11/02/2024", "", "05/03/2024"])
    assert values.dropna().tolist() == [pd.Timestamp("2024-02-11"), pd.Timestamp("2024-03-05")]
    assert later(["12/31/2024"], ["11/02/2024"])[0].tolist() == [pd.Timestamp("2024-11-02")]
    assert notes == []


def test_a_date_in_a_form_of_its_own_is_read_and_noted():
    for cell in ("2024-02-11", "11.02.2024", "11 Feb 2024"):
        values, notes = later(["31/12/2024"], [cell])
        assert values.tolist() == [pd.Timestamp("2024-02-11")]
        assert notes == [
            f"column 'c' has dates such as {cell!r}, in the table of the model they were written as 31/12/2024"
        ]


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (["31/12/2024"], ["01/02/2024", "12/31/2024"], "row 2: '12/31/2024' is not a date such as 31/12/2024"),
        (["31/12/2024"], ["01/02/2024", "soon"], "row 2: 'soon' is not a date"),
        (["2024-12-31"], ["01/02/2024"], "row 1: '01/02/2024' is not a date such as 2024-12-31"),
        (["31.12.2024"], ["31.02.2024"], "row 1: '31.02.2024' is not a date such as 31.12.2024"),
        (["1,5"], ["2,5", "", "many"], "row 3: 'many' is not a number with the decimal sign ','"),
        (
            ["1.5"],
            ["2.5", "<3"],
            "'<3' is not a number; this column held numbers when the model was made; fix the cell",
        ),
        (["1,5"], ["2.345,5", "1.5"], "row 2: '1.5' is not a number with the decimal sign ','"),
        (["14:30"], ["15:00", "25:00"], "row 2: '25:00' is not a time of day"),
        (["yes", "no"], ["yes", "maybe"], "row 2: 'maybe' is neither true nor false"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(first, then, message):
    with pytest.raises(TableError, match="standard input: column 'c', row") as caught:
        later(first, then)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_stays_text_and_missing_stays_missing():
    values, notes = later(["007", "1.50"], ["10", "1.50", "NA", "2024-01-02"])
    assert values.fillna("-").tolist() == ["10", "1.50", "-", "2024-01-02"]
    assert notes == []
    for first in (["1.5"], ["2024-01-02"], ["14:30"], ["yes"], ["a"]):
        assert later(first, ["", "NA"])[0].isna().all()


def test_text_in_a_file_of_types_is_read_as_in_the_earlier_file_too():
    assert later(["31/12/2024"], parquet(["11/02/2024", None]))[0].dropna().tolist() == [pd.Timestamp("2024-02-11")]
    assert later(["1,5"], parquet(pa.array(["1,234", "2"]).dictionary_encode()))[0].tolist() == [1.234, 2]
    np.testing.assert_array_equal(later(["1,5"], parquet([1.5, None]))[0], [1.5, np.nan])
    assert later(parquet(["007", "10"]), ["10", "1.50"])[0].tolist() == ["10", "1.50"]
    with pytest.raises(TableError, match="column 'c', row 1: '01/02/2024' is not a date"):
        later(parquet([pd.Timestamp("2024-01-02")]), ["01/02/2024"])
    out = io.BytesIO()
    np.savez(out, c=np.array(["1,5", "2,345", ""]))
    np.testing.assert_array_equal(later(["1,5"], read_table(io.BytesIO(out.getvalue())))[0], [1.5, 2.345, np.nan])
