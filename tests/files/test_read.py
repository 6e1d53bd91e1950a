"""Which file is what: names, first bytes, packing, other formats for the output."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otprop.files import TableError, check_ending, read_table

CSV = b"id,x,day,y\n007,1.5,2024-01-02,a\n008,2.25,2024-01-03,\n"


def zstd(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


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


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("kind", ["parquet", "feather", "npz"])
def test_any_format_may_be_packed(tmp_path, kind, suffix):
    read_table(io.BytesIO(CSV)).write(tmp_path / f"t.{kind}.{suffix}", {})
    assert read_table(tmp_path / f"t.{kind}.{suffix}").cells("id").tolist() == ["007", "008"]


def test_streams_are_known_by_their_first_bytes():
    assert read_table(io.BytesIO(gzip.compress(CSV, mtime=0))).kind == "csv"
    assert read_table(io.BytesIO(zstd(CSV.replace(b",", b"\t")))).kind == "tsv"
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1]}), out)
    assert read_table(io.BytesIO(out.getvalue())).kind == "parquet"


def test_a_dash_is_standard_input_and_output():
    code = "from otprop.files import read_table; read_table('-').write('-', {'n': [1, 2]})"
    result = subprocess.run([sys.executable, "-c", code], input=CSV, stdout=subprocess.PIPE, check=True)
    assert result.stdout.splitlines()[1] == b"007,1.5,2024-01-02,a,1"


def test_text_becomes_typed_where_it_would_be_written_the_same_way_again(tmp_path):
    table = read_table(io.BytesIO(b"a,b,c,d,e,f\n1,1.5,007,2024-01-02,true,1.50\n2,,008,2024-01-03,false,2.25\n"))
    table.write(tmp_path / "t.parquet", {"p": [0.5, 1.0]})
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert [str(field.type) for field in schema] == [
        "int64",
        "double",
        "string",
        "date32[day]",
        "bool",
        "string",
        "double",
    ]
    back = io.BytesIO()
    read_table(tmp_path / "t.parquet").write(back, {}, format="csv")
    rows = back.getvalue().decode().splitlines()
    assert rows == ["a,b,c,d,e,f,p", "1,1.5,007,2024-01-02,true,1.50,0.5", "2,,008,2024-01-03,false,2.25,1.0"]


def test_values_become_text_and_lists_json(tmp_path):
    out = io.BytesIO()
    table = pa.table({"l": [[1, 2], None], "s": ["a,b", None], "k": pa.array(["=x", "y"]).dictionary_encode()})
    pq.write_table(table, out)
    table = read_table(io.BytesIO(out.getvalue()))
    table.write(tmp_path / "t.csv", {}, ("s", [None, 'q"']), excel_safe=True)
    assert (tmp_path / "t.csv").read_text() == 'l,s,k\n"[1, 2]","a,b",\'=x\n,"q""",y\n'
    table.write(tmp_path / "t.tsv", {})
    assert (tmp_path / "t.tsv").read_text() == "l\ts\tk\n[1, 2]\ta,b\t=x\n\t\ty\n"


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
            "as its name says: it is a Parquet file; rename it or pass format='parquet'",
        ),
        ("t.parquet", CSV, "is not a Parquet file, as its name says: it is delimited text; .* format='csv'"),
        ("t.parquet", b"\0\1\2\3", "is not a Parquet file, as its name says: it is damaged or something else"),
        ("t.npz", CSV, "is not an NPZ file, as its name says"),
        ("t.csv.gz", CSV, "is not packed with gzip, as its name says; rename it"),
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
        ("t.json", CSV, "is not a JSON file, as its name says: it is delimited text"),
        ("t.txt", b"[[1, 2], [3, 4]]", r"is JSON, but no table: .* write it as a list of objects, \[{\"a\": 1}"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_in_one_line(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TableError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


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


def test_names_in_brackets_are_no_json():
    for header in ("[kg],y", "{a},y", '"[a]",y'):
        assert len(read_table(io.BytesIO(f"{header}\n1,2\n".encode())).names) == 2


@pytest.mark.parametrize(
    "name", ["o.xls", "o.ODS", "o.ods.gz", "o.html", "o.pdf", "o.pkl", "o.sav", "o.sqlite", "o.zip"]
)
def test_a_table_is_not_written_under_a_name_that_promises_something_else(tmp_path, name):
    with pytest.raises(TableError, match=rf"{name} would be .* by its name, which cannot be written; use \.csv"):
        read_table(io.BytesIO(CSV)).write(tmp_path / name, {})
    with pytest.raises(TableError, match=name):
        check_ending(tmp_path / name)
    assert not list(tmp_path.iterdir())
    for fine in ("o.csv", "o.parquet.gz", "o", "o.dat", "-"):
        check_ending(fine, "in.csv")


def test_an_ending_that_says_nothing_is_noted(tmp_path):
    table = read_table(io.BytesIO(CSV))
    table.write(tmp_path / "out.dat", {})
    assert (tmp_path / "out.dat").read_bytes() == CSV
    assert table.notes == [
        f"{tmp_path / 'out.dat'} is written as csv, as the input is: its name does not say what it is"
    ]


def test_the_ending_of_the_input_is_always_right(tmp_path):
    (tmp_path / "old.mat").write_bytes(CSV)
    table = read_table(tmp_path / "old.mat")
    table.write(tmp_path / "new.mat", {})
    assert (tmp_path / "new.mat").read_bytes() == CSV
    assert table.notes == []


def test_an_old_spreadsheet_is_read_where_it_is_text_and_never_written(tmp_path):
    (tmp_path / "old.xls").write_bytes(CSV)  # as many programs export it
    with pytest.raises(
        TableError, match=r"new\.xls would be a spreadsheet of another format .* opens \.csv and \.xlsx"
    ):
        read_table(tmp_path / "old.xls").write(tmp_path / "new.xls", {})


def test_a_format_that_is_asked_for_needs_no_ending(tmp_path):
    table = read_table(io.BytesIO(CSV))
    table.write(tmp_path / "out.data", {}, format="parquet")
    assert read_table(tmp_path / "out.data").kind == "parquet"
    assert table.notes == []
