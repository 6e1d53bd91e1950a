"""A session file from elsewhere: what is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from otprop.files import TableError
from otprop.studio.export import rescue_labels
from otprop.studio.session_file import SessionError
from tests.studio.sessions import opened


@pytest.mark.parametrize("damage", [b"\xff" * 200, b"\0" * 4096, b"otprop" * 600])
def test_a_damaged_session_is_said_to_be_damaged_wherever_the_damage_is(tmp_path: Path, damage: bytes) -> None:
    session = opened(tmp_path)
    for row in range(20):
        session.label([row], row % 2, drawn=row > 5)
    session.close()
    whole = (tmp_path / "s.otprop").read_bytes()
    refused = 0
    for place in range(4096, len(whole), 4096):
        path = tmp_path / f"{place}.otprop"
        path.write_bytes((whole[:place] + damage + whole[place + len(damage) :])[: len(whole)])
        try:
            opened(path).close()  # a page that nothing is read from may be anything
        except SessionError as error:
            assert "is damaged" in str(error)  # noqa: PT017 - most places are refused, not all
            refused += 1
    assert refused > 5


HOSTILE = {
    "a trigger": "CREATE TRIGGER swallow BEFORE INSERT ON changes BEGIN SELECT RAISE(IGNORE); END",
    "a trigger of our name": (
        "DROP TRIGGER events_stay; CREATE TRIGGER events_stay BEFORE INSERT ON changes BEGIN SELECT RAISE(IGNORE); END"
    ),
    "no trigger": "DROP TRIGGER changes_remain",
    "a view": "CREATE VIEW more AS SELECT * FROM events",
    "an endless view": (
        "ALTER TABLE curve RENAME TO c; CREATE VIEW curve AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS revision, i AS labels, 0 AS error FROM n"
    ),
    "another table": "CREATE TABLE more (a)",
    "an index": "CREATE INDEX more ON events (kind)",
    "a column": "ALTER TABLE changes ADD COLUMN more TEXT",
    "3e9 rows": "UPDATE meta SET value = '3000000000' WHERE key = 'n_rows'",
    "rows in words": "UPDATE meta SET value = 'many' WHERE key = 'n_rows'",
    "a row of 3e9": "INSERT INTO changes VALUES (1, 3000000000, -1, 0, 0, 0, '')",
    "a row below 0": "INSERT INTO changes VALUES (1, -1, -1, 0, 0, 0, '')",
    "a state without a class": "INSERT INTO changes VALUES (1, 1, -1, 7, 0, 0, '')",
    "a state that is text": "INSERT INTO changes VALUES (1, 1, -1, 'a', 0, 0, '')",
    "a state that is a blob": "INSERT INTO changes VALUES (1, 1, -1, x'00', 0, 0, '')",
    "a fingerprint that is a blob": "INSERT INTO changes VALUES (1, 1, -1, 0, 0, 0, x'ff')",
    "a change of no event": "INSERT INTO changes VALUES (9, 1, -1, 0, 0, 0, '')",
    "a change that does not follow": "INSERT INTO changes VALUES (1, 1, 1, 0, 0, 0, '')",
    "a late revision": "INSERT INTO events VALUES (9223372036854775807, 'label', '2026-01-01', NULL, NULL)",
    "a revision below 1": "INSERT INTO events VALUES (-5, 'label', '2026-01-01', NULL, NULL)",
    "an unknown kind": "INSERT INTO events VALUES (2, 'drop', '2026-01-01', NULL, NULL)",
    "a time that is a blob": "INSERT INTO events VALUES (2, 'label', x'00', NULL, NULL)",
    "nothing to undo": (
        "INSERT INTO events VALUES (2, 'undo', '2026-01-01', 1, NULL); "
        "INSERT INTO events VALUES (3, 'undo', '2026-01-01', 1, NULL)"
    ),
    "a goal that is text": "INSERT INTO meta VALUES ('goal', 'soon')",
    "a goal that is NaN": "INSERT INTO meta VALUES ('goal', 'nan')",
    "a goal that is a blob": "INSERT INTO meta VALUES ('goal', x'30')",
    "an infinite goal": "INSERT INTO meta VALUES ('goal', '1e999')",
    "deep columns": f"UPDATE meta SET value = '{'[' * 100_000}' WHERE key = 'columns'",
    "columns that are numbers": "UPDATE meta SET value = '[1]' WHERE key = 'columns'",
    "deep keys": f"INSERT INTO meta VALUES ('keys', '{'[' * 100_000}')",
    "keys of no class": """INSERT INTO meta VALUES ('keys', '{"a": "1"}')""",
    "long keys": """INSERT INTO meta VALUES ('keys', '{"0": "12"}')""",
    "an unknown entry": "INSERT INTO meta VALUES ('more', '1')",
    "a missing entry": "DELETE FROM meta WHERE key = 'digest'",
    "a class far away": "INSERT INTO classes VALUES (9223372036854775807, 'z', '2026-01-01')",
    "a class that is a blob": "INSERT INTO classes VALUES (2, x'ff', '2026-01-01')",
    "an infinite point": "INSERT INTO curve VALUES (1, 1, 9e999, 0, 0)",
    "a point without a number": "INSERT INTO curve VALUES (1, 1, NULL, 0, 0)",
    "a point that is text": "INSERT INTO curve VALUES (1, 1, 'x', 0, 0)",
    "deep carried columns": f"INSERT INTO carried VALUES (1, 0, 1, 0, 0, '', '', '{'[' * 100_000}')",
    "a carried row of 3e9": "INSERT INTO carried VALUES (1, 1, 3000000000, 0, 0, 'skip', '', '[]')",
    "an unknown mark": "INSERT INTO carried VALUES (1, 1, 1, 0, 0, 'mark', '', '[]')",
    "a class that is no UTF-8": "INSERT INTO classes VALUES (2, CAST(x'ff' AS TEXT), '2026-01-01')",
    "a fingerprint that is no UTF-8": (
        "INSERT INTO events VALUES (2, 'label', '2026-01-01', NULL, NULL); "
        "INSERT INTO changes VALUES (2, 1, -1, 0, 0, 0, CAST(x'ff' AS TEXT))"
    ),
    "columns that are no UTF-8": "UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE key = 'columns'",
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_session_with_a_foreign_schema_or_an_impossible_value_is_refused(tmp_path: Path, hostile: str) -> None:
    session = opened(tmp_path)
    session.label([0], 1)
    session.close()
    with sqlite3.connect(tmp_path / "s.otprop") as connection:
        connection.executescript(HOSTILE[hostile])
    connection.close()
    with pytest.raises(SessionError, match=r"is damaged .*rescue") as caught:
        opened(tmp_path)
    assert "\n" not in str(caught.value)
    before = (tmp_path / "s.otprop").read_bytes()
    assert rescue_labels(tmp_path / "s.otprop", tmp_path / "labels.csv") >= 1  # what can be read can be taken away
    assert "\n1,b,chosen," in (tmp_path / "labels.csv").read_text()
    assert (tmp_path / "s.otprop").read_bytes() == before
    with pytest.raises(TableError, match="exists"):
        rescue_labels(tmp_path / "s.otprop", tmp_path / "labels.csv")


def test_a_session_whose_schema_is_damaged_is_refused_in_one_sentence(tmp_path: Path) -> None:
    opened(tmp_path).close()
    path, broken = tmp_path / "s.otprop", tmp_path / "broken.otprop"
    whole = path.read_bytes()
    start = whole.index(b"CREATE TABLE classes")
    for place in range(start, start + 40, 3):
        broken.write_bytes(whole[:place] + b"\xa1" + whole[place + 1 :])
        with pytest.raises(SessionError, match=r"is damaged|cannot write"):
            opened(broken)
        with pytest.raises(SessionError, match="no label"):
            rescue_labels(broken, tmp_path / "none.csv")
