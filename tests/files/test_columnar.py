"""Parquet and Feather: untouched columns keep their values, types and metadata."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError, read_table
from tests.files.tables import ipc, packed, unpacked, written

KINDS = ["parquet", "feather"]

# before version 26 Arrow cannot write a missing vector of fixed length to Parquet
MISSING_VECTOR = None if int(pa.__version__.split(".")[0]) >= 26 else [0.0, 0.0]


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


def replaced(data: bytes, old: np.ndarray, new: np.ndarray) -> bytes:
    """The file with the bytes of one array instead of another's."""
    assert data.count(old.tobytes()) >= 1
    return data.replace(old.tobytes(), new.tobytes())


def offsets_outside() -> bytes:
    texts = ["alpha", "beta", "gamma", "delta"]
    old = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return replaced(ipc(pa.table({"y": texts})), old, np.array([0, 5, 2**30, 2**30 + 7, 2**31 - 1], dtype=np.int32))


def offsets_falling() -> bytes:
    texts = ["alpha", "beta", "gamma", "delta"]
    old = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return replaced(ipc(pa.table({"y": texts})), old, np.array([0, 9, 5, 14, 19], dtype=np.int32))


def indices_outside() -> bytes:
    codes = np.array([3, 1, 2, 0, 3, 1, 2, 0], dtype=np.int32)
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list("abcd")))
    return replaced(ipc(pa.table({"y": column})), codes, np.array([3, 1, 2, 0, 3, 1, 2, 10**9], dtype=np.int32))


def no_utf8(kind: str) -> bytes:
    table = pa.table({"y": ["plain-ascii-text", "other"]})
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, out, compression="none", use_dictionary=False, write_statistics=False)
    data = out.getvalue() if kind == "parquet" else ipc(table)
    return data.replace(b"plain-ascii-text", b"plain\xff\xfe\xfdcii-text")


@pytest.mark.parametrize(
    "data",
    [offsets_outside(), offsets_falling(), indices_outside(), no_utf8("feather"), no_utf8("parquet")],
    ids=[
        "offsets outside the data",
        "falling offsets",
        "indices outside the dictionary",
        "feather text",
        "parquet text",
    ],
)
def test_crafted_columns_are_refused_and_do_not_end_the_process(tmp_path, data):
    path = tmp_path / "crafted.bin"
    path.write_bytes(data)
    code = (
        "import os, sys; from otprop.files import TableError, read_table\n"
        "try:\n    table = read_table(sys.argv[1]); table.frame(); table.cells('y')\n"
        "except TableError as error:\n    print(error, flush=True)\n"
        "os._exit(0)"  # pyarrow 18 can abort at the end of a process that has read a damaged file
    )
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{path} is cut short or damaged (")
    assert result.stdout.count("\n") == 1


def error_of(call) -> TableError | None:
    try:
        call()
    except TableError as error:
        return error
    return None


def test_nulls_in_a_column_declared_without_are_refused():
    schema = pa.schema([pa.field("y", pa.int64(), nullable=False)])
    out = io.BytesIO()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([1, None])], schema=schema))
    with pytest.raises(TableError, match=r"is cut short or damaged \(a column that is declared without nulls has some"):
        read_table(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize(
    ("column", "reads"),
    [
        (pa.array([2**53], pa.timestamp("s")), False),
        (pa.array([10**7], pa.date32()), False),
        (pa.array([10**7 * 86_400_000], pa.date64()), False),
        (pa.array([0], pa.timestamp("s", tz="Nowhere/Land")), False),
        (pa.array([dt.date(2024, 1, 2)], pa.date64()), True),
        (pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us")), True),
    ],
    ids=["far timestamp", "far date32", "far date64", "unknown zone", "date64", "year 9999"],
)
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_dates_out_of_range_and_unknown_zones_are_a_sentence(column, reads, kind):
    out = io.BytesIO()
    table = pa.table({"x": [1], "when": column})
    pq.write_table(table, out) if kind == "parquet" else out.write(ipc(table))
    read = read_table(io.BytesIO(out.getvalue()))
    looks = [
        lambda: read.frame(["when"]),
        lambda: read.cells("when"),
        lambda: read.write(io.BytesIO(), {}, format="csv"),
    ]
    errors = [error for look in looks if (error := error_of(look)) is not None]
    assert bool(errors) != reads
    for error in errors:
        assert "column 'when' of type" in str(error)
        assert error.column == "when"
        assert "\n" not in str(error)
    written = io.BytesIO()
    read.write(written, {"l": ["a"]})  # in its own format, every value comes back
    assert read_table(io.BytesIO(written.getvalue())).names == ["x", "when", "l"]
