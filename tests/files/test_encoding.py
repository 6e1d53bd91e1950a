"""Encodings of text files."""

from __future__ import annotations

import io

import pytest

from otprop.files import TableError
from otprop.files._encoding import line_of, to_utf8
from tests.files.tables import table_of, written


def test_a_latin_file_is_read_and_written_as_such():
    table = table_of("name,y\nMüller,a\nCafé,\n".encode("cp1252"))
    assert any("cp1252" in note and "line 2" in note for note in table.notes)
    assert table.cells("name").tolist() == ["Müller", "Café"]
    assert written(table, fill=("y", [None, "ö"])) == "name,y\nMüller,a\nCafé,ö\n".encode("cp1252")
    with pytest.raises(TableError, match=r"'ž' cannot be written in cp1252|'日' cannot be written in cp1252"):
        table.write(io.BytesIO(), {"z": ["日", "a"]})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"])
def test_to_utf8_finds_the_encoding_which_gives_the_bytes_back(encoding):
    text = "name,y\nMüller,a\nCafé,b\n"
    data = text.encode(encoding)
    utf8, found, note = to_utf8(data, None, "t.csv")
    assert utf8 == text.encode()
    assert found.bom + found.encode(utf8) == data
    assert (note is None) == (encoding == "utf-8-sig")


def test_line_of_counts_line_ends_of_every_system():
    text = b"a\rb\r\nc\nd"
    assert [line_of(text, text.index(letter)) for letter in (b"a", b"b", b"c", b"d")] == [1, 2, 3, 4]
