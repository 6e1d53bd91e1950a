"""A later file is read as an earlier one was: decimal signs, forms of dates, types."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otprop.files import Reading, TableError, read_table


def table(cells, **options):
    lines = ["id\tc", *(f"{i}\t{cell}" for i, cell in enumerate(cells))]
    return read_table(io.BytesIO("\n".join(lines).encode()), **options)


def parquet(cells, kind=None):
    out = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array(cells, kind)}), out)
    return read_table(io.BytesIO(out.getvalue()))


def later(first, then, **options):
    """The values of a later column, and the notes."""
    new = table(then, **options) if isinstance(then, list) else then
    old = table(first) if isinstance(first, list) else first
    return new.frame(["c"], like=old.readings(["c"]))["c"], new.notes


@pytest.mark.parametrize(
    ("cells", "reading"),
    [
        (["1,5", "2"], Reading("number", ",")),
        (["1.5 €", "2 €"], Reading("number", ".", "€")),
        (["3%"], Reading("number", ".", "%")),
        (["31/12/2024"], Reading("date", "%d/%m/%Y")),
        (["2024-12-31T10:00Z"], Reading("date", "ISO8601", "zone")),
        (["14:30"], Reading("time")),
        (["yes", "no"], Reading("truth")),
        (["007"], Reading("text")),
    ],
)
def test_a_table_says_how_a_column_was_read(cells, reading):
    assert table(cells).readings() == {"id": Reading("number", table(cells).decimal), "c": reading}


def test_values_with_a_type_say_what_they_are():
    assert parquet([1, 2]).readings() == {"c": Reading("number")}
    assert parquet(["1", "2"]).readings() == {"c": Reading("text")}
    assert parquet([True, None]).readings() == {"c": Reading("truth")}
    assert parquet([pd.Timestamp("2024-01-02")]).readings() == {"c": Reading("date", "ISO8601")}
    assert parquet([[1.0, 2.0]]).readings() == {}


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
