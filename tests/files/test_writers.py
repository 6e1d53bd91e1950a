"""Tables written in formats other than their own."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from otprop.files import read_table
from tests.files.tables import CSV, table_of, written


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("kind", ["parquet", "feather", "npz"])
def test_any_format_may_be_packed(tmp_path, kind, suffix):
    read_table(io.BytesIO(CSV)).write(tmp_path / f"t.{kind}.{suffix}", {})
    assert read_table(tmp_path / f"t.{kind}.{suffix}").cells("id").tolist() == ["007", "008"]


def test_another_dialect_keeps_the_text(tmp_path):
    table = read_table(io.BytesIO(b'a,b\n007,"x\ty"\n1e5,"p,q"\n'))
    table.write(tmp_path / "t.tsv", {"c": [1, 2]})
    assert (tmp_path / "t.tsv").read_text() == 'a\tb\tc\n007\t"x\ty"\t1\n1e5\tp,q\t2\n'


def test_a_table_becomes_arrays(tmp_path):
    read_table(io.BytesIO(CSV)).write(tmp_path / "t.npz", {"n": [1, 2]})
    with np.load(tmp_path / "t.npz") as arrays:
        assert arrays["id"].tolist() == ["007", "008"]
        assert arrays["x"].tolist() == [1.5, 2.25]
        assert arrays["y"].tolist() == ["a", ""]
        assert arrays["n"].tolist() == [1, 2]


def test_a_format_that_is_asked_for_needs_no_ending(tmp_path):
    table = read_table(io.BytesIO(CSV))
    table.write(tmp_path / "out.data", {}, format="parquet")
    assert read_table(tmp_path / "out.data").kind == "parquet"
    assert table.notes == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_other_formats_become_json_and_back(tmp_path, kind):
    (tmp_path / "t.jsonl").write_bytes(b'{"a": 1, "b": "x"}\n{"a": 2, "b": null}\n')
    read_table(tmp_path / "t.jsonl").write(tmp_path / f"t.{kind}", {"l": ["p", "q"]})
    for name in ("t.json", "t.ndjson", "t.jsonl.gz"):
        read_table(tmp_path / f"t.{kind}").write(tmp_path / name, {}, force=True)
        again = read_table(tmp_path / name)
        assert again.cells("a").tolist() == [1, 2]
        assert again.cells("b").tolist() == ["x", None]
        assert again.cells("l").tolist() == ["p", "q"]
    assert json.loads((tmp_path / "t.json").read_text())[1] == {"a": 2, "b": None, "l": "q"}


def test_numbers_that_json_lacks_are_null():
    assert b'"p": null' in written(table_of(b"a\n1\n"), {"p": [float("inf")]}, format="jsonl")


def test_a_file_can_be_written_twice_from_what_was_prepared_once():
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1, 2]}), out, compression="zstd")
    write = read_table(io.BytesIO(out.getvalue()))._writer({}, None, False)
    found = [io.BytesIO(), io.BytesIO()]
    for stream in found:
        write(stream)
    assert found[0].getvalue() == found[1].getvalue()
