"""The session file: versions, locks, and changes that are saved or refused."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from otprop.studio.session import Session
from otprop.studio.session_file import NotSavedError, SessionError
from otprop.studio.session_log import AS_IN_FILE
from tests.studio.sessions import Lots, opened


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    session = opened(tmp_path)
    script = (
        "import sys; from tests.studio.sessions import opened; from pathlib import Path\n"
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


def test_an_empty_file_becomes_a_session(tmp_path: Path) -> None:
    (tmp_path / "s.otprop").touch()
    opened(tmp_path).close()


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


SAVING = """
import sys
from pathlib import Path
from tests.studio.sessions import opened
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
from tests.studio.sessions import opened
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
