"""Files made to do harm: each is refused in one line, early."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from otprop.files import TableError, read_table


def ipc(table: pa.Table, compression=None) -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(table, out, compression=compression or "uncompressed")
    return out.getvalue()


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


def test_a_small_file_does_not_grow_without_a_limit():
    bomb = gzip.compress(b"a,b\n") + 40 * gzip.compress(b"1,2\n" * (2 << 20))  # members follow one another
    code = (
        "import io, resource, sys; from otprop.files import TableError, read_table; import pandas, pyarrow\n"
        "data = sys.stdin.buffer.read(); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    read_table(io.BytesIO(data))\n"
        "except TableError as error:\n    print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    result = subprocess.run([sys.executable, "-c", code], input=bomb, capture_output=True, check=True)
    message, grown = result.stdout.decode().splitlines()
    assert message.startswith("standard input has more than ")
    assert "bytes once it is unpacked; if you trust it, unpack it first or allow more with max_bytes." in message
    assert int(grown) < 450  # MiB


def npz(n: int) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, X=np.zeros((n, 10)))
    return out.getvalue()


def in_parquet(n: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": np.zeros(n)}), out, compression="zstd")
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b"a\n" + b"1\n" * 10_000),
        npz(1000),
        in_parquet(20_000),
        ipc(pa.table({"x": np.zeros(9000)}), "zstd"),
    ],
    ids=["gzip", "npz", "parquet", "feather"],
)
def test_the_limit_can_be_set(data):
    with pytest.raises(TableError, match="has more than 5,000 bytes once it is unpacked") as caught:
        read_table(io.BytesIO(data), max_bytes=5000)
    assert caught.value.argument == "max_bytes"
    assert read_table(io.BytesIO(data), max_bytes=1_000_000).n_rows
    assert read_table(io.BytesIO(data)).n_rows


@pytest.mark.parametrize("url", ["https://example.org/t.csv", "http://example.org/t.csv", "s3://bucket/t.parquet"])
def test_urls_get_a_true_message(url):
    with pytest.raises(TableError, match="is a URL; URLs are not read or written; download it first"):
        read_table(url)
    with pytest.raises(TableError, match="is a URL"):
        read_table(io.BytesIO(b"a\n1\n")).write(url, {})


def test_names_that_no_file_can_have_and_loops_of_links_are_a_sentence(tmp_path):
    os.symlink(tmp_path / "b.csv", tmp_path / "a.csv")
    os.symlink(tmp_path / "a.csv", tmp_path / "b.csv")
    table = read_table(io.BytesIO(b"a\n1\n"))
    for name, reason in (("n" * 300, "File name too long"), ("a.csv", "Too many levels of symbolic links")):
        with pytest.raises(TableError, match=f"cannot read .*: {reason}"):
            read_table(tmp_path / name)
        with pytest.raises(TableError, match=f"cannot write .*: {reason}"):
            table.write(tmp_path / name, {}, force=True)
    for attempt in (lambda name: read_table(name), lambda name: table.write(name, {})):
        with pytest.raises(TableError, match="null"):
            attempt(str(tmp_path / "a\0b.csv"))
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices")
def test_a_device_without_an_end_is_not_read():
    with pytest.raises(TableError, match="/dev/zero is a device, not a file"):
        read_table("/dev/zero")
    with open("/dev/zero", "rb") as file, pytest.raises(TableError, match="standard input is a device"):
        read_table(file)
    with pytest.raises(TableError, match="/dev/null is empty"):
        read_table("/dev/null")
