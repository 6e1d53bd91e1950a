"""Parquet and Feather: untouched columns keep their values, types and metadata."""

from __future__ import annotations

import datetime as dt
import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError, read_table

KINDS = ["parquet", "feather"]

# before version 26 Arrow cannot write a missing vector of fixed length to Parquet
MISSING_VECTOR = None if int(pa.__version__.split(".")[0]) >= 26 else [0.0, 0.0]


def packed(table: pa.Table, kind: str, **options) -> bytes:
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, out, **options)
    else:
        pyarrow.feather.write_feather(table, out, **options)
    return out.getvalue()


def unpacked(data: bytes, kind: str) -> pa.Table:
    return (pq.read_table if kind == "parquet" else pyarrow.feather.read_table)(io.BytesIO(data))


def written(table, added=None, fill=None, **options) -> bytes:
    out = io.BytesIO()
    table.write(out, added or {}, fill, **options)
    return out.getvalue()


def rich_table() -> pa.Table:
    """A column of every type that is hard to keep."""
    day = dt.datetime(2024, 12, 31, 10, 30, 0, 123456)
    columns = {
        "small": pa.array([1, None, 3], pa.int8()),
        "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "half": pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()),
        "single": pa.array([0.1, float("nan"), None], pa.float32()),
        "money": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("0.01")], pa.decimal128(10, 2)),
        "text": pa.array(["007", None, ""], pa.string()),
        "large": pa.array(["a", "b", None], pa.large_string()),
        "bytes": pa.array([b"\x00\xff", None, b""], pa.binary()),
        "zoned": pa.array([day, None, day], pa.timestamp("us", tz="Europe/Berlin")),
        "nano": pa.array([1, None, 3], pa.timestamp("ns")),
        "day": pa.array([day.date(), None, day.date()], pa.date32()),
        "clock": pa.array([day.time(), None, day.time()], pa.time64("us")),
        "span": pa.array([1500, None, 3], pa.duration("ms")),
        "truth": pa.array([True, None, False]),
        "kind": pa.array(["x", None, "y"]).dictionary_encode(),
        "ordered": pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0], pa.int8()), pa.array(["low", "high", "unused"]), ordered=True
        ),
        "vector": pa.array([[1.0, 2.0], MISSING_VECTOR, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "list": pa.array([[1], [], None], pa.list_(pa.int64())),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
        "nothing": pa.nulls(3),
    }
    table = pa.table(columns, metadata={"who": "me"})
    field = table.schema.field("small").with_metadata({"unit": "kg"})
    return table.cast(table.schema.set(0, field))


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_comes_back(kind):
    table = rich_table()
    data = packed(table, kind)
    before = unpacked(data, kind)
    out = unpacked(written(read_table(io.BytesIO(data)), {"label": ["a", None, "c"], "p": [0.5, 1.0, None]}), kind)
    after = out.drop_columns(["label", "p"])
    assert after.schema.equals(before.schema, check_metadata=True)
    for name in before.column_names:
        if name == "single":  # NaN is not equal to itself
            assert str(after[name]) == str(before[name])
        else:
            assert after[name].equals(before[name]), name
    assert out["label"].to_pylist() == ["a", None, "c"]
    assert out["p"].to_pylist() == [0.5, 1.0, None]


CELLS = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "f": (pa.float64(), st.floats(allow_nan=False)),
    "s": (pa.string(), st.text(max_size=5)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.timestamp("us"), st.integers(-(2**50), 2**50)),
    "l": (pa.list_(pa.float64()), st.lists(st.floats(allow_nan=False), max_size=3)),
}


@st.composite
def tables(draw):
    """Columns of some types, with nulls."""
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, unique=True))
    n = draw(st.integers(1, 6))
    column = {
        name: pa.array(draw(st.lists(st.none() | CELLS[name][1], min_size=n, max_size=n)), CELLS[name][0])
        for name in names
    }
    return pa.table(column)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)  # the first call imports much
@given(table=tables())
def test_random_tables_come_back(kind, table):
    read = read_table(io.BytesIO(packed(table, kind)))
    out = unpacked(written(read, {"new": list(range(table.num_rows))}), kind)
    assert out.drop_columns(["new"]).equals(table)
    assert out["new"].to_pylist() == list(range(table.num_rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("column", "filled"),
    [
        (pa.array(["a", None, None]), ["a", None, "b"]),
        (pa.array([7, None, None], pa.int16()), [7, None, 8]),
        (pa.array(["a", None, None]).dictionary_encode(), ["a", None, "new"]),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, None, None], pa.int8()), ["z", "a"], ordered=True),
            ["a", None, "z"],
        ),
    ],
)
def test_filling_keeps_the_type_and_the_other_cells(kind, column, filled):
    data = packed(pa.table({"x": [1, 2, 3], "y": column}), kind)
    fill = [None, None, filled[2]]
    out = unpacked(written(read_table(io.BytesIO(data)), fill=("y", fill)), kind)
    assert out.schema == unpacked(data, kind).schema
    assert out["y"].to_pylist() == filled
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        assert out["y"].chunk(0).dictionary.to_pylist() == ["z", "a"]


