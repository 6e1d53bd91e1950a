"""Cells as numbers: signs, separators, units."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import read_table
from tests.files.tables import column, later


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


def test_words_are_not_said_to_look_like_numbers():
    for cells in (["1st", "2nd", "3rd"] * 9, ["A1", "B2", "C3"] * 9, [f"x{number}" for number in range(30)]):
        assert column(cells)[1] == []


def test_the_decimal_sign_is_that_of_the_earlier_file_where_the_later_one_leaves_it_open():
    assert later(["1,5", "2,25"], ["1,234", "5,678"])[0].tolist() == [1.234, 5.678]
    assert later(["1.5", "2.25"], ["1,234", "5,678"])[0].tolist() == [1234, 5678]
    assert later(["1,5", "2,25"], ["1.234"])[0].tolist() == [1234]


def test_another_decimal_sign_is_heeded_and_noted_where_it_is_certain():
    values, notes = later(["1,5", "2,25"], ["1.5", "1.234"])
    assert values.tolist() == [1.5, 1.234]
    assert "column 'c' has the decimal sign '.', in the table of the model it was ','" in notes
    assert later(["1,5"], ["1.234"], decimal=".")[0].tolist() == [1.234]


def test_a_column_with_a_decimal_sign_of_its_own_keeps_it():
    old = read_table(io.BytesIO(b"a;b;c\n1.5;2.5;3,5\n1.25;2.25;4,5\n"))
    new = read_table(io.BytesIO(b"a;b;c\n1.5;2.5;3,125\n"))
    assert new.frame(like=old.readings()).iloc[0].tolist() == [1.5, 2.5, 3.125]


def test_numbers_that_lost_or_got_a_percent_sign_are_noted():
    values, notes = later(["3%", "4%"], ["3", "4"])
    assert values.tolist() == [3, 4]
    assert notes == ["column 'c' has cells such as '3', in the table of the model they were written with %"]
    assert any("they were bare numbers" in note for note in later(["3", "4"], ["3%", "4%"])[1])
    assert any("they were written with €" in note for note in later(["3 €"], ["3 $"])[1])
