"""The session file: what was saved is there, whatever happens to the process or to the user's file."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files import TableError
from otprop.studio.export import rescue_labels
from otprop.studio.session import Session
from otprop.studio.session_file import NotSavedError, SessionError
from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN


@dataclass
class Lots:
    """The rows of a file, each with one cell in every column."""

    cells: list[str] = field(default_factory=lambda: [f"lot {number}" for number in range(20)])
    columns: list[str] = field(default_factory=lambda: ["lot"])
    name: str = "lots.csv"

    @property
    def digest(self) -> str:
        return "|".join(self.cells)

    @property
    def n_rows(self) -> int:
        return len(self.cells)

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        found = range(self.n_rows) if rows is None else rows
        return [f"{self.cells[row]} in {len(columns or self.columns)} columns" for row in found]


def opened(path: Path, rows: Lots | None = None, target: str = "kind", classes: Sequence[str] = ("a", "b")) -> Session:
    return Session(path / "s.otprop" if path.is_dir() else path, rows or Lots(), target, classes)


def summary(session: Session) -> tuple[object, ...]:
    undo = session.can_undo, session.can_redo
    marks = list(session.skipped), list(session.kept), session.n_by_key
    return session.state.tolist(), session.drawn.tolist(), marks, session.revision, undo


actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("label"),
            st.lists(st.integers(0, 19), min_size=1, max_size=6),
            st.sampled_from([0, 1, REMOVED, UNKNOWN, AS_IN_FILE]),
            st.booleans(),
        ),
        st.tuples(st.sampled_from(["skip", "keep"]), st.integers(0, 19)),
        st.tuples(st.just("undo")),
        st.tuples(st.just("redo")),
    ),
    max_size=25,
)


@settings(max_examples=max(15, settings().max_examples // 4), deadline=None)  # each writes a file
@given(actions)
def test_the_log_adds_up_to_what_a_list_of_states_would_and_a_reopened_session_is_the_same(steps: list) -> None:
    done: list[tuple] = [tuple([AS_IN_FILE] * 20)]  # an independent model: every state there was
    undone: list[tuple] = []
    with TemporaryDirectory() as folder:
        session = opened(Path(folder))
        for step in steps:
            states = done[-1]
            if step[0] == "label":
                _, rows, new, drawn = step
                after = tuple(new if row in rows else state for row, state in enumerate(states))
                assert (session.label(rows, new, drawn=drawn) is None) == (after == states)
                if after != states:
                    done.append(after)
                    undone.clear()
            elif step[0] in ("skip", "keep"):
                (session.skip if step[0] == "skip" else session.keep)(step[1])
                done.append(states)
                undone.clear()
            elif step[0] == "undo":
                assert (session.undo() is None) == (len(done) == 1)
                if len(done) > 1:
                    undone.append(done.pop())
            else:
                assert (session.redo() is None) == (not undone)
                if undone:
                    done.append(undone.pop())
            assert tuple(session.state.tolist()) == done[-1]
            assert session.can_undo == (len(done) > 1)
            assert session.can_redo == bool(undone)
        before, name = summary(session), session.session_id
        session.close()
        again = opened(Path(folder))
        assert (summary(again), again.session_id) == (before, name)
        again.close()


def test_a_region_is_one_event_and_one_undo_takes_it_back(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([4], 1)
    session.label(range(10), 0)
    assert session.revision == 2
    session.undo()
    assert session.state.tolist() == [AS_IN_FILE] * 4 + [1] + [AS_IN_FILE] * 15
    assert [(event.kind, len(event.rows)) for event in session.log()] == [("undo", 10), ("label", 10), ("label", 1)]
    session.close()


def test_a_row_keeps_how_it_was_picked_first(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([0], 0, drawn=True)
    session.label([1], 0)
    session.label([0, 1], 1, drawn=True)
    assert session.drawn[:3].tolist() == [True, False, False]
    session.label([0], UNKNOWN)
    assert not session.drawn[0]
    session.undo()
    assert session.drawn[0]
    session.close()


def test_skipped_and_kept_rows_are_so_until_they_are_labelled_or_the_mark_is_undone(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.skip(3)
    session.keep(4)
    session.skip(5)
    session.undo()
    assert (list(session.skipped), list(session.kept)) == ([3], [4])
    session.redo()
    session.label([3, 4], 1)
    assert (list(session.skipped), list(session.kept)) == ([5], [])
    session.close()


def test_only_rows_labelled_one_by_one_are_counted_as_such(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([0], 1)
    session.label(range(1, 9), 0)
    session.label([10], 1, "accept")
    session.label([11], UNKNOWN, "unknown")
    session.skip(12)
    assert session.n_by_key == 2
    for _ in range(5):
        session.undo()
    assert session.n_by_key == 0
    session.redo()
    assert session.n_by_key == 1
    session.close()


def test_the_log_cannot_be_changed(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([0], 1)
    session.close()
    connection = sqlite3.connect(tmp_path / "s.otprop")
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'x'", "DELETE FROM changes"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_classes_keep_their_ids(tmp_path: Path) -> None:
    session = opened(tmp_path)
    assert (session.add_class("z"), session.add_class("a"), session.add_class("z")) == (2, 0, 2)
    session.close()
    session = opened(tmp_path, classes=("a", "b", "c"))
    assert session.classes == ["a", "b", "z", "c"]
    session.close()


def test_a_request_that_comes_twice_is_found(tmp_path: Path) -> None:
    session = opened(tmp_path)
    event = session.label([3], 1, request="f" * 32)
    assert event is not None
    session.label([4], 1)
    session.close()
    session = opened(tmp_path)
    found = session.event_of_request("f" * 32)
    assert found is not None
    assert (found.revision, found.rows.tolist()) == (event.revision, [3])
    assert session.event_of_request("0" * 32) is None
    session.close()


def test_the_curve_and_the_goal_stay(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.set_goal(0.02)
    session.add_curve_point(1, 10, 0.3, 0.2, 0.4)
    session.add_curve_point(2, 11, 0.2, 0.1, 0.3)
    session.add_curve_point(3, 10, 0.25, 0.2, 0.4)
    session.close()
    session = opened(tmp_path)
    assert session.goal == 0.02
    assert [point[:2] for point in session.curve()] == [(10, 0.25), (11, 0.2)]
    session.close()


# --- files that cannot be used


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    session = opened(tmp_path)
    script = (
        "import sys; from tests.studio.test_session import opened; from pathlib import Path\n"
        "try: opened(Path(sys.argv[1]))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SessionError")
    assert "is open in another otprop studio" in done.stdout
    session.label([0], 1)
    session.close()
    opened(tmp_path).close()


HEADER = b"SQLite format 3\0"
OURS = HEADER + bytes(52) + b"otps" + b"\1" * 132  # the id of the program, and no more that is right


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"lot,kind\n1,a\n", "not an otprop session"),
        (HEADER + b"\1" * 200, "another program"),
        (OURS, "damaged|cannot"),
    ],
)
def test_a_file_of_another_kind_is_refused_and_stays_as_it_was(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "s.otprop"
    path.write_bytes(content)
    with pytest.raises(SessionError, match=words):
        opened(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_programs_database_is_refused_and_stays_as_it_was(tmp_path: Path, mode: str) -> None:
    connection = sqlite3.connect(tmp_path / "s.otprop", isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE theirs (a)")
    copy = tmp_path / "copy"  # of a program that was killed: with the log, if it has one
    copy.mkdir()
    for path in tmp_path.glob("s.otprop*"):
        (copy / path.name).write_bytes(path.read_bytes())
    connection.close()
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    with pytest.raises(SessionError, match="another program's database"):
        opened(copy)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    assert len(before) == (3 if mode == "wal" else 1)


def test_a_session_of_version_0_2_with_its_labels_in_the_log_is_opened_and_written_back(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([3], 1)
    session.close()
    logged, killed = sqlite3.connect(tmp_path / "log.otprop"), tmp_path / "killed"
    logged.execute("PRAGMA journal_mode = WAL")
    with sqlite3.connect(tmp_path / "s.otprop") as saved:
        saved.backup(logged)
    saved.close()
    killed.mkdir()
    for ending in ("", "-wal"):
        (killed / f"s.otprop{ending}").write_bytes((tmp_path / f"log.otprop{ending}").read_bytes())
    logged.close()
    assert (killed / "s.otprop").read_bytes()[68:72] != b"otps"
    session = opened(killed)
    assert session.state[3] == 1
    assert not (killed / "s.otprop-wal").exists()
    session.close()


def test_a_session_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "s.otprop") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (tmp_path / "s.otprop").read_bytes()
    with pytest.raises(SessionError, match=r"newer otprop .format 99.*update otprop"):
        opened(tmp_path)
    assert (tmp_path / "s.otprop").read_bytes() == before


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=r"cannot write the session file.*session"):
        opened(tmp_path / "missing" / "s.otprop")
    with pytest.raises(SessionError, match="cannot write the session file"):
        Session(tmp_path, Lots(), "kind")


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


def test_an_empty_file_becomes_a_session(tmp_path: Path) -> None:
    (tmp_path / "s.otprop").touch()
    opened(tmp_path).close()


def test_another_target_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(SessionError, match="of the target 'kind', not of 'colour'"):
        opened(tmp_path, target="colour")


# --- files that come from a stranger

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


def test_what_can_be_read_of_a_damaged_session_is_rescued(tmp_path: Path) -> None:
    lots = Lots([f"lot {number}" for number in range(2000)])
    session = opened(tmp_path, lots)
    session.label(range(2000), 0, drawn=True)
    session.label(range(1000), 1)
    session.close()
    whole = bytearray((tmp_path / "s.otprop").read_bytes())
    n_pages, found = len(whole) // 4096, []
    for page in range(n_pages // 2, n_pages // 2 + 5):
        damaged = whole.copy()
        damaged[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
        (tmp_path / "damaged.otprop").write_bytes(damaged)
        found.append(rescue_labels(tmp_path / "damaged.otprop", tmp_path / f"{page}.csv"))
    assert min(found) > 1500
    (tmp_path / "none.otprop").write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    for name in ("none.otprop", "missing.otprop"):
        with pytest.raises(SessionError, match=r"no label can be read|cannot read the session file"):
            rescue_labels(tmp_path / name, tmp_path / "none.csv")


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
@pytest.mark.parametrize(("mode", "words"), [(0o600, []), (0o644, ["may read"]), (0o666, ["may change"])])
def test_a_session_that_others_may_read_or_change_is_noted(tmp_path: Path, mode: int, words: list[str]) -> None:
    opened(tmp_path).close()
    (tmp_path / "s.otprop").chmod(mode)
    session = opened(tmp_path)
    assert [word for note, word in zip(session.notes, words, strict=True) if word in note] == words
    session.close()


def test_a_session_of_another_owner_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321, raising=False)
    session = opened(tmp_path)
    assert "belongs to another user" in session.notes[0]
    session.close()


def test_no_secret_is_in_a_session_and_that_of_version_0_2_is_removed(tmp_path: Path) -> None:
    opened(tmp_path).close()
    query = "SELECT count(*) FROM meta WHERE key = 'secret'"
    with sqlite3.connect(tmp_path / "s.otprop") as connection:
        assert connection.execute(query).fetchone() == (0,)
        connection.execute("INSERT INTO meta VALUES ('secret', 'planted')")
    connection.close()
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "s.otprop") as connection:
        assert connection.execute(query).fetchone() == (0,)
    connection.close()


# --- files that are moved, copied or deleted


def test_a_copy_of_an_open_session_has_every_label(tmp_path: Path) -> None:
    session = opened(tmp_path)
    for row in range(5):
        session.label([row], 1)
        shutil.copy(tmp_path / "s.otprop", tmp_path / f"{row}.otprop")
    session.close()
    for row in range(5):
        copy = opened(tmp_path / f"{row}.otprop")
        assert copy.state.tolist() == [1] * (row + 1) + [AS_IN_FILE] * (19 - row)
        copy.close()


def test_a_session_that_is_moved_refuses_labels_until_it_is_back_and_has_all_earlier_ones(tmp_path: Path) -> None:
    path, moved = tmp_path / "s.otprop", tmp_path / "moved.otprop"
    session = opened(path)
    session.label([0], 1, request="a" * 32)
    path.rename(moved)
    with pytest.raises(NotSavedError, match=r"s.otprop was moved or deleted. Put it back, or export"):
        session.label([1], 1)
    with pytest.raises(NotSavedError, match="moved or deleted"):  # nor is an earlier one said to be saved there
        session.event_of_request("a" * 32)
    assert session.state[:2].tolist() == [1, AS_IN_FILE]
    moved.rename(path)
    session.label([1], 0)
    path.rename(moved)
    session.close()
    again = opened(moved)
    assert again.state[:2].tolist() == [1, 0]
    again.close()


@pytest.mark.parametrize("other", ["nothing", "bytes", "another session", "a copy", "an older copy in place"])
def test_a_session_that_is_deleted_or_replaced_refuses_labels(tmp_path: Path, other: str) -> None:
    path, older = tmp_path / "s.otprop", tmp_path / "older.otprop"
    session = opened(path)
    session.label([0], 1)
    shutil.copy(path, older)
    session.label([1], 1)
    if other == "an older copy in place":
        path.write_bytes(older.read_bytes())
    else:
        path.unlink()
    if other == "bytes":
        path.write_bytes(b"x" * 10_000)
    elif other == "another session":
        opened(path).close()
    elif other == "a copy":
        older.rename(path)
    with pytest.raises(NotSavedError, match=r"not saved: the session file .*s.otprop was"):
        session.set_goal(0.1) if other == "an older copy in place" else session.label([2], 1)
    assert session.state[:3].tolist() == [1, 1, AS_IN_FILE]
    session.close()
    assert session.ending.startswith("the labels may not be in ")


def test_a_label_that_is_not_in_the_file_at_the_path_after_all_is_not_said_to_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(tmp_path)
    place = vars(session)["_place"]
    checks = iter([lambda: None, lambda: (tmp_path / "s.otprop").unlink()])  # between the last check and the commit
    monkeypatch.setattr(place, "check", lambda: next(checks, type(place).check.__get__(place))())
    with pytest.raises(NotSavedError, match="moved or deleted"):
        session.label([0], 1, request="a" * 32)
    with pytest.raises(NotSavedError, match="moved or deleted"):
        session.event_of_request("a" * 32)
    with pytest.raises(NotSavedError, match="moved or deleted"):
        session.label([1], 1)
    assert (session.state == AS_IN_FILE).all()
    session.close()


# --- names of classes


def test_a_class_is_renamed_and_undo_brings_its_name_back(tmp_path: Path) -> None:
    session = opened(tmp_path)
    number = session.add_class("paer")
    session.label([3], number)
    session.rename(number, "pear", "a" * 32)
    assert session.classes[number] == "pear"
    session.undo()
    assert session.classes[number] == "paer"
    session.redo()
    session.close()
    session = opened(tmp_path)
    assert (session.classes[number], int(session.state[3])) == ("pear", number)
    assert session.log(1)[0].renamed == (number, "paer", "pear")
    again = session.add_class("paer")
    assert again == number + 1
    with pytest.raises(ValueError, match="another class 'paer' by now"):
        session.undo()
    session.close()


def test_a_session_from_before_classes_could_be_renamed_is_opened(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "s.otprop") as connection:
        connection.execute("DROP TABLE renames")
    connection.close()
    session = opened(tmp_path)
    session.rename(session.add_class("paer"), "pear")
    session.close()


# --- a file that changed


def test_labels_move_with_their_rows_when_the_file_changes(tmp_path: Path) -> None:
    lots = Lots()
    session = opened(tmp_path, lots)
    session.label([2], 0, drawn=True)
    session.label([5], 1)
    session.label([9], UNKNOWN)
    session.close()
    changed = Lots([lots.cells[9], *lots.cells[:5], *lots.cells[6:9], "new"])
    session = opened(tmp_path, changed)
    assert {row: int(session.state[row]) for row in np.flatnonzero(session.state != AS_IN_FILE)} == {0: UNKNOWN, 3: 0}
    assert session.drawn.tolist() == [row == 3 for row in range(changed.n_rows)]
    assert "2 of 3 labels made here fit, 2 of them in another row; kept for rows that" in session.notes[0]
    assert not session.can_undo
    session.label([1], 1)
    session.close()
    session = opened(tmp_path, changed)
    assert session.notes == []
    assert session.state[[0, 1, 3]].tolist() == [UNKNOWN, 1, 0]
    session.close()
    session = opened(tmp_path, lots)  # and back
    assert session.state[[0, 2, 5, 9]].tolist() == [1, 0, 1, UNKNOWN]  # the label of the row that was missing, too
    session.close()


def test_what_was_said_of_rows_that_were_missing_for_a_while_comes_back_with_them(tmp_path: Path) -> None:
    lots = Lots()
    session = opened(tmp_path, lots)
    session.label([2], 0, drawn=True)
    session.label([12], 1, drawn=True)
    session.label([13], REMOVED)
    session.label([14], 0)
    for row in (3, 14):
        session.keep(row)
    for row in (4, 15):
        session.skip(row)
    before = summary(session)[:3]
    session.close()
    shorter = Lots(lots.cells[:10])
    session = opened(tmp_path, shorter)
    assert (list(session.skipped), list(session.kept), int((session.state != AS_IN_FILE).sum())) == ([4], [3], 1)
    session.label([5], 1)
    session.close()
    opened(tmp_path, Lots(lots.cells[:8])).close()  # missing for longer
    session = opened(tmp_path, lots)
    assert [row for row in range(20) if session.state[row] != before[0][row]] == [5]
    assert session.drawn.tolist() == before[1]
    assert (set(session.skipped), set(session.kept)) == ({4, 15}, {3, 14})
    assert "5 of 5 labels made here fit" in session.notes[0]
    session.close()
    session = opened(tmp_path, lots)
    assert (set(session.skipped), set(session.kept)) == ({4, 15}, {3, 14})
    session.close()


def test_a_label_comes_back_although_a_column_was_added_while_its_row_was_missing(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots())
    session.label([1, 9], 0)
    session.close()
    wider = Lots(columns=["lot", "size"])
    opened(tmp_path, Lots(wider.cells[:5], wider.columns)).close()
    session = opened(tmp_path, wider)
    assert session.state[[1, 9]].tolist() == [0, 0]
    session.close()


def test_a_label_of_equal_rows_stays_where_it_was(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(["same", "same", "other"]))
    session.label([1], 0)
    session.close()
    session = opened(tmp_path, Lots(["same", "same", "changed"]))
    assert session.state.tolist() == [AS_IN_FILE, 0, AS_IN_FILE]
    session.close()


@dataclass
class Sampled(Lots):
    """Some rows of a file that stays the same."""

    @property
    def digest(self) -> str:
        return f"abc-0-{self.n_rows}"


def test_another_sample_of_the_same_file_is_no_changed_file(tmp_path: Path) -> None:
    session = opened(tmp_path, Sampled())
    session.label([2], 0)
    session.close()
    session = opened(tmp_path, Sampled([f"lot {number}" for number in range(5)]))
    assert session.notes == ["another sample of lots.csv is open than the last time: 1 of 1 labels made here fit"]
    session.close()
    with pytest.raises(SessionError, match=r"none of the 1 labels .* the sample of lots.csv that is open now"):
        opened(tmp_path, Sampled(["lot 7", "lot 8"]))


def test_a_lost_column_and_a_wholly_different_file_are_refused(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    session.label([1], 0)
    session.close()
    with pytest.raises(SessionError, match="has lost the column 'size'"):
        opened(tmp_path, Lots())
    with pytest.raises(SessionError, match="none of the 1 labels"):
        opened(tmp_path, Lots(["x", "y"], columns=["lot", "size"]))
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    assert session.state[1] == 0
    session.close()


def test_the_session_of_another_file_is_named_with_its_file(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    session.skip(3)
    session.undo()
    session.close()
    session = opened(tmp_path, Lots(name="others.csv", columns=["lot", "size"], cells=["x", "y"]))
    assert session.notes[0].endswith(
        "was made for lots.csv: no label was made there, and it is used for others.csv from now on"
    )
    session.label([1], 0)
    session.close()
    with pytest.raises(SessionError, match=r"was made for others.csv: lots.csv has no column 'size'"):
        opened(tmp_path, Lots())
    with pytest.raises(SessionError, match=r"was made for others.csv: none of the 1 labels"):
        opened(tmp_path, Lots(columns=["lot", "size"]))


# --- processes that end badly

SAVING = """
import sys
from pathlib import Path
from tests.studio.test_session import opened
session = opened(Path(sys.argv[1]))
for number in range(100_000):
    event = session.label([number % 20], (number // 20 + number) % 2)
    if event is not None:
        print(event.revision, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("n_saved", [1, 40])
def test_what_was_saved_is_there_after_the_process_was_killed(tmp_path: Path, n_saved: int) -> None:
    command = [sys.executable, "-c", SAVING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(n_saved):
            said = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        said = max([said, *map(int, process.stdout.read().split("\n")[:-1])])
    session = opened(tmp_path)
    assert session.revision >= said
    assert session.label([0], 1 - int(session.state[0])) is not None
    session.close()


FULL = """
import resource, sys
from pathlib import Path
from otprop.studio.session_file import NotSavedError
from tests.studio.test_session import opened
session = opened(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
for number in range(100_000):
    before = session.revision, session.state.tolist()
    try:
        session.label(range(20), number % 2)
    except NotSavedError as error:
        assert (session.revision, session.state.tolist()) == before
        print(session.revision, str(error))
        break
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits of file sizes")
def test_a_change_that_does_not_fit_on_the_disk_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    revision, sentence = done.stdout.split(" ", 1)
    assert sentence.startswith("not saved: ")
    session = opened(tmp_path)
    assert session.revision == int(revision) > 5
    assert (session.state == (session.revision - 1) % 2).all()
    session.close()


def test_a_full_database_is_said_to_be_a_full_disk(tmp_path: Path) -> None:
    class Full(Lots):
        def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
            return [f"{'x' * 10_000_000}{print_}" for print_ in super().fingerprints(rows, columns)]

    path = tmp_path / "s.otprop"
    opened(path).close()
    with sqlite3.connect(path) as connection:
        (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.close()
    session = opened(path, Full())
    limit_pages(session, n_pages + 4)
    with pytest.raises(NotSavedError, match="the disk is full"):
        session.label([0], 1)
    assert session.revision == 0
    assert session.state[0] == AS_IN_FILE
    session.close()


def limit_pages(session: Session, n_pages: int) -> None:
    """Let the file grow no further: SQLite then says what it says of a full disk."""
    vars(session)["_connection"].execute(f"PRAGMA max_page_count = {n_pages}")
