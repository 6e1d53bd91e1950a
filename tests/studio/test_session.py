"""The session file: what was saved is there, whatever happens to the process or to the user's file."""

from __future__ import annotations

import os
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

from otprop.studio.session import AS_IN_FILE, REMOVED, UNKNOWN, Session
from otprop.studio.session_file import NotSavedError, SessionError


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
    [(b"lot,kind\n1,a\n", "is no session"), (HEADER + b"\1" * 200, "another program"), (OURS, "damaged|cannot")],
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


def test_a_session_whose_first_page_is_only_in_the_log_is_opened(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([3], 1)
    copy = tmp_path / "killed"
    copy.mkdir()
    for path in tmp_path.glob("s.otprop*"):
        (copy / path.name).write_bytes(path.read_bytes())
    session.close()
    assert (copy / "s.otprop").read_bytes()[68:72] != b"otps"
    session = opened(copy)
    assert session.state[3] == 1
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
@pytest.mark.parametrize("n_saved", [1, 7, 60])
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
