"""The session file itself: SQLite with a version, a lock against a second process, and durable commits."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from otprop.files import TableError

FORMAT = 1  # raised when an older version could not read what a newer one writes
APPLICATION_ID = 0x6F747073  # "otps", in the header of the file
_HEADER = b"SQLite format 3\0"
_PAGE_START = 108  # bytes: the header of the file, and that of its first page
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE classes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, time TEXT NOT NULL);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, undone INTEGER, request TEXT UNIQUE
);
CREATE TABLE changes (
    revision INTEGER NOT NULL REFERENCES events, row INTEGER NOT NULL,
    old INTEGER NOT NULL, new INTEGER NOT NULL, old_drawn INTEGER NOT NULL, new_drawn INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, PRIMARY KEY (revision, row)
) WITHOUT ROWID;
CREATE TABLE curve (revision INTEGER PRIMARY KEY, labels INTEGER NOT NULL, error REAL, low REAL, high REAL);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER changes_stay BEFORE UPDATE ON changes BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER changes_remain BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
"""
# beside the events of kind "rename", or that undo one; earlier versions leave it alone
_RENAMES = """
CREATE TABLE IF NOT EXISTS renames (
    revision INTEGER PRIMARY KEY REFERENCES events, class INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL
)
"""
# beside the events of kind "file": what was said of rows that are not in the file then, and which rows are marked
_CARRIED = """
CREATE TABLE IF NOT EXISTS carried (
    revision INTEGER NOT NULL REFERENCES events, is_here INTEGER NOT NULL, row INTEGER NOT NULL,
    state INTEGER NOT NULL, drawn INTEGER NOT NULL, mark TEXT NOT NULL, fingerprint TEXT NOT NULL, columns TEXT NOT NULL
)
"""


class SessionError(TableError):
    """The session file cannot be used; the message is one sentence and says what to do."""

    def __init__(self, problem: str, advice: str = "name another file with {}") -> None:
        super().__init__(problem, advice, arguments=[("session", None)] if "{}" in advice else [])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.advice)


class NotSavedError(RuntimeError):
    """A change could not be written, and was not made."""


def open_session_file(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open the file for this process alone; the connection, and whether the file is new."""
    _check_content(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # for the user alone; SQLite's own files follow it
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise SessionError(_cannot_write(path, error)) from error
    try:
        return connection, _prepare(connection)
    except sqlite3.Error as error:
        connection.close()
        if "locked" in str(error):
            problem = f"{path} is open in another otprop studio"
            raise SessionError(problem, "close that one, or use its page") from error
        if isinstance(error, sqlite3.OperationalError):
            raise SessionError(_cannot_write(path, error)) from error
        raise _damaged(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say it in one sentence where a page of the file that is read later turns out to be damaged."""
    try:
        yield
    except SessionError:
        raise
    except (
        sqlite3.DatabaseError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
    ) as error:  # or its values are impossible
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> SessionError:
    return SessionError(f"{path} is damaged ({error})", "keep it, and name another file with {}")


def _check_content(path: Path) -> None:
    """Refuse a file of another kind before SQLite sees it, which would change it; an empty one is as good as none."""
    try:
        start = _first_page(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SessionError(_cannot_write(path, error)) from error
    if not start:
        return
    if not start.startswith(_HEADER):
        raise SessionError(f"{path} is no session of otprop studio")
    version, made_by = (int.from_bytes(start[place : place + 4], "big", signed=True) for place in (60, 68))
    is_empty = start[100:101] == b"\x0d" and start[103:105] == b"\0\0"  # a leaf without a cell: there is no table
    if made_by != APPLICATION_ID and not is_empty:
        raise SessionError(f"{path} is another program's database")
    if made_by == APPLICATION_ID and version > FORMAT:
        raise SessionError(
            f"{path} was written by a newer otprop (format {version}, this one reads {FORMAT})",
            "update otprop, or name another file with {}",
        )


def _first_page(path: Path) -> bytes:
    """The first bytes of the newest first page: in the file, or in the log beside it that a killed process left."""
    with path.open("rb") as file:
        found = file.read(_PAGE_START)
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as log:
            head = log.read(32)
            size, salts = int.from_bytes(head[8:12], "big"), head[16:24]
            while len(frame := log.read(24)) == 24 and frame[8:16] == salts:  # others are left from before
                page = log.read(size)
                if frame[:4] == b"\0\0\0\1" and len(page) == size:
                    found = page[:_PAGE_START]
    except OSError:
        pass
    return found


def _prepare(connection: sqlite3.Connection) -> bool:
    """Take the lock, and make the tables of a new file; whether it is new."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # until closed; a killed process leaves no lock behind
    connection.execute("PRAGMA trusted_schema = OFF")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")  # on disk before a label counts as saved
    if mode != "wal":
        raise sqlite3.OperationalError(f"the journal mode is {mode}")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(" ".join(found.split()))
    with writing(connection):
        (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for table in (_RENAMES, _CARRIED):  # also in a session of an earlier version, which has none
            connection.execute(table)
        if n_tables:
            return False
        for statement in _statements():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    return True


def _statements() -> Iterator[str]:
    """The statements of the schema one by one: `executescript` would commit before it begins."""
    pending = ""
    for line in _SCHEMA.strip().splitlines():
        pending += f"{line}\n"
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all of it is on disk afterwards, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _cannot_write(path: Path, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot write the session file {path} ({reason})"
