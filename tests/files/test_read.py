"""Which file is what: names, first bytes, packing, other formats for the output."""

from __future__ import annotations

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
from tests.files.tables import CSV, ipc, zstd


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".zst", zstd)])
def test_packed_text_is_read_and_written_by_its_suffix(tmp_path, suffix, pack):
    source = tmp_path / f"in.csv{suffix}"
    source.write_bytes(pack(CSV))
    table = read_table(source)
    table.write(tmp_path / "out.csv", {"l": ["p", "q"]})
    expected = CSV.replace(b",y\n", b",y,l\n").replace(b",a\n", b",a,p\n").replace(b",\n", b",,q\n")
    assert (tmp_path / "out.csv").read_bytes() == expected
    table.write(tmp_path / f"again.csv{suffix}", {"l": ["p", "q"]})
    if suffix:
        assert (tmp_path / f"again.csv{suffix}").read_bytes() != expected
    again = read_table(tmp_path / f"again.csv{suffix}")
    assert again.cells("l").tolist() == ["p", "q"]


def test_a_dash_is_standard_input_and_output():
    code = "from otprop.files import read_table; read_table('-').write('-', {'n': [1, 2]})"
    result = subprocess.run([sys.executable, "-c", code], input=CSV, stdout=subprocess.PIPE, check=True)
    assert result.stdout.splitlines()[1] == b"007,1.5,2024-01-02,a,1"


def test_missing_files_and_folders_are_named_with_what_is_near(tmp_path):
    (tmp_path / "flowers.csv").write_bytes(CSV)
    with pytest.raises(TableError, match=r"there is no file .*flower\.csv; did you mean 'flowers\.csv'\?$"):
        read_table(tmp_path / "flower.csv")
    (tmp_path / "one.csv").write_bytes(CSV)
    with pytest.raises(TableError, match=r"there is no file .*nope\.csv\.$"):  # the same ending is no likeness
        read_table(tmp_path / "nope.csv")
    with pytest.raises(TableError, match="nor a folder"):
        read_table(tmp_path / "nowhere" / "flower.csv")
    with pytest.raises(TableError, match="is a folder; name one file in it"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="there is no file"):
        read_table(tmp_path / "flowers.csv" / "below.csv")


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install '\.\[files\]'"):
        read_table(io.BytesIO(CSV))


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
