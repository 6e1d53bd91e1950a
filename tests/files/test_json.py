"""JSON records and JSON lines: every untouched byte comes back."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError, read_table
from tests.files.tables import table_of, written

LINES = b'{"id": 1, "x": 1.50, "y": "a"}\n\n{"x": 2e5, "id": 2}\r\n  {"id": 3, "y": null, "z": [1, 2]}'
RECORDS = b'[\n  {"id": 1, "y": "a"},\n  {"id": 2, "y": ""}\n]\n'


def test_one_object_a_line_is_a_row_and_only_the_new_cells_change():
    table = table_of(LINES)
    assert (table.kind, table.n_rows, table.names) == ("jsonl", 3, ["id", "x", "y", "z"])
    assert table.cells("y").tolist() == ["a", None, None]
    assert table.frame()["x"].tolist()[:2] == [1.5, 2e5]
    assert written(table) == LINES
    out = written(table, {"label": ["ä", None, "b"], "p": [0.5, 1.0, None]}, ("y", [None, "c", "d"]))
    assert out.decode() == (
        '{"id": 1, "x": 1.50, "y": "a", "label": "ä", "p": 0.5}\n\n'
        '{"x": 2e5, "id": 2, "y": "c", "label": null, "p": 1.0}\r\n'
        '  {"id": 3, "y": "d", "z": [1, 2], "label": "b", "p": null}'
    )


def test_a_list_of_objects_keeps_its_style():
    table = table_of(RECORDS)
    assert table.kind == "json"
    assert written(table, {"l": [1, 2]}, ("y", [None, "b"])).decode() == (
        '[\n  {"id": 1, "y": "a", "l": 1},\n  {"id": 2, "y": "b", "l": 2}\n]\n'
    )
    assert written(table_of(b'[{"a":1},{}]'), {"l": ["x", "y"]}) == b'[{"a":1,"l":"x"},{"l": "y"}]'
    pretty = json.dumps([{"a": 1, "b": {"c": [1]}}, {"a": 2}], indent=4).encode()
    grown = [{"a": 1, "b": {"c": [1]}, "l": "x", "m": 1}, {"a": 2, "l": "y", "m": 2}]
    assert written(table_of(pretty), {"l": ["x", "y"], "m": [1, 2]}).decode() == json.dumps(grown, indent=4)


def test_the_encoding_and_its_mark_stay():
    for encoding in ("utf-8-sig", "cp1252"):
        data = '[{"a": "ü"}]'.encode(encoding)
        assert written(table_of(data), {"b": ["ä"]}) == '[{"a": "ü", "b": "ä"}]'.encode(encoding)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b", 'c"', "d}", "", "{e"]), VALUES), min_size=1, max_size=5)


@pytest.mark.parametrize("lines", [True, False])
@settings(deadline=None)
@given(rows=ROWS, indent=st.sampled_from([None, 2]), separators=st.sampled_from([(",", ":"), (", ", ": ")]))
def test_random_values_and_the_order_of_their_keys_come_back(lines, rows, indent, separators):
    rows[0].setdefault("a", "text")
    if lines:
        text = "\n".join(json.dumps(row, separators=separators) for row in rows)
    else:
        text = json.dumps(rows, indent=indent, separators=separators)
    table = table_of(text.encode(), format="jsonl" if lines else "json")
    assert written(table).decode() == text
    out = written(table, {"new": [f"}}{i}" for i in range(len(rows))]}).decode()
    found = [json.loads(line) for line in out.split("\n")] if lines else json.loads(out)
    expected = [{**row, "new": f"}}{i}"} for i, row in enumerate(rows)]
    assert found == expected
    assert [list(row) for row in found] == [list(row) for row in expected]


def test_values_become_columns():
    rows = [
        {
            "n": 1,
            "big": 2**80,
            "mixed": 1,
            "flag": True,
            "day": "2024-01-02",
            "code": "007",
            "v": [1.0, 2.0],
            "o": {"a": 1},
        },
        {"n": 2.5, "big": 1, "mixed": "b", "flag": None, "day": "2024-01-03", "code": "008", "v": None, "o": None},
    ]
    table = table_of(json.dumps(rows).encode())
    frame = table.frame()
    assert frame["n"].tolist() == [1.0, 2.5]
    assert frame["big"].tolist() == [2.0**80, 1.0]
    assert frame["mixed"].tolist() == ["1", "b"]
    assert frame["flag"].isna().tolist() == [False, True]
    assert frame["day"].tolist() == [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-03")]
    assert frame["code"].tolist() == ["007", "008"]
    assert frame["v"][0].tolist() == [1.0, 2.0]
    assert "column 'mixed' mixes types, so it is read as text" in table.notes


def test_labels_take_the_type_of_the_column_they_fill():
    assert written(table_of(b'{"y": 1}\n{"y": null}\n'), fill=("y", [None, "2"])) == b'{"y": 1}\n{"y": 2}\n'
    with pytest.raises(TableError, match="'cat' cannot be written into column 'y'") as caught:
        written(table_of(b'{"y": 1}\n{"y": null}\n'), fill=("y", [None, "cat"]))
    assert caught.value.argument == "fill"
    assert written(table_of(b'{"y": 1, "y": null}'), fill=("y", [3])) == b'{"y": 1, "y": 3}'
    assert written(table_of(b'{"y": null, "x": 1}'), fill=("y", ["a"])) == b'{"y": "a", "x": 1}'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n{"a": \n', r"is not valid JSON in line 2 \(Expecting value\)"),
        (b'{"a": 1} {"a": 2}\n', "not valid JSON in line 1 .there is more than one value in the line"),
        (b'{"a": 1}\n[1]\n', "line 2 has '.1.' where an object is expected; write it as a list of objects"),
        (b'[{"a": 1} {"a": 2}]', "a comma or ] is missing"),
        (b'[{"a": 1}] x', "there is more after the list"),
        (b'[{"a": 1},\n', "not valid JSON in line 2"),
        (b'[{"a": ' + b"[" * 100_000, "not valid JSON in line 1"),
        (b'[{"a": 1' + b"0" * 5000 + b"}]", "not valid JSON in line 1"),
        (b"[[1, 2]]", "is JSON, but not a table"),
        (b'{"a": "\\ud800"}', "column 'a' has text that is not valid Unicode"),
        (b"[]", "is empty: it has no rows"),
        (b"[{}, {}]", "is empty: its objects have no keys"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data, message):
    with pytest.raises(TableError, match=message) as caught:
        table_of(data)
    assert "\n" not in str(caught.value)
    assert caught.value.file == "standard input"


def test_json_lines_may_be_called_json(tmp_path):
    (tmp_path / "t.json").write_bytes(b'{"a": 1}\n')
    table = read_table(tmp_path / "t.json")
    table.write(tmp_path / "u.json", {})
    assert table.kind == "jsonl"
    assert json.loads((tmp_path / "u.json").read_text()) == [{"a": 1}]
