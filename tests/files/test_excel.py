"""Excel workbooks: values, formulas and other sheets stay, columns are added."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from otprop.files import TableError, read_table

openpyxl = pytest.importorskip("openpyxl")
DAY = dt.datetime(2024, 12, 31, 10, 30)


def workbook(*rows, **sheets) -> io.BytesIO:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, more in sheets.items():
        sheet = book.create_sheet(title)
        for row in more:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return io.BytesIO(out.getvalue())


def reread(table, added=None, fill=None, **options):
    out = io.BytesIO()
    table.write(out, added or {}, fill, **options)
    return openpyxl.load_workbook(io.BytesIO(out.getvalue()))


def test_the_first_sheet_is_a_table():
    table = read_table(
        workbook(
            ["id", "x", "day", "kind", "flag", 2024, "price"],
            [1, 1.5, DAY, "a", True, None, "1,5 €"],
            [],
            [2, "#N/A", None, None, False, 7, "2,5 €"],
            other=[["z"]],
        )
    )
    assert table.kind == "xlsx"
    assert table.names == ["id", "x", "day", "kind", "flag", "2024", "price"]
    assert table.n_rows == 2
    frame = table.frame()
    np.testing.assert_array_equal(frame["x"], [1.5, np.nan])
    assert frame["day"].tolist()[0] == pd.Timestamp(DAY)
    assert frame["price"].tolist() == [1.5, 2.5]
    assert table.cells("kind").tolist() == ["a", None]
    assert "the first sheet, 'Sheet', is read; others: 'other'" in table.notes


def test_columns_are_added_and_everything_else_stays():
    source = workbook(["id", "sum", "y"], [1, "=A2*2", "a"], [], [2, "=A4*2", None], other=[["kept", 5]])
    out = reread(read_table(source), {"y_label": ["a", "=b"], "p": [0.5, None]}, ("y", [None, "c"]))
    rows = list(out["Sheet"].iter_rows(values_only=True))
    assert rows == [
        ("id", "sum", "y", "y_label", "p"),
        (1, "=A2*2", "a", "a", 0.5),
        (None, None, None, None, None),
        (2, "=A4*2", "c", "=b", None),
    ]
    assert out["Sheet"]["D4"].data_type == "s"  # text, not a formula
    assert out["Sheet"]["B4"].data_type == "f"
    assert out["other"]["B1"].value == 5


def test_other_formats_become_workbooks_and_back(tmp_path):
    csv = b"id,x,day,y\n007,1.5,2024-01-02,=a\n008,,2024-01-03,\n"
    read_table(io.BytesIO(csv)).write(tmp_path / "t.xlsx", {"l": ["p", "q"], "n": [2**60, 1]}, excel_safe=True)
    table = read_table(tmp_path / "t.xlsx")
    assert table.cells("id").tolist() == ["007", "008"]
    assert table.cells("y").tolist() == ["=a", None]
    assert table.cells("n").tolist()[0] == str(2**60)
    table.write(tmp_path / "t.csv", {})
    assert (tmp_path / "t.csv").read_bytes() == (
        b"id,x,day,y,l,n\n007,1.5,2024-01-02 00:00:00.000000,=a,p,1152921504606846976\n"
        b"008,,2024-01-03 00:00:00.000000,,q,1\n"
    )


def test_times_with_a_zone_and_lists_are_text():
    out = io.BytesIO()
    frame = pd.DataFrame({"t": [pd.Timestamp("2024-01-02 10:00", tz="UTC")], "l": [[1, 2]]})
    frame.to_parquet(out)
    rows = list(reread(read_table(io.BytesIO(out.getvalue())), format="xlsx").active.iter_rows(values_only=True))
    assert rows == [("t", "l"), ("2024-01-02 10:00:00+00:00", "[1, 2]")]


def test_what_a_sheet_cannot_hold_is_refused_before_it_is_written(tmp_path):
    table = read_table(io.BytesIO(b"a\n1\n"))
    with pytest.raises(TableError, match=r"column 'b': .* cannot be in an Excel cell") as caught:
        table.write(tmp_path / "t.xlsx", {"b": ["\x01"]})
    assert caught.value.column == "b"
    with pytest.raises(TableError, match="cannot be in an Excel cell"):
        table.write(tmp_path / "t.xlsx", {"b": ["x" * 40_000]})
    with pytest.raises(TableError, match="do not fit into an Excel sheet"):
        table.write(tmp_path / "t.xlsx", {f"c{i}": [1] for i in range(16_384)})
    assert not list(tmp_path.iterdir())


def test_sheets_without_a_table_and_damaged_workbooks_are_refused():
    with pytest.raises(TableError, match="is empty: it has no column names and no rows"):
        read_table(workbook())
    with pytest.raises(TableError, match="has column names but no rows"):
        read_table(workbook(["a", "b"]))
    with pytest.raises(TableError, match="more than one column named 'a'"):
        read_table(workbook(["a", "a"], [1, 2]))
    out = io.BytesIO()
    with zipfile.ZipFile(workbook(["a"], [1])) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[: len(content) // 2] if "sheet1" in name else content)
    with pytest.raises(TableError, match="is cut short or damaged"):
        read_table(io.BytesIO(out.getvalue()))
    moved = bytearray(workbook(["a"], [1]).getvalue())
    offset = moved.rfind(b"PK\x05\x06") + 16
    directory = int.from_bytes(moved[offset : offset + 4], "little")
    moved[offset : offset + 4] = (directory + 5).to_bytes(4, "little")  # members seem to begin before the file does
    with pytest.raises(TableError, match="is cut short or damaged"):
        read_table(io.BytesIO(bytes(moved)))


def test_columns_without_a_name_get_one_and_empty_ones_are_none():
    table = read_table(workbook([None, "a", None, None], [None, 1, None, "x"], [None, 2, None, "y"]))
    assert table.names == ["a", "column 2"]
    assert table.unnamed == ["column 2"]
    assert reread(table, {"l": [1, 2]}).active["E2"].value == 1


def test_without_openpyxl_one_line_says_what_to_install(monkeypatch):
    plain = importlib.import_module

    def no_openpyxl(name: str):
        if name.startswith("openpyxl"):
            raise ImportError(name)
        return plain(name)

    source = workbook(["a"], [1])
    monkeypatch.setattr(importlib, "import_module", no_openpyxl)
    for attempt in (
        lambda: read_table(source),
        lambda: read_table(io.BytesIO(b"a\n1\n")).write(io.BytesIO(), {}, format="xlsx"),
    ):
        with pytest.raises(ImportError, match=r"Excel files needs openpyxl: pip install '\.\[excel\]' in a checkout"):
            attempt()


def test_a_sheet_can_be_named():
    book = workbook(("kind",), ("a",), Prices=[("price",), (3,)])
    assert read_table(book).names == ["kind"]
    book.seek(0)
    table = read_table(book, sheet="Prices")
    assert (table.names, table.cells("price").tolist(), table.notes) == (["price"], [3], [])
    for wrong, answer in (("prices", "did you mean 'Prices'"), ("Costs 2024", "there are")):
        book.seek(0)
        with pytest.raises(ValueError, match=f"sheet='{wrong}' is not in .*{answer}"):
            read_table(book, sheet=wrong)
    with pytest.raises(ValueError, match="sheet='Prices' is for Excel files; standard input is not one"):
        read_table(io.BytesIO(b"kind\na\n"), sheet="Prices")


def test_cells_merged_over_a_written_column_are_split():
    book = openpyxl.Workbook()
    for row in (["a", "kind"], [1, "x"], [2, None], [3, None]):
        book.active.append(row)
    book.active.merge_cells("B3:D4")
    file, out = io.BytesIO(), io.BytesIO()
    book.save(file)
    table = read_table(io.BytesIO(file.getvalue()))
    table.write(out, {"label": ["x", "y", "z"]}, fill=("kind", ["x", "y", "z"]))
    found = read_table(io.BytesIO(out.getvalue()))
    assert list(found.cells("label")) == list(found.cells("kind")) == ["x", "y", "z"]