def test_labels_that_do_not_fit_the_column_are_refused():
    table = read_table(io.BytesIO(packed(pa.table({"y": [1, None]}), "parquet")))
    with pytest.raises(TableError, match=r"'cat' cannot be written into column 'y' .* whose type is int64"):
        written(table, fill=("y", [None, "cat"]))


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "none"])
def test_parquet_keeps_its_compression_and_row_groups(codec):
    table = pa.table({"x": range(100), "l": [[i] for i in range(100)]})
    data = packed(table, "parquet", compression=codec, row_group_size=40)
    metadata = pq.ParquetFile(io.BytesIO(written(read_table(io.BytesIO(data)), {"n": range(100)}))).metadata
    assert metadata.num_row_groups == 3
    assert metadata.row_group(0).column(1).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


@pytest.mark.parametrize("codec", ["lz4", "zstd", "uncompressed"])
def test_feather_keeps_its_compression(codec):
    data = packed(pa.table({"x": np.zeros(50_000)}), "feather", compression=codec)
    out = written(read_table(io.BytesIO(data)), {"n": np.zeros(50_000, dtype=bool)})
    assert (len(out) < 100_000) == (codec != "uncompressed")
    assert (b"\x28\xb5\x2f\xfd" in out) == (codec == "zstd")


def test_names_with_points_and_blanks_are_kept():
    table = pa.table({"a.b": [1, 2], "a": [[1], []], "ü x": ["p", None]})
    for kind in KINDS:
        read = read_table(io.BytesIO(packed(table, kind)))
        out = unpacked(written(read, {"a.c": [0.5, 1.0]}), kind)
        assert out.drop_columns(["a.c"]).equals(table)


def test_the_index_of_pandas_survives():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["r", "s"], name="row"))
    out = io.BytesIO()
    frame.to_parquet(out)
    result = pd.read_parquet(io.BytesIO(written(read_table(io.BytesIO(out.getvalue())), {"b": [1, 2]})))
    assert result.index.tolist() == ["r", "s"]
    pd.testing.assert_frame_equal(result[["a"]], frame)


def test_the_frame_holds_what_features_want():
    frame = read_table(io.BytesIO(packed(rich_table(), "parquet"))).frame()
    assert frame["money"].tolist()[::2] == [1.5, 0.01]
    assert frame["zoned"].dtype.kind == "M"
    assert frame["day"].dtype.kind == "M"
    assert frame["span"].tolist()[0] == 1.5
    assert frame["kind"].tolist()[::2] == ["x", "y"]
    assert frame["truth"].tolist()[::2] == [True, False]
    assert frame["vector"][0].tolist() == [1.0, 2.0]
    assert frame["half"].dtype.kind == "f"
    assert frame.isna().loc[1].sum() >= 16
    assert frame["nothing"].isna().all()


def test_cells_are_native_values():
    table = read_table(io.BytesIO(packed(pa.table({"y": [1.0, None, float("nan")], "l": [[1], None, []]}), "parquet")))
    assert table.cells("y").tolist() == [1.0, None, None]
    assert table.cells("l").tolist() == [[1], None, []]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [10, 200, -10])
def test_a_truncated_file_is_said_to_be_damaged(kind, cut):
    data = packed(pa.table({"x": np.arange(1000)}), kind)[:cut]
    with pytest.raises(TableError, match="standard input is cut short or damaged") as caught:
        read_table(io.BytesIO(data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_rows_or_with_equal_names_are_refused(kind):
    with pytest.raises(TableError, match="has column names but no rows"):
        read_table(io.BytesIO(packed(pa.table({"x": pa.array([], pa.int8())}), kind)))
    if kind == "parquet":
        return  # Parquet's writer refuses to make such a file
    out = io.BytesIO()
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(TableError, match="more than one column named 'x'"):
        read_table(io.BytesIO(out.getvalue()))


def test_times_of_day_stay_times():
    out = io.BytesIO()
    pq.write_table(pa.table({"t": pa.array([dt.time(14, 30), None], pa.time32("s"))}), out)
    assert read_table(io.BytesIO(out.getvalue())).frame()["t"].tolist() == [dt.time(14, 30), None]


def test_a_file_can_be_written_twice_from_what_was_prepared_once():
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1, 2]}), out, compression="zstd")
    write = read_table(io.BytesIO(out.getvalue()))._writer({}, None, False)
    found = [io.BytesIO(), io.BytesIO()]
    for stream in found:
        write(stream)
    assert found[0].getvalue() == found[1].getvalue()
