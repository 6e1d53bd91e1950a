"""Small files that would become large tables are refused before anything is built from them."""

from __future__ import annotations

import io
import zipfile

import pytest

from otprop.files import TableError, _limits, read_table
from otprop.files._limits import check_workbook

openpyxl = pytest.importorskip("openpyxl")
SHEET, STYLES = "xl/worksheets/sheet1.xml", "xl/styles.xml"


def parts() -> dict[str, str]:
    book = openpyxl.Workbook()
    for row in (["x", "kind"], [1, "a"], [2, "b"]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def packed(members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def workbook(more: str, before: str = "</sheetData>", part: str = SHEET) -> bytes:
    """A workbook with more XML in one of its parts."""
    found = parts()
    assert before in found[part]
    return packed({**found, part: found[part].replace(before, more + before, 1)})


def cells(reference: str, number: int = 4) -> str:
    return f'<row r="{number}"><c r="{reference}"><v>1</v></c></row>'


AFTER = "<pageMargins"
HOSTILE = {
    "a row far below": (workbook('<row r="99999999999"/>'), "more than 1,048,576 rows"),
    "a row of no number": (workbook('<row r="-5"/>'), "more than 1,048,576 rows"),
    "a cell far below": (workbook(cells("A9999999")), "more than 1,048,576 rows"),
    "a cell far to the right": (workbook(cells("ZZZ4")), "more than 16,384 columns"),
    "a cell nowhere": (workbook(cells("A" + "9" * 5000)), "a cell at 'A999"),
    "one cell on the right of many rows": (
        workbook("".join(cells(f"XFD{row}", row) for row in range(4, 2000))),
        r"1,\d{3} rows and 16,384 columns, but only 2,002 values",
    ),
    "a merged sheet": (
        workbook('<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>', AFTER),
        "ranges of more than 2,000,000 cells",
    ),
    "a link from a whole sheet": (
        workbook('<hyperlinks><hyperlink ref="$A$1:XFD1048576" location="A1"/></hyperlinks>', AFTER),
        "ranges of more than 2,000,000 cells",
    ),
    "many styles": (workbook("<xf/>" * 70_000, "</cellXfs>", STYLES), "more than 66,000 styles"),
    "parts within parts": (workbook("<a>" * 300 + "</a>" * 300, AFTER), "parts within parts"),
    "entities": (
        packed({**parts(), SHEET: '<!DOCTYPE a [<!ENTITY b "bbbb">]><worksheet>&b;</worksheet>'}),
        "definitions of XML entities",
    ),
    "another encoding": (
        packed({**parts(), SHEET: '<?xml version="1.0" encoding="utf-16"?><a><row r="9999999"/></a>'.encode("utf-16")}),
        "more than 1,048,576 rows",
    ),
}


@pytest.mark.parametrize(("data", "what"), HOSTILE.values(), ids=HOSTILE)
def test_a_workbook_beyond_the_limits_is_refused_before_openpyxl_sees_it(data, what, monkeypatch):
    def never(*args, **options):
        raise AssertionError

    monkeypatch.setattr(openpyxl, "load_workbook", never)
    with pytest.raises(TableError, match=f"^mine.xlsx has .*{what}"):
        read_table(io.BytesIO(data), origin="mine.xlsx")


def test_a_workbook_of_more_elements_than_its_size_explains_is_refused(monkeypatch):
    monkeypatch.setattr(_limits, "MIN_ELEMENTS", 100_000)
    with pytest.raises(TableError, match="too many parts for its size"):
        check_workbook(workbook("<si/>" * 200_000, AFTER), "mine.xlsx")


def test_a_workbook_of_many_empty_rows_is_refused(monkeypatch):
    monkeypatch.setattr(_limits, "MAX_ROWS", 1000)
    check_workbook(workbook("<row/>" * 997), "mine.xlsx")
    with pytest.raises(TableError, match="more than 1,000 rows"):
        check_workbook(workbook("<row/>" * 998), "mine.xlsx")


def test_a_sheet_named_as_a_picture_is_looked_at_too():
    found = parts()
    sheet = found.pop(SHEET).replace("</sheetData>", '<row r="99999999999"/></sheetData>')
    moved = {name: text.replace("worksheets/sheet1.xml", "media/a.png") for name, text in found.items()}
    with pytest.raises(TableError, match="more than 1,048,576 rows"):
        read_table(io.BytesIO(packed({**moved, "xl/media/a.png": sheet})))


def test_a_usual_workbook_with_merged_cells_and_a_far_last_row_is_read():
    merged = workbook('<mergeCells><mergeCell ref="A5:XFD20"/></mergeCells>', AFTER)
    assert read_table(io.BytesIO(merged)).n_rows == 2
    assert read_table(io.BytesIO(workbook(cells("A1048576", 1_048_576)))).n_rows == 3


def lines(n: int) -> bytes:
    return b"".join(b'{"k%d":1}\n' % number for number in range(n))


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_objects_that_share_no_keys_are_refused_before_they_become_columns(kind, monkeypatch):
    from otprop.files import _columnar

    monkeypatch.setattr(_columnar, "from_values", None)
    data = lines(5000) if kind == "jsonl" else b"[" + lines(5000).strip().replace(b"\n", b",") + b"]"
    with pytest.raises(TableError, match="5,000 rows and 5,000 columns, but only 5,000 values; remove the columns"):
        read_table(io.BytesIO(data))
    with pytest.raises(TypeError):
        read_table(io.BytesIO(lines(300)))


def test_a_workbook_with_damaged_compressed_parts_is_a_sentence():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"<worksheet/>" * 100)
    damaged = bytearray(data.getvalue())
    damaged[60:66] = b"\xff" * 6  # inside the compressed bytes
    with pytest.raises(TableError) as caught:
        read_table(io.BytesIO(bytes(damaged)), format="xlsx", origin="t.xlsx")
    assert "\n" not in str(caught.value)
