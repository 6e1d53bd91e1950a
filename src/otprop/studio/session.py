"""A labelling session: the events of its log, and what they add up to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from otprop.studio.session_check import check_values
from otprop.studio.session_file import SessionError, reading
from otprop.studio.session_log import (
    ACCEPT,
    AS_IN_FILE,
    FILE,
    KEEP,
    LABEL,
    REDO,
    RENAME,
    SKIP,
    UNDO,
    Event,
    SessionLog,
    now,
)
from otprop.studio.session_match import FileBefore, Rows, Said


class Session(SessionLog):
    """The log of one file and target; every method that changes it returns once the change is on disk.

    `state` has for each row the id of a class, AS_IN_FILE, REMOVED or UNKNOWN; `drawn` whether the label made here was
    of a row drawn at random.
    """

    def __init__(self, path: str | Path, rows: Rows, target: str, classes: Sequence[str] = ()) -> None:
        super().__init__(path)
        self._rows = rows
        try:
            with reading(self.path):
                if self._is_new or not self._connection.execute("SELECT count(*) FROM meta").fetchone()[0]:
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
                now(),
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
            event = Event(self.revision + 1, kind, now(), rows, state, state, drawn, drawn)
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
            event = stack[-1][0].reversed(kind, self.revision + 1, now())
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
            event = Event(self.revision + 1, RENAME, now(), none, none, none, flags, flags, renamed=names)
            self._append(event, request)
            return event

    # --- the log

    def _append(self, event: Event, request: str = "", carried: Sequence[tuple[bool, Said]] = ()) -> None:
        """Write an event, and only then let it count; `carried`: rows that are in the file or not, for FILE."""
        prints = self._rows.fingerprints(event.rows.tolist())
        with self._saving(event.revision):
            if event.kind == FILE:
                self._remember_file()
            self._write(event, prints, request, carried)
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
        self.skipped: dict[int, None] = {}  # in order; both until the row is labelled
        self.kept: dict[int, None] = {}
        self.used: set[int] = set()  # classes that a row was given at some time
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

    # --- the file

    def _begin(self, target: str) -> None:
        with self._saving():
            self._set_meta(target=target, made=now(), id=secrets.token_hex(16))
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
        before = FileBefore(self.path, str(self._meta("file")), str(self._meta("digest")), columns)
        if (before.digest, columns) != (rows.digest, rows.columns):
            said = self._said(json.dumps(columns))
            found, note = before.match(said, np.array([one.state != AS_IN_FILE for one in said], dtype=bool), rows)
            self.notes.append(note)
            self._carry_over(said, found)
        self.state, self.drawn = self.state[: rows.n_rows], self.drawn[: rows.n_rows]

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
        self._append(Event(self.revision + 1, FILE, now(), rows, *states), carried=carried)
