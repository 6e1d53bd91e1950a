"""What a session file holds: an append-only log of events, classes, options and the curve.

Every change is on disk, and read back from there, before it counts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from otprop.studio.session_file import NotSavedError, open_session_file, writing
from otprop.studio.session_match import Said

AS_IN_FILE, REMOVED, UNKNOWN = -1, -2, -3  # states of a row other than the ids of the classes
LABEL, ACCEPT, SKIP, KEEP, UNDO, REDO, FILE = "label", "accept", "skip", "keep", "undo", "redo", "file"
REMOVE, RENAME = "remove", "rename"
KINDS = (LABEL, ACCEPT, REMOVE, "unknown")  # of events that change the state of rows


@dataclass(frozen=True)
class Event:
    """One entry of the log; states are ids of classes, AS_IN_FILE, REMOVED or UNKNOWN."""

    revision: int
    kind: str  # one of KINDS, SKIP, KEEP (a doubtful label is right), RENAME, UNDO, REDO or FILE (the file has changed)
    time: str  # ISO 8601
    rows: np.ndarray
    old: np.ndarray
    new: np.ndarray
    old_drawn: np.ndarray  # the row was drawn at random and not chosen
    new_drawn: np.ndarray
    undone: int | None = None  # the revision that an undo or a redo is about
    renamed: tuple[int, str, str] | None = None  # class, name before, name after

    def reversed(self, kind: str, revision: int, time: str) -> Event:
        """The event that takes this one back."""
        back = None if self.renamed is None else (self.renamed[0], self.renamed[2], self.renamed[1])
        states = self.new, self.old, self.new_drawn, self.old_drawn
        return Event(revision, kind, time, self.rows, *states, self.revision, back)


class SessionLog:
    """The open file; safe to be called from several threads."""

    def __init__(self, path: str | Path) -> None:
        self.path, self.lock, self.notes = Path(path), RLock(), list[str]()
        self._failed = ""  # why nothing can be saved until the next start
        self._connection, self._place, self._is_new = open_session_file(self.path)
        self.notes += self._place.notes()
        self.classes: list[str] = []  # by id

    def close(self) -> None:
        """Give the file free for another process."""
        with self.lock:
            self._connection.close()

    @property
    def ending(self) -> str:
        """Where the labels are, to be said when the studio ends."""
        problem = self._place.problem() or ("was changed by another program" if self._failed else "")
        if problem:
            return f"the labels may not be in {self.path}, which {problem} while the studio was open"
        return f"every label is saved in {self.path}"

    def check_place(self) -> None:
        """Raise NotSavedError where what was saved is no longer in the file at the path."""
        if self._failed:
            raise NotSavedError(self._failed)
        self._place.check()

    @property
    def session_id(self) -> str:
        """A random id, made with the file."""
        return str(self._meta("id"))

    @property
    def goal(self) -> float | None:
        """The expected error to reach."""
        found = self._meta("goal")
        return None if found is None else float(found)

    @property
    def keys(self) -> dict[int, str]:
        """The keys of classes, by id."""
        return {int(number): key for number, key in json.loads(self._meta("keys") or "{}").items()}

    def event_of_request(self, request: str) -> Event | None:
        """The event that a request has made before; None where it has made none."""
        with self.lock:
            self.check_place()
            found = self._connection.execute("SELECT revision FROM events WHERE request = ?", (request,)).fetchone()
            return None if found is None else next(self._events(found[0] - 1, found[0]))

    def curve(self) -> list[tuple[int, float, float, float]]:
        """Labels, expected error and its range, by the number of labels; of equal numbers the latest."""
        with self.lock:
            points = self._connection.execute("SELECT labels, error, low, high FROM curve ORDER BY revision").fetchall()
        return sorted({point[0]: point for point in points}.values())

    def set_goal(self, error: float | None) -> None:
        """Set the expected error to reach."""
        with self.lock, self._saving():
            self._set_meta(goal=None if error is None else repr(error))

    def set_options(self, groups: Any, votes: Sequence[str]) -> None:
        """Remember columns that the next start uses, too, unless it names others."""
        wanted = {"groups": groups if isinstance(groups, str) else None, "votes": json.dumps(votes) if votes else None}
        with self.lock:
            if any(self._meta(name) != value for name, value in wanted.items()):
                with self._saving():
                    self._set_meta(**wanted)

    def set_keys(self, keys: Mapping[int, str]) -> None:
        """Remember the keys of classes, so that they are the same the next time."""
        with self.lock, self._saving():
            self._set_meta(keys=json.dumps(keys))

    def add_curve_point(self, revision: int, labels: int, error: float, low: float, high: float) -> None:
        """Note the expected error that a propagation has found."""
        with self.lock, self._saving():
            point = (revision, labels, error, low, high)
            self._connection.execute("INSERT OR REPLACE INTO curve VALUES (?, ?, ?, ?, ?)", point)

    def _write(self, event: Event, prints: Sequence[str], request: str, carried: Sequence[tuple[bool, Said]]) -> None:
        """Write an event inside of a transaction; `prints` are of its rows, `carried` as in `Session._append`."""
        self._connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            (event.revision, event.kind, event.time, event.undone, request or None),
        )
        columns = (event.rows, event.old, event.new, event.old_drawn.astype(int), event.new_drawn.astype(int))
        changes = zip(*(part.tolist() for part in columns), prints, strict=True)
        self._connection.executemany(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", ((event.revision, *change) for change in changes)
        )
        if event.renamed is not None:
            number, _, name = event.renamed
            self._connection.execute("INSERT INTO renames VALUES (?, ?, ?, ?)", (event.revision, *event.renamed))
            self._connection.execute("UPDATE classes SET name = ? WHERE id = ?", (name, number))
        self._connection.executemany(
            "INSERT INTO carried VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((event.revision, is_here, *astuple(one)) for is_here, one in carried),
        )

    def _events(self, after: int = 0, last: int | None = None) -> Iterator[Event]:
        end = self._connection.execute("SELECT max(revision) FROM events").fetchone()[0] if last is None else last
        found = self._connection.execute(
            "SELECT revision, kind, time, undone FROM events WHERE revision > ? AND revision <= ? ORDER BY revision",
            (after, end or 0),
        )
        for revision, kind, time, undone in found.fetchall():
            changes = self._connection.execute(
                "SELECT row, old, new, old_drawn, new_drawn FROM changes WHERE revision = ?", (revision,)
            ).fetchall()
            table = np.array(changes, dtype=np.int64).reshape(-1, 5)
            drawn = table[:, 3:].astype(bool)
            states = table[:, 1], table[:, 2], drawn[:, 0], drawn[:, 1]
            names = self._connection.execute("SELECT class, old, new FROM renames WHERE revision = ?", (revision,))
            yield Event(revision, kind, time, table[:, 0], *states, undone, names.fetchone())

    def _carried(self, revision: int, is_here: bool) -> list[Said]:
        """What an event of kind FILE has carried over: marks of rows in the file, or all of rows not in it."""
        found = self._connection.execute(
            "SELECT row, state, drawn, mark, fingerprint, columns FROM carried "
            "WHERE revision = ? AND is_here = ? ORDER BY rowid",
            (revision, is_here),
        )
        return [Said(row, state, bool(drawn), *texts) for row, state, drawn, *texts in found]

    @contextmanager
    def _saving(self, revision: int = 0) -> Iterator[None]:
        """A transaction, read back from the file at the path before it counts; its failure is one sentence.

        `revision`: of the event that is written, if it is one.
        """
        self.check_place()
        try:
            with writing(self._connection):
                yield
                self.check_place()
        except sqlite3.Error as error:
            full = "the disk is full" if "full" in str(error) else f"the session file cannot be written ({error})"
            raise NotSavedError(f"not saved: {full}. What was saved before is safe in {self.path.name}.") from error
        queries: list[tuple[str, tuple[Any, ...]]] = [
            ("SELECT * FROM meta", ()),
            ("SELECT count(*), max(revision) FROM events", ()),
            ("SELECT count(*), max(id), max(name) FROM classes", ()),
            *((f"SELECT * FROM {table} WHERE revision = ?", (revision,)) for table in ("events", "changes", "renames")),
        ]
        try:
            self._place.confirm(self._connection, queries)
        except NotSavedError as error:  # the connection has what the file lacks; only a new start can resolve it
            self._failed = str(error)
            raise

    def _meta(self, key: str) -> str | None:
        found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def _set_meta(self, **values: Any) -> None:
        for key, value in values.items():
            if value is None:
                self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, str(value)))

    def _add_class(self, name: str) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO classes VALUES ((SELECT count(*) FROM classes), ?, ?)", (name, now())
        )

    def _read_classes(self) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT name FROM classes ORDER BY id")]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
