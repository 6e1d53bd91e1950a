"""Delimiters, quotes, comments and blank lines of delimited text."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError, read_table
from otprop.files._layout import Dialect, find_cells
from tests.files.tables import table_of, written


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_delimiter_is_found_out(delimiter, end):
    lines = [["id", "price", "text"], ["1", "2.5", '"one, two; three|four"'], ["2", "3.5", "x"]]
    data = end.join(delimiter.join(line) for line in lines).encode()
    table = table_of(data)
    assert table.names == ["id", "price", "text"]
    assert table.cells("text").tolist() == ["one, two; three|four", "x"]
    assert table.kind == ("tsv" if delimiter == "\t" else "csv")
    assert not any("blank lines" in note for note in table.notes)


def test_quotes_inside_of_cells_are_text():
    data = b'size,what\n5" pipe,a\n3","b, c"\n"x""y" z,"d"\n'
    table = table_of(data)
    assert table.cells("size").tolist() == ['5" pipe', '3"', 'x"y z']
    assert table.cells("what").tolist() == ["a", "b, c", "d"]
    assert written(table, {"n": [1, 2, 3]}) == b'size,what,n\n5" pipe,a,1\n3","b, c",2\n"x""y" z,"d",3\n'


def test_quotes_may_mean_nothing():
    table = table_of(b'a,b\n"x,2\n', quote="")
    assert table.cells("a").tolist() == ['"x']
    assert written(table, {"c": ['"']}) == b'a,b,c\n"x,2,"\n'
    with pytest.raises(TableError, match="'p,q' cannot be written without quotes"):
        written(table, {"c": ["p,q"]})


def test_blanks_after_the_delimiters_belong_to_no_cell():
    table = table_of(b'a, b\n1, "x, y"\n2, z\n')
    assert table.names == ["a", "b"]
    assert table.cells("b").tolist() == ["x, y", "z"]
    assert written(table, {"c": ["p", "q, r"]}) == b'a, b, c\n1, "x, y", p\n2, z, "q, r"\n'


def test_blank_lines_are_no_rows_and_stay():
    table = table_of(b"\na,b\n\n1,2\n  \n3,4\n\n\n")
    assert table.n_rows == 2
    assert "5 blank lines, kept as they are" in table.notes
    assert written(table, {"c": [5, 6]}) == b"\na,b,c\n\n1,2,5\n  \n3,4,6\n\n\n"


def test_the_line_with_which_excel_names_the_delimiter_stays():
    table = table_of(b"sep=|\r\na|b,c\r\n1|2\r\n")
    assert table.names == ["a", "b,c"]
    assert written(table, {"d": ["x"]}) == b"sep=|\r\na|b,c|d\r\n1|2|x\r\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# made by hand\nx,y\n1,a\n2,\n", "1 line that begins"),
        ("# made by hand\n# on Monday, late\n\nx,y\n1,a\n2,\n", "2 lines that begin"),
        ("#units: kg, m\r\nx;y;z\r\n1,5;2;a\r\n", "1 line that begins"),
    ],
)
def test_comments_above_the_names_are_refused(text, count):
    with pytest.raises(TableError, match=f"has {count} with # above its column names; remove the comments"):
        read_table(io.BytesIO(text.encode()))


@pytest.mark.parametrize("text", ["#id,x\n1,2\n", "#,x\n#1,2\n#2,3\n", "#id,x\n#1,2\n3,4\n", "#x\n1\n2\n"])
def test_a_name_may_begin_with_the_sign_of_a_comment(text):
    assert read_table(io.BytesIO(text.encode())).names[0].startswith("#")


def test_an_unusual_delimiter_is_hinted_at():
    text = b"a^b^c^y\n1^2^3^p\n4^5^6^\n"
    with pytest.raises(
        TableError,
        match=r"one column only, 'a\^b\^c\^y'; if '\^' is between .* delimiter='\^'; if",
    ):
        read_table(io.BytesIO(text))
    assert read_table(io.BytesIO(text), delimiter="^").names == ["a", "b", "c", "y"]
    assert read_table(io.BytesIO(text), delimiter=",").names == ["a^b^c^y"]
    assert read_table(io.BytesIO(b"a^b\nx\ny^z\n")).names == ["a^b"]
    assert read_table(io.BytesIO(b"name\nx^y\nz^w\n")).names == ["name"]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text('ab", ;\n', max_size=4), min_size=2, max_size=2), min_size=1, max_size=5),
    st.sampled_from(",;|"),
)
def test_find_cells_finds_what_the_csv_module_wrote(rows, delimiter):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    body = out.getvalue().encode()
    cells = find_cells(body, Dialect(delimiter, '"'))
    found = [body[start:stop].decode() for start, stop in zip(cells.starts, cells.stops, strict=True)]
    assert cells.last.tolist() == list(range(1, 2 * len(rows), 2))
    assert found == ['"' + cell.replace('"', '""') + '"' for row in rows for cell in row]
