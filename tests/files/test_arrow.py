"""Arrow columns: filled, typed, and guarded as cells of text."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from otprop.files import TableError, read_table
from tests.files.tables import packed, table_of, unpacked, written

KINDS = ["parquet", "feather"]


def test_excel_safe_guards_text_and_leaves_numbers():
    data = b'a,b,=h\n-5,=1+1,x\n"+4","@cmd",-x\n1,"=HYPERLINK(""u"")",y\n'
    out = written(table_of(data), {"c": ["=2", "ok", None], "d": [-1.5, 2.0, 0.5]}, excel_safe=True)
    rows = list(csv.reader(io.StringIO(out.decode())))
    assert rows == [
        ["a", "b", "'=h", "c", "d"],
        ["-5", "'=1+1", "x", "'=2", "-1.5"],
        ["+4", "'@cmd", "'-x", "ok", "2.0"],
        ["1", '\'=HYPERLINK("u")', "y", "", "0.5"],
    ]
    assert out.startswith(b"a,b,'=h,c,d\n-5,")
    assert b'"+4",' in out


def test_excel_safe_does_not_guard_a_filled_cell_twice():
    out = written(table_of(b"a,y\n1,=x\n2,=z\n"), fill=("y", ["=new", None]), excel_safe=True)
    assert out == b"a,y\n1,'=new\n2,'=z\n"


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
