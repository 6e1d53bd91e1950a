"""A labelling session: an append-only log of events, and what it adds up to."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

import numpy as np

from otprop.studio.session_check import check_values
from otprop.studio.session_file import NotSavedError, SessionError, open_session_file, reading, writing

AS_IN_FILE, REMOVED, UNKNOWN = -1, -2, -3  # states of a row other than the ids of the classes
LABEL, ACCEPT, SKIP, KEEP, UNDO, REDO, FILE = "label", "accept", "skip", "keep", "undo", "redo", "file"
REMOVE, RENAME = "remove", "rename"
KINDS = (LABEL, ACCEPT, REMOVE, "unknown")  # of events that change the state of rows


class Rows(Protocol):
    """What a session needs to know about the table."""

    name: str  # of the file
    digest: str
    n_rows: int
    columns: list[str]

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        """A digest of the cells of each row."""


@dataclass(frozen=True)
class Event:
    """One entry of the log.

    Attributes
    ----------
    revision : int
    kind : str, one of KINDS, "skip", "keep" (a doubtful label is right), "rename" (of a class), "undo", "redo" or
        "file" (the file changed, labels were matched with it)
    time : str, ISO 8601
    rows, old, new : ndarray of int, what changed; states are ids of classes, AS_IN_FILE, REMOVED or UNKNOWN
    old_drawn, new_drawn : ndarray of bool, the row was drawn at random and not chosen
    undone : int or None, the revision that an undo or a redo is about
    renamed : (class, name before, name after) or None
    """

    revision: int
    kind: str
    time: str
    rows: np.ndarray
    old: np.ndarray
    new: np.ndarray
    old_drawn: np.ndarray
    new_drawn: np.ndarray
    undone: int | None = None
    renamed: tuple[int, str, str] | None = None

    def reversed(self, kind: str, revision: int, time: str) -> Event:
        """The event that takes this one back."""
        back = None if self.renamed is None else (self.renamed[0], self.renamed[2], self.renamed[1])
        states = self.new, self.old, self.new_drawn, self.old_drawn
        return Event(revision, kind, time, self.rows, *states, self.revision, back)


@dataclass(frozen=True)
class Said:
    """The state of one row, to be found again in a changed file.

    Attributes
    ----------
    row : int, its number in the file that it was last in
    state, drawn : as in `Session`
    mark : str, SKIP, KEEP or ""
    fingerprint, columns : str, of the row, and the columns that it was made from, in JSON
    """

    row: int
    state: int
    drawn: bool
    mark: str
    fingerprint: str
    columns: str


class Session:
    """The log of one file and target; every method that changes it returns once the change is on disk.

    Attributes
    ----------
    state : ndarray of int of shape (n_rows,), the state of each row here: the id of a class, AS_IN_FILE, REMOVED
        or UNKNOWN
    drawn : ndarray of bool of shape (n_rows,), the label made here was of a row drawn at random
    skipped, kept : dict of the rows that were skipped, or whose label was kept, and not labelled since, in order
    classes : list of str, by id
    used : set of int, the classes that a row was given at some time
    revision : int, of the newest event
    saved_at : str, time of the newest event
    notes : list of str
    """

    def __init__(self, path: str | Path, rows: Rows, target: str, classes: Sequence[str] = ()) -> None:
        self.path, self.lock, self.notes = Path(path), RLock(), list[str]()
        self._rows = rows
        self._failed = ""  # why nothing can be saved until the next start
        self._connection, self._place, is_new = open_session_file(self.path)
        self.notes += self._place.notes()
        try:
            with reading(self.path):
                if is_new or not self._connection.execute("SELECT count(*) FROM meta").fetchone()[0]:
                    self._begin(target)
                check_values(self._connection)
                self._check_target(target)
                self._replay()
                self._match_file()
            with self._saving():
                self._set_meta(secret=None)  # version 0.2 kept one here
                for name in classes:
                    self._add_class(name)
            self.classes = self._read_classes()
        except BaseException:
            self._connection.close()
            raise

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

    # --- reading

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

    @property
    def can_undo(self) -> bool:
        """Whether there is an event to undo."""
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether there is an event to make again."""
        return bool(self._undone)

    @property
    def n_by_key(self) -> int:
        """How many rows were labelled one by one."""
        return sum(kind in (LABEL, ACCEPT) and len(event.rows) == 1 for event, kind in self._done)

    def log(self, n: int = 50) -> list[Event]:
        """The newest events, newest first."""
        with self.lock:
            first = max(0, self.revision - n)
            return list(self._events(first))[::-1]

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

    # --- changing

    def label(
        self,
        rows: Sequence[int],
        new: Sequence[int] | int,
        kind: str = LABEL,
        *,
        drawn: bool = False,
        request: str = "",
    ) -> Event | None:
        """Put rows into a state; None where they are in it already.

        `drawn`: the rows were drawn at random. A row that has a label of this session keeps how it was picked first.
        """
        with self.lock:
            found, first = np.unique(np.asarray(rows, dtype=np.int64), return_index=True)
            states = np.broadcast_to(np.asarray(new, dtype=np.int64), (len(rows),))[first]
            old, old_drawn = self.state[found], self.drawn[found]
            new_drawn = np.where(states >= 0, np.where(old >= 0, old_drawn, drawn), False)
            changed = states != old
            if not changed.any():
                return None
            event = Event(
                self.revision + 1,
                kind,
                _now(),
                *(part[changed] for part in (found, old, states, old_drawn, new_drawn)),
            )
            self._append(event, request)
            return event

    def skip(self, row: int, request: str = "") -> Event:
        """Move a row to the end of the queue."""
        return self._mark(row, SKIP, request)

    def keep(self, row: int, request: str = "") -> Event:
        """Say that the label of a row is right, so that it is doubted no more."""
        return self._mark(row, KEEP, request)

    def _mark(self, row: int, kind: str, request: str) -> Event:
        with self.lock:
            rows, state, drawn = np.array([row]), self.state[[row]], self.drawn[[row]]
            event = Event(self.revision + 1, kind, _now(), rows, state, state, drawn, drawn)
            self._append(event, request)
            return event

    def undo(self, request: str = "") -> Event | None:
        """Undo the newest event that was not undone; None if there is none."""
        return self._undo_or_redo(self._done, UNDO, request)

    def redo(self, request: str = "") -> Event | None:
        """Redo the event that was undone last; None if there is none."""
        return self._undo_or_redo(self._undone, REDO, request)

    def _undo_or_redo(self, stack: list[tuple[Event, str]], kind: str, request: str) -> Event | None:
        with self.lock:
            if not stack:
                return None
            event = stack[-1][0].reversed(kind, self.revision + 1, _now())
            if event.renamed is not None and event.renamed[2] in self.classes:
                raise ValueError(f"there is another class {event.renamed[2]!r} by now: rename that one first.")
            self._append(event, request)
            return event

    def add_class(self, name: str) -> int:
        """The id of a class, which is made where there is none of this name."""
        with self.lock:
            if name not in self.classes:
                with self._saving():
                    self._add_class(name)
                self.classes = self._read_classes()
            return self.classes.index(name)

    def rename(self, number: int, name: str, request: str = "") -> Event:
        """Give a class another name, which no other class may have."""
        with self.lock:
            none = np.empty(0, dtype=np.int64)
            flags = none.astype(bool)
            names = number, self.classes[number], name
            event = Event(self.revision + 1, RENAME, _now(), none, none, none, flags, flags, renamed=names)
            self._append(event, request)
            return event

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

    # --- the log

    def _append(self, event: Event, request: str = "", carried: Sequence[tuple[bool, Said]] = ()) -> None:
        """Write an event, and only then let it count; `carried`: rows that are in the file or not, for FILE."""
        prints = self._rows.fingerprints(event.rows.tolist())
        with self._saving(event.revision):
            if event.kind == FILE:
                self._remember_file()
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
        if event.renamed is not None:
            self.classes = self._read_classes()
        self._apply(event)

    def _apply(self, event: Event) -> None:
        """What an event does to the states and to what can be undone."""
        self.revision, self.saved_at = event.revision, event.time
        if event.kind == FILE:
            self.state[:], self.drawn[:] = AS_IN_FILE, False
            self.skipped.clear()
            self.kept.clear()
            self._done.clear()
            self._undone.clear()
            for one in self._carried(event.revision, is_here=True):
                (self.skipped if one.mark == SKIP else self.kept)[one.row] = None
        self.state[event.rows], self.drawn[event.rows] = event.new, event.new_drawn
        self.used.update(event.new[event.new >= 0].tolist())
        if event.kind in (UNDO, REDO):
            here, there = (self._done, self._undone) if event.kind == UNDO else (self._undone, self._done)
            _, kind = here.pop()
            there.append((event, kind))
            self._flag(event, kind)
        elif event.kind != FILE:
            self._done.append((event, event.kind))
            self._undone.clear()
            self._flag(event, event.kind)

    def _flag(self, event: Event, kind: str) -> None:
        """Keep `skipped` and `kept`: an event of this kind adds its row, any other event removes its rows."""
        for row in event.rows.tolist():
            for flagged, of in ((self.skipped, SKIP), (self.kept, KEEP)):
                flagged.pop(row, None)
                if kind == of and event.kind != UNDO:
                    flagged[row] = None

    def _replay(self) -> None:
        self._done: list[tuple[Event, str]] = []  # with the kind of the event that was undone and made again
        self._undone: list[tuple[Event, str]] = []
        self.skipped: dict[int, None] = {}
        self.kept: dict[int, None] = {}
        self.used: set[int] = set()
        self.revision, self.saved_at = 0, str(self._meta("made"))
        n_rows = max(self._rows.n_rows, int(self._meta("n_rows") or 0), self._most_rows())
        self.state, self.drawn = np.full(n_rows, AS_IN_FILE, dtype=np.int64), np.zeros(n_rows, dtype=bool)
        for event in self._events():
            old = AS_IN_FILE if event.kind == FILE else self.state[event.rows]
            if (event.old != old).any():
                raise ValueError(f"revision {event.revision} does not follow from those before")
            self._apply(event)

    def _most_rows(self) -> int:
        (row,) = self._connection.execute("SELECT max(row) FROM changes").fetchone()
        return 0 if row is None else int(row) + 1

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

    # --- the file

    def _begin(self, target: str) -> None:
        with self._saving():
            self._set_meta(target=target, made=_now(), id=secrets.token_hex(16))
            self._remember_file()

    def _remember_file(self) -> None:
        rows = self._rows
        self._set_meta(file=rows.name, digest=rows.digest, n_rows=rows.n_rows, columns=json.dumps(rows.columns))

    def _check_target(self, target: str) -> None:
        before = self._meta("target")
        if before != target:
            raise SessionError(f"{self.path} is a session of the target {before!r}, not of {target!r}")

    def _match_file(self) -> None:
        """Where the file has changed: match what was said with its rows; what is of no row now is kept for later."""
        rows, columns = self._rows, json.loads(str(self._meta("columns")))
        before = str(self._meta("digest"))
        if (before, columns) == (rows.digest, rows.columns):
            self.state, self.drawn = self.state[: rows.n_rows], self.drawn[: rows.n_rows]
            return
        said = self._said(json.dumps(columns))
        labelled = np.array([one.state != AS_IN_FILE for one in said], dtype=bool)
        gone = [name for name in columns if name not in rows.columns]
        if gone and labelled.any():
            raise self._lost_column(gone[0])
        found = self._find_rows(said)
        is_found = found >= 0
        same_file = before.partition("-")[0] == rows.digest.partition("-")[0]  # a sample adds to it
        n_labels, n_found = int(labelled.sum()), int((labelled & is_found).sum())
        if n_labels and not n_found:
            raise self._no_row_found(n_labels, same_file)
        n_moved = int((labelled & is_found & (found != [one.row for one in said])).sum())
        self.notes.append(self._note_on_match(n_labels, n_found, n_moved, same_file))
        self._carry_over(said, found)
        self.state, self.drawn = self.state[: rows.n_rows], self.drawn[: rows.n_rows]

    def _made_for(self) -> str:
        """The file of the last time where it had another name, as a part of a sentence."""
        name = self._meta("file")
        return "" if name == self._rows.name else f"{self.path} was made for {name}: "

    def _lost_column(self, column: str) -> SessionError:
        name, made_for = self._rows.name, self._made_for()
        if made_for:
            return SessionError(f"{made_for}{name} has no column {column!r}", "name another session with {}")
        return SessionError(
            f"{name} has lost the column {column!r} since {self.path} was saved, so that its labels cannot be matched "
            "with the rows",
            "restore the column, or name another file with {}",
        )

    def _no_row_found(self, n_labels: int, same_file: bool) -> SessionError:
        name = self._rows.name
        rest = f"the sample of {name} that is open now" if same_file else f"{name}, which is another file"
        return SessionError(
            f"{self._made_for()}none of the {n_labels} labels of {self.path} is of a row of {rest}",
            "name another session with {}",
        )

    def _note_on_match(self, n_labels: int, n_found: int, n_moved: int, same_file: bool) -> str:
        name, made_for = self._rows.name, self._made_for()
        if made_for and not n_labels:
            return f"{made_for}no label was made there, and it is used for {name} from now on"
        what = f"another sample of {name} is open than" if same_file else f"{name} has changed since"
        note = f"{made_for or f'{what} the last time: '}{n_found} of {n_labels} labels made here fit"
        note += f", {n_moved} of them in another row" if n_moved else ""
        n_lost = n_labels - n_found
        kept = f"; kept for rows that are not in it now, or not once: {n_lost}"
        return note + (kept if n_lost else "")

    def _said(self, columns: str) -> list[Said]:
        """All that was said: first of rows that are in the file of the last time, then of rows that were not."""
        prints = dict(self._connection.execute("SELECT row, fingerprint FROM changes ORDER BY revision").fetchall())
        marks = {**dict.fromkeys(self.skipped, SKIP), **dict.fromkeys(self.kept, KEEP)}
        rows = np.flatnonzero(self.state != AS_IN_FILE).tolist()
        rows += [row for row in marks if self.state[row] == AS_IN_FILE]
        here = [
            Said(row, int(self.state[row]), bool(self.drawn[row]), marks.get(row, ""), prints[row], columns)
            for row in rows
        ]
        (last,) = self._connection.execute("SELECT max(revision) FROM events WHERE kind = ?", (FILE,)).fetchone()
        return here + self._carried(last or 0, is_here=False)

    def _carry_over(self, said: list[Said], found: np.ndarray) -> None:
        """Start over with the rows that were found, in one event; the others are carried along."""
        here = [(row, one) for row, one in zip(found.tolist(), said, strict=True) if row >= 0]
        new = np.array([one.state for _, one in here], dtype=np.int64)
        drawn = np.array([one.drawn for _, one in here], dtype=bool)
        states = np.full(len(here), AS_IN_FILE, dtype=np.int64), new, np.zeros(len(here), dtype=bool), drawn
        rows = np.array([row for row, _ in here], dtype=np.int64)
        carried = [(True, replace(one, row=row)) for row, one in here if one.mark]
        carried += [(False, one) for row, one in zip(found.tolist(), said, strict=True) if row < 0]
        self._append(Event(self.revision + 1, FILE, _now(), rows, *states), carried=carried)

    def _carried(self, revision: int, is_here: bool) -> list[Said]:
        """What an event of kind FILE has carried over: marks of rows in the file, or all of rows not in it."""
        found = self._connection.execute(
            "SELECT row, state, drawn, mark, fingerprint, columns FROM carried "
            "WHERE revision = ? AND is_here = ? ORDER BY rowid",
            (revision, is_here),
        )
        return [Said(row, state, bool(drawn), *texts) for row, state, drawn, *texts in found]

    def _find_rows(self, said: Sequence[Said]) -> np.ndarray:
        """The row of the present file for each recorded row, by its cells; -1 if there is not exactly one."""
        places: dict[str, dict[str, list[int]]] = {}
        for columns in {one.columns for one in said}:
            names = json.loads(columns)
            known = set(names) <= set(self._rows.columns)
            places[columns] = {}
            for row, fingerprint in enumerate(self._rows.fingerprints(None, names) if known else []):
                places[columns].setdefault(fingerprint, []).append(row)
        taken: set[int] = set()
        found = []
        for one in said:
            same = places[one.columns].get(one.fingerprint, [])
            row = one.row if one.row in same else same[0] if len(same) == 1 else -1
            found.append(-1 if row in taken else row)
            taken.add(row)
        return np.array(found, dtype=np.int64)

    # --- small things

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
            "INSERT OR IGNORE INTO classes VALUES ((SELECT count(*) FROM classes), ?, ?)", (name, _now())
        )

    def _read_classes(self) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT name FROM classes ORDER BY id")]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
