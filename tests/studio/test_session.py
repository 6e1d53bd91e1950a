"""The session file: what was saved is there, whatever happens to the process or to the user's file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from otprop.studio.session_file import SessionError
from otprop.studio.session_log import AS_IN_FILE, UNKNOWN
from tests.studio.sessions import opened


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


# --- files that cannot be used


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


def test_another_target_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(SessionError, match="of the target 'kind', not of 'colour'"):
        opened(tmp_path, target="colour")


# --- files that come from a stranger


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


# --- processes that end badly
