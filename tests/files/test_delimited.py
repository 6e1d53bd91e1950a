"""CSV and TSV: every untouched byte comes back, and new cells say what they should."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from otprop._validation import ParameterError
from otprop.files import TableError, check_reading
from tests.files.tables import table_of, written

SPECIAL = [
    "007",
    "1e5",
    "",
    " ",
    "  x ",
    "NA",
    "1,5",
    "1.234,5",
    '"',
    '""',
    "'",
    "=1+1",
    "-5",
    "ä",
    "日本",
    "a\nb",
    "\r\n",
    "\t",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff\x85\u2028\u2029"), max_size=6)
LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=6).filter(
    lambda text: all(not 0x7F <= ord(c) < 0xA0 for c in text)
)


def table_or_complaint(data: bytes):
    try:
        return table_of(data), ""
    except TableError as error:
        return None, str(error)


def cell_as_written(draw, text, delimiter, quote):
    """A cell, quoted if it must be, and sometimes if it need not."""
    must = any(c in text for c in (delimiter, quote, "\n", "\r")) or text == ""
    if must or draw(st.booleans()):
        return quote + text.replace(quote, quote * 2) + quote
    return text


@st.composite
def files(draw, cells=None):
    """A text file with its cells: any delimiter, quoting, line ends, encoding."""
    delimiter = draw(st.sampled_from(",;\t|"))
    quote = draw(st.sampled_from("\"'"))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252"]))
    text = cells or (LATIN if encoding in ("latin-1", "cp1252") else TEXT | st.sampled_from(SPECIAL))
    width, height = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rows = [[f"c{j}" for j in range(width)]]
    rows += draw(st.lists(st.lists(text, min_size=width, max_size=width), min_size=height, max_size=height))
    lines = [delimiter.join(cell_as_written(draw, cell, delimiter, quote) for cell in row) for row in rows]
    ends = [draw(st.sampled_from(["\n", "\r\n", "\r"])) for _ in lines]
    ends[-1] = draw(st.sampled_from(["", ends[-1], ends[-1] + "\n"]))
    whole = "".join(line + end for line, end in zip(lines, ends, strict=True))
    data = whole.encode(encoding)
    options = {"delimiter": delimiter, "quote": quote, "encoding": encoding}
    if encoding == "utf-16-be":
        options["encoding"] = "utf-16-be"
    return data, rows, options


def read_independently(data: bytes, options) -> list[list[str]]:
    text = data.decode(options["encoding"])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=options["delimiter"], quotechar=options["quote"])
    return [row for row in reader if row]


def is_blank_line(row) -> bool:
    return len(row) == 1 and not row[0].strip(" ")


@settings(deadline=None)  # the first call imports much
@given(files())
def test_a_table_with_nothing_added_comes_back_byte_for_byte(file):
    data, rows, options = file
    assume(not any(is_blank_line(row) for row in rows))
    assert written(table_of(data, **options)) == data


@settings(deadline=None)
@given(files())
def test_the_cells_are_those_that_python_reads(file):
    data, rows, options = file
    assume(not any(is_blank_line(row) for row in rows))
    table = table_of(data, **options)
    assert table.n_rows == len(rows) - 1
    for j, name in enumerate(table.names):
        assert table.cells(name).tolist() == [row[j] or None for row in rows[1:]]


@settings(deadline=None)
@given(files(), st.data())
def test_added_columns_are_read_by_others_and_the_rest_is_untouched(file, data_):
    data, rows, options = file
    assume(not any(is_blank_line(row) for row in rows))
    latin = options["encoding"] in ("latin-1", "cp1252")
    labels = data_.draw(st.lists(LATIN if latin else TEXT, min_size=len(rows) - 1, max_size=len(rows) - 1))
    out = written(table_of(data, **options), {"y_label": labels, "n": list(range(len(labels)))})
    read = read_independently(out, options)
    assert read[0] == [*rows[0], "y_label", "n"]
    assert read[1:] == [[*row, label, str(i)] for i, (row, label) in enumerate(zip(rows[1:], labels, strict=True))]
    codec = "utf-16-le" if options["encoding"] == "utf-16" else options["encoding"].removesuffix("-sig")
    rest = iter(out.decode(codec))
    assert all(character in rest for character in data.decode(codec))  # what was there is still there, in order


@settings(deadline=None)
@given(files(), st.data())
def test_filling_changes_the_filled_cells_alone(file, data_):
    data, rows, options = file
    assume(not any(is_blank_line(row) for row in rows))
    latin = options["encoding"] in ("latin-1", "cp1252")
    j = data_.draw(st.integers(0, len(rows[0]) - 1))
    value = st.none() | (LATIN if latin else TEXT).filter(lambda text: text.strip(" ") != "")
    values = data_.draw(st.lists(value, min_size=len(rows) - 1, max_size=len(rows) - 1))
    table = table_of(data, **options)
    out = written(table, fill=(table.names[j], values))
    for row, value in zip(rows[1:], values, strict=True):
        row[j] = row[j] if value is None else value
    assert read_independently(out, options) == rows
    if not any(values):
        assert out == data


def test_an_empty_last_cell_is_filled_before_columns_are_added():
    out = written(table_of(b"a,y\r\n1,\r\n2,p"), {"n": [1, 2]}, ("y", ["q", None]))
    assert out == b"a,y,n\r\n1,q,1\r\n2,p,2"


@settings(deadline=None)
@given(files())
def test_whatever_is_found_out_the_bytes_come_back(file):
    data, _, _ = file
    table, complaint = table_or_complaint(data)
    assert "\n" not in complaint
    if table is not None:
        assert written(table) == data
        assert len(table.frame()) == table.n_rows


@settings(deadline=None)
@given(st.text('ab",\n \r', max_size=40))
def test_stray_quotes_are_read_as_python_reads_them(text):
    data = ("p,q\n" + text).encode()
    table, _ = table_or_complaint(data)
    reader = csv.reader(io.StringIO(data.decode(), newline=""))
    rows = [row for row in reader if not is_blank_line(row) and row]
    if table is not None and not table.dialect.blanks:
        assert [list(row) for row in zip(table.cells("p"), table.cells("q"), strict=True)] == [
            [cell or None for cell in row] for row in rows[1:]
        ]
        assert written(table) == data


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_table_or_an_error_in_one_line(data):
    table, complaint = table_or_complaint(data)
    assert "\n" not in complaint
    if table is not None:
        assert written(table) == data


def test_decimal_commas_are_found_out_and_used_for_new_numbers():
    table = table_of(b"a;b\n1,5;x\n2,25;\n")
    assert "decimal sign ','" in table.notes
    assert "delimiter ';'" in table.notes
    assert table.frame()["a"].tolist() == [1.5, 2.25]
    assert written(table, {"p": [0.5, 1.0]}) == b"a;b;p\n1,5;x;0,5\n2,25;;1,0\n"


def test_a_column_without_a_name_gets_one_and_keeps_its_blank_header():
    table = table_of(b",a,\n1,2,3\n")
    assert table.names == ["column 1", "a", "column 3"]
    assert "columns without a name are called column 1, column 3" in table.notes
    assert written(table, {"b": [1]}) == b",a,,b\n1,2,3,1\n"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", {}, "standard input is empty"),
        (b"\n\n  \n", {}, "standard input is empty"),
        (b"a,b\n", {}, "has column names but no rows"),
        (b"a,b\n1,2\n1\n3,4\n5,6\n", {}, r"row 2 \(line 3\) has 1 cell, too few for the 2 columns"),
        (b'a,b\n"x\ny",2\n\n1,2,3\n1,2\n1,2\n', {}, r"row 2 \(line 5\) has 3 cells, too many for the 2 columns"),
        (b'a,b\n1,2\n3,"4\n5,6\n', {}, 'quote " opened in line 3 is never closed'),
        (b'a,b\n5" x,2\n3,"4\n5,6\n', {}, 'quote " opened in line 3 is never closed'),
        (b"a,b\n1,2\n3,\x00\n", {}, "NUL byte in line 3"),
        (b"a,b,a,c,b\n1,2,3,4,5\n", {}, "more than one column named 'a', 'b'; rename them"),
        (b"a,b\n1,\xe9\n", {"encoding": "utf-8"}, "not UTF-8: line 2 has the byte 0xE9; pass its encoding"),
        (bytes(range(256)).replace(b"\0", b"") * 9, {}, "neither text nor a known format"),
    ],
)
def test_what_is_wrong_with_a_text_file_is_said_in_one_line(data, options, message):
    with pytest.raises(TableError, match=message) as caught:
        table_of(data, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("encoding", "klingon", "encoding must be an encoding that Python knows.*; got 'klingon'"),
        ("encoding", "a\0b", "encoding must be an encoding"),
        ("delimiter", "::", "delimiter must be one ASCII character.*; got '::'"),
        ("quote", "ab", "quote must be one ASCII character.*; got 'ab'"),
        ("decimal", ";", "decimal must be '.' or ','; got ';'"),
        ("format", "ods", "format must be one of csv, tsv, .*; got 'ods'"),
        ("max_bytes", 0, "max_bytes must be None or an integer >= 1; got 0"),
    ],
)
def test_an_argument_that_fits_no_file_is_an_error_of_the_argument(argument, value, message):
    with pytest.raises(ParameterError, match=message) as caught:
        table_of(b"a,b\n1,2\n", **{argument: value})
    assert caught.value.parameter == argument
    if argument in ("encoding", "delimiter", "quote"):
        with pytest.raises(ParameterError, match=message):
            check_reading(**{argument: value})
