"""Formats by file name and by first bytes."""

from __future__ import annotations

import gzip
import io
import zipfile

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from otprop.files import TableError, check_ending, read_table, write_arrow
from tests.files.tables import CSV, zstd


def test_streams_are_known_by_their_first_bytes():
    assert read_table(io.BytesIO(gzip.compress(CSV, mtime=0))).kind == "csv"
    assert read_table(io.BytesIO(zstd(CSV.replace(b",", b"\t")))).kind == "tsv"
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1]}), out)
    assert read_table(io.BytesIO(out.getvalue())).kind == "parquet"


def a_zip(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(zipfile.ZipInfo(name), "x")  # without the time: the data are in the name of the test
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"\x89PNG\r\n\x1a\n\0\0", "is not a table: it is a PNG image"),
        ("t.csv", b"%PDF-1.4", "is not a table: it is a PDF document"),
        (
            "t.csv",
            b"PAR1xxxx",
            "but is not one: it is a Parquet file; rename it or pass format='parquet'",
        ),
        ("t.parquet", CSV, "has the ending of a Parquet file, but is not one: it is delimited text; .* format='csv'"),
        ("t.parquet", b"\0\1\2\3", "has the ending of a Parquet file, but is not one: it is damaged or something else"),
        ("t.npz", CSV, "has the ending of an NPZ file, but is not one"),
        ("t.csv.gz", CSV, "has the ending of a file packed with gzip, but is not one; rename it"),
        ("t.csv.gz", gzip.compress(CSV * 50, mtime=0)[:-20], "is cut short or damaged: unpacking it with gzip failed"),
        ("t.csv.zst", zstd(CSV * 50)[:-3], "is cut short or damaged: unpacking it with zstd failed"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("t.csv", a_zip("xl/workbook.xml"), "it is an Excel file; rename it or pass format='xlsx'"),
        ("t.npz", a_zip("readme.txt"), "is a ZIP archive, not an NPZ file"),
        ("t.npz", b"PK\x03\x04cut", "is cut short or damaged"),
        ("t.csv", b"<!DOCTYPE html><html>", "is a page of HTML"),
        ("t.txt", b"", "is empty: it has no column names and no rows"),
        ("t.csv", b'[{"x": 1, "y": "a"}, {"x": 2}]', "it is a JSON file; rename it or pass format='json'"),
        ("t.csv", b'\xef\xbb\xbf{"x": [1, 2]}', "it is a JSON lines file"),
        ("t.json", CSV, "has the ending of a JSON file, but is not one: it is delimited text"),
        ("t.txt", b"[[1, 2], [3, 4]]", r"is JSON, but not a table: .* write it as a list of objects, \[{\"a\": 1}"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_in_one_line(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TableError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_names_in_brackets_are_no_json():
    for header in ("[kg],y", "{a},y", '"[a]",y'):
        assert len(read_table(io.BytesIO(f"{header}\n1,2\n".encode())).names) == 2


@pytest.mark.parametrize(
    "name", ["o.xls", "o.ODS", "o.ods.gz", "o.html", "o.pdf", "o.pkl", "o.sav", "o.sqlite", "o.zip"]
)
def test_a_table_is_not_written_under_a_name_that_promises_something_else(tmp_path, name):
    with pytest.raises(TableError, match=rf"{name} has the ending of .*, which cannot be written; use \.csv"):
        read_table(io.BytesIO(CSV)).write(tmp_path / name, {})
    with pytest.raises(TableError, match=name):
        check_ending(tmp_path / name)
    assert not list(tmp_path.iterdir())
    for fine in ("o.csv", "o.parquet.gz", "o.PQ", "o", "o.gz", ".hidden", "-"):
        check_ending(fine, "in.csv")
    check_ending("o.dat", "in.dat")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("o.parqet", r"has the unknown ending '\.parqet'; did you mean '\.parquet'\? Use \.csv, \.tsv, .*\.xlsx\."),
        ("o.cvs.gz", r"has the unknown ending '\.cvs'; did you mean '\.csv'\?"),
        ("o.foo", r"has the unknown ending '\.foo'; use \.csv, \.tsv, \.parquet"),
        ("o.csv.foo", r"has the unknown ending '\.foo'"),
    ],
)
def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path, name, advice):
    with pytest.raises(TableError, match=advice):
        read_table(io.BytesIO(CSV)).write(tmp_path / name, {})
    with pytest.raises(TableError, match=advice):
        write_arrow(pa.table({"x": [1]}), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_name_without_an_ending_is_noted(tmp_path):
    table = read_table(io.BytesIO(CSV))
    table.write(tmp_path / "out", {})
    assert (tmp_path / "out").read_bytes() == CSV
    assert table.notes == [f"{tmp_path / 'out'} is written as csv, as the input is: its name does not say what it is"]


def test_the_ending_of_the_input_is_always_right(tmp_path):
    (tmp_path / "old.mat").write_bytes(CSV)
    table = read_table(tmp_path / "old.mat")
    table.write(tmp_path / "new.mat", {})
    assert (tmp_path / "new.mat").read_bytes() == CSV
    assert table.notes == []


def test_an_old_spreadsheet_is_read_where_it_is_text_and_never_written(tmp_path):
    (tmp_path / "old.xls").write_bytes(CSV)  # as many programs export it
    with pytest.raises(
        TableError, match=r"new\.xls has the ending of a spreadsheet of another format, .* opens \.csv and \.xlsx"
    ):
        read_table(tmp_path / "old.xls").write(tmp_path / "new.xls", {})


@pytest.mark.parametrize("url", ["https://example.org/t.csv", "http://example.org/t.csv", "s3://bucket/t.parquet"])
def test_urls_get_a_true_message(url):
    with pytest.raises(TableError, match="is a URL; URLs are not read or written; download it first"):
        read_table(url)
    with pytest.raises(TableError, match="is a URL"):
        read_table(io.BytesIO(b"a\n1\n")).write(url, {})
