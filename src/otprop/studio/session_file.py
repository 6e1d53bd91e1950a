"""The session file itself: SQLite with a version, a lock against a second process, and durable commits.

There is no write-ahead log: after each commit the file alone holds everything, so that it can be copied or moved.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from otprop._errors import OtpropError
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
# for events of kind "rename", or that undo one; earlier versions ignore it
_RENAMES = """
CREATE TABLE IF NOT EXISTS renames (
    revision INTEGER PRIMARY KEY REFERENCES events, class INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL
)
"""
# for events of kind "file": labels of rows that are not in the file then, and which rows are marked
_CARRIED = """
CREATE TABLE IF NOT EXISTS carried (
    revision INTEGER NOT NULL REFERENCES events, is_here INTEGER NOT NULL, row INTEGER NOT NULL,
    state INTEGER NOT NULL, drawn INTEGER NOT NULL, mark TEXT NOT NULL, fingerprint TEXT NOT NULL, columns TEXT NOT NULL
)
"""


_IMPOSSIBLE = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError)


class SessionError(TableError):
    """The session file cannot be used; the message is one sentence and says what to do."""

    def __init__(self, problem: str, advice: str = "name another file with {}") -> None:
        names = ("session", "rescue")[: advice.count("{}")]
        super().__init__(problem, advice, arguments=[(name, None) for name in names])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.advice)


class NotSavedError(OtpropError, RuntimeError):
    """A change could not be written, and was not made."""


class Place:
    """The path of an open session file, and which file is to be there."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._file = _identity(os.stat(path))

    def problem(self) -> str:
        """What became of the file, where the one at the path is no longer the open one; empty where it is."""
        try:
            found = _identity(os.stat(self.path))
        except OSError:
            return "was moved or deleted"
        return "" if found == self._file else "was replaced by another file"

    def check(self) -> None:
        """Raise NotSavedError where the file at the path is no longer the open one."""
        if problem := self.problem():
            raise NotSavedError(
                f"not saved: the session file {self.path} {problem}. Put it back, or export the labels before you end "
                "the studio."
            )

    def confirm(self, connection: sqlite3.Connection, queries: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """Raise NotSavedError unless the file at the path, read again, answers as the open connection does."""
        address = f"{self.path.as_uri()}?mode=ro&immutable=1"  # takes no lock, and does not give ours away
        try:
            with closing(sqlite3.connect(address, uri=True)) as written:
                pairs = (zip_longest(written.execute(*query), connection.execute(*query)) for query in queries)
                same = all(one == other for rows in pairs for one, other in rows)
        except sqlite3.Error:
            same = False
        self.check()
        if not same:
            raise NotSavedError(
                f"not saved: the session file {self.path} was changed by another program. Keep it, export the labels, "
                "and start the studio again."
            )

    def notes(self) -> list[str]:
        """Warnings about who else may read or change the file."""
        if not hasattr(os, "getuid"):
            return []
        found = os.stat(self.path)
        if found.st_uid != os.getuid():
            return [f"{self.path} belongs to another user, who can read and change the labels: make a copy of your own"]
        if stat.S_IMODE(found.st_mode) & 0o077:
            may = "change" if stat.S_IMODE(found.st_mode) & 0o022 else "read"
            return [f"other users may {may} {self.path}: chmod 600 makes it yours alone"]
        return []


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def open_session_file(path: Path) -> tuple[sqlite3.Connection, Place, bool]:
    """Open the file for this process alone; the connection, the place, and whether the file is new."""
    _check_content(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # for the user alone; SQLite's own files follow it
        place = Place(path)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise SessionError(_cannot_write(path, error)) from error
    try:
        is_new = _prepare(connection)
        place.confirm(connection, [("SELECT name FROM sqlite_master", ())])
        return connection, place, is_new
    except NotSavedError as error:
        connection.close()
        raise SessionError(f"{path} was replaced while it was opened", "try again") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from a message about a damaged schema
        connection.close()
        if "locked" in str(error):
            problem = f"{path} is open in another otprop studio"
            raise SessionError(problem, "close that one, or use its page") from error
        if isinstance(error, sqlite3.OperationalError):
            raise SessionError(_cannot_write(path, error)) from error
        raise damaged(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say it in one sentence where a page of the file that is read later turns out to be damaged."""
    try:
        yield
    except SessionError:
        raise
    except _IMPOSSIBLE as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> SessionError:
    return SessionError(
        f"{path} is damaged ({error})",
        "name another file with {}, or write the labels that can be read to a CSV with {}",
    )


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
        raise SessionError(f"{path} is not an otprop session")
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
    """The first bytes of the newest first page: in the file, or in the log that a killed 0.2 left next to it."""
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
    """Take the lock, check the schema, and make the tables of a new file; whether it is new."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # until closed; a killed process leaves no lock behind
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    (mode,) = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()  # also writes back the log of version 0.2
    connection.execute("PRAGMA synchronous = FULL")  # on disk before a label counts as saved
    if mode != "truncate":
        raise sqlite3.OperationalError(f"the journal mode is {mode}")
    with writing(connection, "EXCLUSIVE"):
        found = _schema_of(connection)
        _check_schema(found)
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(" ".join(state.split()))
        _make_tables(connection, is_new=not found)
    return not found


def _make_tables(connection: sqlite3.Connection, is_new: bool) -> None:
    for table in (_RENAMES, _CARRIED):  # also in a session of an earlier version, which has none
        connection.execute(table)
    for statement in _SCHEMA.strip().split(";\n") if is_new else ():  # `executescript` would commit before it begins
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")  # writes to the file: where it cannot be written, it is said


def _schema_of(connection: sqlite3.Connection) -> set[tuple[str, str, str, str | None]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _check_schema(found: set[tuple[str, str, str, str | None]]) -> None:
    """Refuse anything but our own tables and triggers: another trigger or view could change what is saved or read."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        _make_tables(model, is_new=True)
        ours = _schema_of(model)
    missing = {name for _, name, table, _ in ours - found if table not in ("renames", "carried")}
    foreign = {name for _, name, _, _ in found - ours}
    if found and (missing or foreign):
        names = ", ".join(sorted(map(repr, missing | foreign)))[:200]
        raise sqlite3.DatabaseError(f"its tables are not those of a session: {names}")


@contextmanager
def writing(connection: sqlite3.Connection, lock: str = "IMMEDIATE") -> Iterator[None]:
    """A transaction: all of it is on disk afterwards, or nothing of it."""
    connection.execute(f"BEGIN {lock}")
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
