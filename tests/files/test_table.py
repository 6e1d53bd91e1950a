"""What every table can do: cells, readings, names."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

from otprop.files import Reading, TableError, read_table
from tests.files.tables import parquet, table, table_of


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


def test_a_column_that_is_there_is_not_added_again():
    table = table_of(b"a,y_label\n1,2\n")
    with pytest.raises(TableError, match=r"already has a column 'y_label'.*choose other names"):
        table.write(io.BytesIO(), {"y_label": ["x"]})
    with pytest.raises(TableError, match="has no column 'z'; its columns: 'a', 'y_label'"):
        table.cells("z")
    with pytest.raises(ValueError, match="column 'z' has 2 values, the table has 1 rows"):
        table.write(io.BytesIO(), {"z": ["x", "y"]})


def test_a_table_looks_at_its_names_once_however_many_columns_are_read(monkeypatch):
    table = read_table(io.BytesIO(json.dumps([{f"k{number}": number for number in range(50)}] * 2).encode()))

    class Names(list):
        looked = 0

        def __contains__(self, name):
            Names.looked += 1
            return super().__contains__(name)

        def index(self, *args):
            Names.looked += 1
            return super().index(*args)

    table.names = Names(table.names)
    assert table.frame().shape == (2, 50)
    assert Names.looked == 0
