"""Frames of pandas and polars as tables."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.table.errors import RequestError
from otprop.table.frame import in_type_of, table_of_frame, take_rows, with_columns

pd = pytest.importorskip("pandas")


def test_table_of_frame_has_the_same_cells_for_pandas_and_polars():
    pl = pytest.importorskip("polars")
    columns = {"x": [1.5, None, 2.0], "kind": ["a", None, "b"], "flag": [True, False, True]}
    tables = [table_of_frame(data) for data in (pd.DataFrame(columns), pl.DataFrame(columns))]
    for name, cells in columns.items():
        assert [table.cells(name).tolist() for table in tables] == [cells, cells]
    with pytest.raises(RequestError, match=r"is a LazyFrame; call collect\(\)"):
        table_of_frame(pl.DataFrame(columns).lazy())


@pytest.mark.parametrize(
    ("values", "dtype", "cells", "expected"),
    [
        ([1, 2], "int64", [3, 4], "int64"),
        ([1, 2], "int64", [3, None], "Int64"),
        ([True, False], "bool", [None, True], "boolean"),
        (["a", "b"], "category", ["b", None], "category"),
        (["a", "b"], "category", ["c", "a"], "object"),
        ([1.0, 2.0], "float64", ["x", 1.0], "object"),
        ([1, 2], "int8", [3, 1000], "object"),
    ],
)
def test_in_type_of_keeps_every_cell_whatever_the_type(values, dtype, cells, expected):
    found = in_type_of(pd.Series(values, dtype=dtype), cells)
    assert str(found.dtype) == expected
    assert [None if missing else cell for cell, missing in zip(found, pd.isna(found), strict=True)] == cells


def test_with_columns_and_take_rows_leave_the_frame_and_its_index_alone():
    data = pd.DataFrame({"x": [1, 2, 3]}, index=["p", "q", "r"])
    found = take_rows(with_columns(data, {"y": np.array(["a", "b", "c"], dtype=object)}), [2, 0])
    assert found.index.tolist() == ["r", "p"]
    assert found["y"].tolist() == ["c", "a"]
    assert data.columns.tolist() == ["x"]
