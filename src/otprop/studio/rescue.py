"""The labels of a session file that cannot be opened, as far as they can be read."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from otprop.studio.export import write_made_here
from otprop.studio.session import FILE
from otprop.studio.session_check import MAX_CLASS_IDS
from otprop.studio.session_file import SessionError
from otprop.studio.source import MAX_ROWS

_MOST_STEPS = 2_000  # of a million instructions of SQLite: a hostile table must not be read for ever
Key = tuple[int, int]  # revision, row


def rescue_labels(path: Path, out: Path) -> int:
    """Write the labels that can be read, as the studio exports them; how many. The session file is left alone.

    Parameters
    ----------
    path : path, of the session file
    out : path, of a CSV for `otprop label --corrections`, which must not exist
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "session"
        try:
            shutil.copyfile(path, copy)  # SQLite changes a file while it opens it
            for ending in ("-journal", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        except OSError as error:
            raise SessionError(f"cannot read the session file {path} ({error.strerror})") from error
        with closing(sqlite3.connect(copy)) as connection:
            labels, digest = _read(connection)
    if not labels:
        raise SessionError(f"no label can be read from {path}", "")
    rows = sorted(labels)
    write_made_here(rows, [labels[row][0] for row in rows], [labels[row][1] for row in rows], digest, out, force=False)
    return len(rows)


def _read(connection: sqlite3.Connection) -> tuple[dict[int, tuple[str, bool]], str]:
    """The label of each row and whether it was drawn at random, and the digest of the file that they are of."""
    steps = iter(range(_MOST_STEPS))
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.set_progress_handler(lambda: next(steps, None) is None, 1_000_000)
    with suppress(sqlite3.Error, UnicodeDecodeError):
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    names = {
        number: name for number, name in _rows(connection, "SELECT id, name FROM classes") if _is(name, str) and name
    }
    files = [
        one for one, kind in _rows(connection, "SELECT revision, kind FROM events") if _is(one, int) and kind == FILE
    ]
    last = max(files, default=0)  # what came before is of another file
    changes: dict[Key, tuple[Any, Any]] = {}
    for order in ("ASC", "DESC"):  # from both sides of a page that is damaged
        query = f"SELECT revision, row, new, new_drawn FROM changes ORDER BY revision {order}, row {order}"
        for revision, row, new, drawn in _rows(connection, query):
            if _is(revision, int) and revision >= last and _is(row, int) and 0 <= row < MAX_ROWS:
                changes[revision, row] = new, drawn
    states = {row: changes[revision, row] for revision, row in sorted(changes)}
    labels = {
        row: (names[new], drawn == 1)
        for row, (new, drawn) in states.items()
        if _is(new, int) and 0 <= new < MAX_CLASS_IDS and new in names
    }
    digest = dict(_rows(connection, "SELECT key, value FROM meta WHERE typeof(key) = 'text'")).get("digest")
    return labels, digest if isinstance(digest, str) else ""


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)


def _rows(connection: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query until one cannot be read."""
    with suppress(sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
        yield from connection.execute(query)
