"""The studio behind the routes: a session, the cells, the worker's last result, and what they add up to."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import RLock, Thread
from typing import Any

import numpy as np

from otprop import __version__
from otprop._votes import Voter
from otprop.labelling.job import Job
from otprop.loop.labels_needed import LabelsNeeded
from otprop.studio.cells import SHORT, Cells
from otprop.studio.client import WorkerClient, WorkerGoneError, WorkerNews
from otprop.studio.export import FORMATS, MADE_HERE, ExportFolder, export_made_here
from otprop.studio.propagator import NO_CLASS, Labels, Result
from otprop.studio.rows import (
    GIVEN,
    HERE,
    PILE,
    PROPAGATED,
    Queues,
    Shown,
    best_classes,
    compose,
    probability_of,
)
from otprop.studio.session import (
    ACCEPT,
    AS_IN_FILE,
    KEEP,
    KINDS,
    REDO,
    REMOVE,
    REMOVED,
    RENAME,
    SKIP,
    UNDO,
    UNKNOWN,
    Event,
    Session,
)
from otprop.studio.session_file import NotSavedError
from otprop.studio.source import MAX_CLASSES, RowVotes, Source
from otprop.studio.worker import Changes, NotReadyError
from otprop.table.pictures import has_pillow

CLASS_KEYS = "123456789abcdefghijlmopqrtvwyz"  # the page keeps the other letters for itself
DOUBTFUL = 0.2  # probability of a class below which a label contradicts what is near
MAX_CONTRADICTED = 3
NOVEL = "none of these?"  # the reason of a row that looks like no labelled class


class Workspace:
    """Everything that a request may ask for or change; safe to be called from several threads."""

    def __init__(
        self,
        source: Source,
        job: Job,
        cells: Cells,
        session: Session,
        votes: RowVotes | None = None,
        notify: Callable[[bool], None] = lambda result: None,
        note_text: Callable[[str], str] = str,
    ) -> None:
        self.source, self.cells, self.session = source, cells, session
        self.notify = notify  # called after a change; True where there is a new result
        self.lock = RLock()
        ids = np.array([*(session.classes.index(name) for name in job.target.classes), -1], dtype=np.int64)
        self._given = ids[job.target.codes]
        self._target = job.target
        self._votes = votes
        voted = [] if votes is None else [session.classes.index(name) for name in votes.classes]
        self._in_file = {*ids[:-1].tolist(), *voted}  # named by the file, which a vote is in, too
        self._start = secrets.token_hex(8)
        self._notes, self._note_text = list(job.notes), note_text
        used = {name for name, kind in zip(cells.columns, cells.kinds, strict=True) if kind == "image"}
        self._only_shown = cells.pictures.are_files and not (has_pillow() and used & set(job.features.wanted))
        if self._only_shown:
            self._notes.append("pictures are shown but not used as features; labels follow from the other columns")
        self._news = WorkerNews()
        self._shown: tuple[tuple[int, int], Shown] | None = None
        self.queues = Queues(job.table.n_rows, source.request.seed)
        self._exports = ExportFolder()
        self.worker = WorkerClient(source, self.receive)

    def close(self) -> None:
        """End the worker and delete what was exported."""
        self.worker.close()
        self.session.close()
        self._exports.close()

    # --- what there is

    @property
    def result(self) -> Result | None:
        """What the last propagation found."""
        return self._news.result

    def shown(self) -> tuple[int, Shown]:
        """What is shown of every row, with the revision."""
        with self.lock, self.session.lock:
            key = (self.session.revision, self._news.n_results)
            if self._shown is None or self._shown[0] != key:
                self._shown = key, compose(self.session.state, self._given, self.result)
            return key[0], self._shown[1]

    def state(self) -> dict[str, Any]:
        """What the page shows around the map."""
        with self.lock, self.session.lock:
            session, result, (_, shown) = self.session, self.result, self.shown()
            counts = shown.counts(len(session.classes))
            n_labels = int(counts[[GIVEN, HERE]].sum())
            return {
                "version": __version__,
                "file": self.cells.name,
                "target": self.source.request.target,
                "n_rows": self.cells.n_rows,
                "columns": self._columns(),
                "text_columns": self.cells.text_columns,
                "pictures": bool(self.cells.pictures),
                "start": self._start,
                "novel": self._novel(),
                "voters": [] if result is None else [_voter(one) for one in result.voters],
                "images_are_files": self._only_shown,
                "classes": self._classes(counts),
                "revision": session.revision,
                "labels": n_labels,
                "unknown": int((shown.sources == PILE).sum()),
                "can_undo": session.can_undo,
                "can_redo": session.can_redo,
                "saved_at": session.saved_at if session.revision else None,
                "notes": self._all_notes(),
                "propagation": dict(self._news.status),
                "error": None if result is None else _range(result.error),
                "curve": [
                    {"labels": labels, "error": error, "low": low, "high": high}
                    for labels, error, low, high in session.curve()
                    if labels <= n_labels  # an undo goes back on the curve
                ],
                "changed": 0 if result is None else len(result.changed),
                "classes_found": 0 if result is None else result.classes_found,
                "goal": self._goal(),
                "n_rounds": 0 if result is None else result.n_rounds,
                "issues": len(self.issues()),
                "suggested": self._news.n_suggested,
                "suggested_for": self._news.suggested_for,
                "session_id": session.session_id,
            }

    def _columns(self) -> list[dict[str, str]]:
        voters = set() if self._votes is None else set(self._votes.voters)
        pairs = zip(self.cells.columns, self.cells.kinds, strict=True)
        return [{"name": name, "kind": "vote" if name in voters else kind} for name, kind in pairs]

    def _classes(self, counts: np.ndarray) -> list[dict[str, Any]]:
        """All classes by id; one that was made here and has lost its last row is hidden until it has one again."""
        hidden = self._hidden(counts)
        keys = self._keys(hidden)
        return [
            {
                "id": number,
                "name": name,
                "key": keys.get(number),
                "given": int(counts[GIVEN, number]),
                "here": int(counts[HERE, number]),
                "propagated": int(counts[PROPAGATED, number]),
                "hidden": number in hidden,
                "in_file": number in self._in_file,
            }
            for number, name in enumerate(self.session.classes)
        ]

    def _novel(self) -> dict[str, Any]:
        """How many rows look like no labelled class, and the estimated share of such rows."""
        result = self.result
        if result is None:
            return {"rows": 0, "share": None}
        return {"rows": len(self.queues.novel(self.shown()[1], result.novelty)), "share": _range(result.novel_share)}

    def _all_notes(self) -> list[str]:
        found = [*self.session.notes, *self._notes, *(self.result.notes if self.result else [])]
        return list(dict.fromkeys(map(self._note_text, found)))

    def _hidden(self, counts: np.ndarray) -> set[int]:
        rows = counts[[GIVEN, HERE, PROPAGATED]].sum(axis=0)
        return {number for number in self.session.used - self._in_file if not rows[number]}

    def _keys(self, hidden: set[int]) -> dict[int, str]:
        """The key of each class that is shown: it stays; a new class takes the first that is free."""
        known = {number: key for number, key in self.session.keys.items() if number not in hidden}
        free = iter([key for key in CLASS_KEYS if key not in known.values()])
        new = (number for number in range(len(self.session.classes)) if number not in hidden and number not in known)
        keys = {**known, **dict(zip(new, free, strict=False))}
        if keys != self.session.keys:
            with suppress(NotSavedError):  # a disk that is full is said where a label is lost by it
                self.session.set_keys(keys)
        return keys

    def _goal(self) -> dict[str, Any] | None:
        goal = self.session.goal
        if goal is None:
            return None
        needed = self._news.needed[1] if self._news.needed is not None and self._news.needed[0] == goal else None
        error = None if self.result is None else self.result.error
        if error is None:
            message = "known after the first propagation"
        elif error[0] <= goal:
            message = f"reached: {error[0]:.1%} expected"
        elif needed is None:
            message = f"{error[0]:.1%} expected now"
        elif not is_narrow(needed[1], needed[2]):
            message = f"{error[0]:.1%} expected now; how many more labels cannot be estimated yet: see the curve"
        else:
            message = f"about {needed[0]:.0f} more labels ({needed[1]:.0f} to {needed[2]:.0f})"
        known = needed is not None and is_narrow(needed[1], needed[2])
        return {"error": goal, "labels": _range(needed), "known": known, "message": message}

    def issues(self) -> list[tuple[int, int, float]]:
        """Labels that look wrong: row, suggested class, probability; not those that were kept, or changed here."""
        with self.lock:
            found = [] if self.result is None else self.result.issues
            return [one for one in found if not self._is_judged(one[0])]

    def _is_judged(self, row: int) -> bool:
        """Whether the label of a row was reviewed here, or was removed."""
        state, given = self.session.state[row], self._given[row] >= 0
        return row in self.session.kept or (state >= 0 and given) or (state < 0 and not (given and state == AS_IN_FILE))

    def row(self, row: int) -> dict[str, Any]:
        """All that is known of a row; `explained`: its explanation is that of the last result, if there is one."""
        with self.lock:
            _, shown = self.shown()
            label = int(shown.classes[row])
            best = best_classes(self.result, row)
            explained = self._news.explanation(row)
            issue = next((one for one in self.issues() if one[0] == row), None)
            no_image = self.cells.pictures.problem(row)  # a request for it would be an error in the console
            return {
                "id": row,
                "cells": self.cells.of_row(row),
                "label": None if label == NO_CLASS else label,
                "source": int(shown.sources[row]),
                "confidence": round(int(shown.confidence[row]) / 255, 3),
                "proposal": best[0] if best and shown.sources[row] != PILE else None,
                "probabilities": best,
                "evidence": [] if explained is None else explained["evidence"],
                "nearest": [] if explained is None else self._nearest(explained["nearest"], shown),
                "votes": self._votes_of(row),
                "novelty": self._novelty_of(row),
                "issue": None if issue is None else {"suggested": issue[1], "probability": round(issue[2], 4)},
                "image": self.cells.pictures.has(row) and not no_image,
                "no_image": no_image,
                "explained": row in self._news.explained or self.result is None,
            }

    def _votes_of(self, row: int) -> list[dict[str, Any]]:
        """Each voter and the id of the class that it votes for; None where it is silent."""
        classes = self.session.classes
        said = [] if self._votes is None else self._votes.of_row(row)
        return [{"voter": voter, "class": None if name is None else classes.index(name)} for voter, name in said]

    def _novelty_of(self, row: int) -> float | None:
        novelty = None if self.result is None else self.result.novelty
        return None if novelty is None else round(int(novelty[row]) / 255, 3)

    def novelty(self) -> bytes:
        """How unlike all labelled classes each row is, one byte per row; empty where that is not known."""
        with self.lock:
            found = None if self.result is None else self.result.novelty
            return b"" if found is None else found.tobytes()

    def _nearest(self, nearest: Sequence[dict[str, Any]], shown: Shown) -> list[dict[str, Any]]:
        """The labelled rows nearest to one, as they are labelled now."""
        return [
            {
                "id": one["id"],
                "class": int(shown.classes[one["id"]]),
                "source": int(shown.sources[one["id"]]),
                "cells": self.cells.of_row(one["id"], SHORT),
                "image": self.cells.pictures.has(one["id"]) and not self.cells.pictures.problem(one["id"]),
            }
            for one in nearest
            if shown.rounds[one["id"]] == 0
        ]

    def queue(self, order: str, n: int, number: int | None) -> tuple[list[tuple[int, str]], int]:
        """The next rows with the reason of each, and how many there are in all."""
        with self.lock:
            _, shown = self.shown()
            queues, skipped = self.queues, list(self.session.skipped)
            if order == "suggest":
                n_drawn, n_by_key = int(self.session.drawn.sum()), self.session.n_by_key
                return queues.suggested(shown, n, n_drawn, n_by_key, skipped), queues.n_free(shown)
            if order in ("unsure", "class"):
                rows = _skipped_last(queues.unsure(shown, n + len(skipped), number), skipped)[:n]
                return [(row, _sureness(shown, row)) for row in rows], queues.n_free(shown, number)
            if order == "novel":
                rows = queues.novel(shown, None if self.result is None else self.result.novelty)
                return [(row, NOVEL) for row in _skipped_last(rows, skipped)[:n]], len(rows)
            if order == "issues":
                issues, names = self.issues(), self.session.classes
                reasons = [(row, f"{names[found]} instead: {share:.0%}") for row, found, share in issues]
                return reasons[:n], len(reasons)
            rows = queues.pile(shown)
            return [(row, "unknown") for row in rows[:n]], len(rows)

    def map(self, kind: str) -> bytes | None:
        """The coordinates of the rows; None while they are computed, a ValueError where they cannot be."""
        with self.lock:
            maps, status = self._news.maps, self._news.status
            if kind not in maps and kind == "umap":
                future = maps[kind] = self.worker.ask("umap")
                future.add_done_callback(self._take_umap)  # at once where the worker is gone
            elif kind not in maps and status["state"] == "failed":
                raise ValueError(f"there is no map: {status['message']}")
            found = maps.get(kind)
            if isinstance(found, str):
                del maps[kind]  # who asks again may have more luck
                raise ValueError(found)
            return found if isinstance(found, bytes) else None

    def _take_umap(self, future: Future[Any]) -> None:
        with self.lock:
            error = future.exception()
            if error is None:
                self._news.maps["umap"] = future.result().tobytes()
            elif isinstance(error, (NotReadyError, WorkerGoneError)) and self._news.status["state"] != "failed":
                self._news.maps.pop("umap", None)  # asked again with the next request
            else:
                self._news.maps["umap"] = str(error)
        self.notify(False)

    # --- what a person does

    def label(
        self, rows: Sequence[int], number: int | None, kind: str, reason: str = "", request: str = ""
    ) -> dict[str, Any]:
        """Label rows, take their label away, or put them on the pile; returns once it is saved.

        `reason`: why the row was shown, as the page said it.
        """
        if kind not in (*KINDS, KEEP) or (number is None) != (kind in (REMOVE, "unknown")):
            raise ValueError("kind must be label, accept or keep with a class, or remove or unknown without one.")
        if number is not None and not 0 <= number < len(self.session.classes):
            raise ValueError(f"there is no class {number}.")
        with self.lock:
            found = np.unique(np.asarray(rows, dtype=np.int64))
            new = np.full(len(found), UNKNOWN if kind == "unknown" else AS_IN_FILE if number is None else number)
            if kind == KEEP:
                return self._keep(found, number, request)
            if kind == REMOVE:
                new = np.where(self._given[found] >= 0, REMOVED, AS_IN_FILE)
            contradicts = self._contradicts(found, number)
            wrong = self._expected_wrong(found, number)
            drawn = len(found) == 1 and self.queues.was_drawn(int(found[0]), reason)
            event = self.session.label(found.tolist(), new.tolist(), kind, drawn=drawn, request=request)
            if event is None and kind == ACCEPT and len(found) == 1:
                event = self.session.keep(int(found[0]), request)
            if event is not None:
                self._changed(event.rows)
            revision = self.session.revision
        return {"revision": revision, "saved": True, "contradicts": contradicts, "expected_wrong": wrong}

    def _keep(self, rows: np.ndarray, number: int | None, request: str) -> dict[str, Any]:
        """Say that the label of a row is right, where a person gave it and it is still there."""
        _, shown = self.shown()
        row = int(rows[0])
        if len(rows) != 1 or shown.sources[row] not in (GIVEN, HERE) or shown.classes[row] != number:
            raise ValueError(f"row {row + 1} has no such label any more: there is nothing to keep.")
        event = self.session.keep(row, request)
        self._changed(event.rows)
        return {"revision": event.revision, "saved": True, "contradicts": [], "expected_wrong": None}

    def _contradicts(self, rows: np.ndarray, number: int | None) -> list[dict[str, int]]:
        """Labelled rows near a row that have another class, where the new label surprises."""
        if len(rows) != 1 or number is None or self.result is None:
            return []
        row = int(rows[0])
        share = probability_of(self.result, rows, number)
        near = (self._news.explanation(row) or {"nearest": []})["nearest"][:MAX_CONTRADICTED]
        surprising = share is not None and float(share[0]) < DOUBTFUL
        _, shown = self.shown()
        return [
            {"id": one["id"], "class": int(shown.classes[one["id"]]), "source": int(shown.sources[one["id"]])}
            for one in near
            if shown.rounds[one["id"]] == 0
            and shown.classes[one["id"]] not in (number, NO_CLASS)
            and (surprising or one["distance"] == 0)
        ]

    def _expected_wrong(self, rows: np.ndarray, number: int | None) -> float | None:
        """How many of these rows are expected to be of another class."""
        share = None if number is None else probability_of(self.result, rows, number)
        return None if share is None else round(float((1.0 - share).sum()), 1)

    def undo(self, request: str = "") -> dict[str, Any]:
        """Take the newest event back."""
        return self._undo_or_redo(self.session.undo, UNDO, request)

    def redo(self, request: str = "") -> dict[str, Any]:
        """Redo the event that was undone last."""
        return self._undo_or_redo(self.session.redo, REDO, request)

    def _undo_or_redo(self, change: Callable[[str], Event | None], kind: str, request: str) -> dict[str, Any]:
        with self.lock:
            event = change(request)
            if event is None:
                return {"revision": self.session.revision, "rows": [], "what": f"nothing to {kind}"}
            self._changed(event.rows)
            return self.undo_answer(event)

    def undo_answer(self, event: Event) -> dict[str, Any]:
        """The answer to an undo or a redo."""
        rows = event.rows.tolist()
        if event.renamed is not None:
            names = {"before": event.renamed[1], "after": event.renamed[2]}
            return {"revision": event.revision, "rows": [], "what": f"{event.kind}: {names['after']}", "renamed": names}
        many = f"row {rows[0] + 1}" if len(rows) == 1 else f"{len(rows)} rows"
        return {"revision": event.revision, "rows": rows, "what": f"{event.kind}: {many}"}

    def skip(self, row: int, request: str = "") -> dict[str, Any]:
        """Move a row to the end of the queue."""
        with self.lock:
            event = self.session.skip(row, request)
            self._changed(event.rows)
            return {"revision": event.revision}

    def repeated(self, request: str) -> dict[str, Any] | None:
        """The answer to a request that was answered before, whose answer was lost on the way."""
        event = self.session.event_of_request(request) if request else None
        if event is None:
            return None
        if event.kind in (*KINDS, KEEP):
            return {"revision": event.revision, "saved": True, "contradicts": [], "expected_wrong": None}
        return {"revision": event.revision} if event.kind in (SKIP, RENAME) else self.undo_answer(event)

    def add_class(self, name: str) -> dict[str, Any]:
        """Make a class, or find it."""
        with self.lock:
            if name not in self.session.classes and len(self.session.classes) >= MAX_CLASSES:
                raise ValueError(f"the studio takes up to {MAX_CLASSES} classes.")
            number = self.session.add_class(name)
            _, shown = self.shown()
            key = self._keys(self._hidden(shown.counts(len(self.session.classes)))).get(number)
        self.notify(False)
        return {"id": number, "key": key}

    def rename_class(self, number: int | None, name: str, request: str = "") -> dict[str, Any]:
        """Give a class that was made here another name."""
        with self.lock:
            if number is None or number >= len(self.session.classes):
                raise ValueError(f"there is no class {number}.")
            if number in self._in_file:
                raise ValueError(f"{self.session.classes[number]!r} is named so in {self.cells.name}: rename it there.")
            if name in self.session.classes:
                raise ValueError(f"there is a class {name!r} already: give its rows that class instead.")
            event = self.session.rename(number, name, request)
            self._changed(event.rows)
            return {"revision": event.revision}

    def set_goal(self, error: float | None) -> None:
        """Set the expected error to reach."""
        self.session.set_goal(error)
        if error is not None:
            self.worker.ask("needed", (error, self._points())).add_done_callback(
                lambda future: self._take_needed(error, future)
            )
        self.notify(False)

    def _take_needed(self, error: float, future: Future[Any]) -> None:
        if future.exception() is None:
            self._news.needed = error, future.result()
            self.notify(False)

    def explain(self, row: int) -> Future[Any]:
        """Have a row explained."""
        future = self.worker.ask("explain", [row])
        future.add_done_callback(self._take_explanations)
        return future

    def _take_explanations(self, future: Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            with self.lock:
                self._news.explained.update(future.result())

    def export(self, what: str) -> Future[Any]:
        """Have a file written; its name."""
        if what == MADE_HERE:
            return self._export_made_here()
        if what not in FORMATS:
            raise ValueError(f"format must be one of {', '.join((*FORMATS, MADE_HERE))}.")
        return self.worker.ask("export", (str(self._exports.path), what, self.session.revision))

    def _export_made_here(self) -> Future[Any]:
        """Write the labels made here without the worker, which may be gone."""
        session, written = self.session, Future[Any]()
        with session.lock:
            state, drawn = session.state.copy(), session.drawn.copy()
            labels = Labels(session.revision, list(session.classes), state, drawn)
        folder = self._exports.path
        written.set_result(export_made_here(self.source, self._target, labels, self.cells.digest, folder))
        return written

    def exported(self, name: str) -> Path | None:
        """A file that was exported; None where there is none of this name."""
        return next((path for path in self._exports.path.iterdir() if path.name == name and path.is_file()), None)

    def _changed(self, rows: np.ndarray) -> None:
        """Tell the worker and the pages; called with the lock that the change was made with, so that none is passed."""
        with self.session.lock:
            session = self.session
            state, drawn = session.state[rows], session.drawn[rows]
            classes = list(session.classes)
            said = rows, state, drawn, session.goal, self._points()
            changes = Changes(self.cells.n_rows, session.revision, classes, *said)
        self.worker.send("changes", changes)
        self.notify(False)

    def _points(self) -> list[tuple[int, float]]:
        """The curve that the page shows, which the number of labels to come is estimated from."""
        return [(labels, error) for labels, error, _, _ in self.session.curve()]

    # --- what the worker says

    def receive(self, message: tuple[Any, ...]) -> None:
        """Take a message of the worker."""
        kind, news = message[0], self._news
        with self.lock:
            news.take(message)
            if kind == "started":
                self._changed(np.flatnonzero(self.session.state != AS_IN_FILE))
            elif kind == "digest" and news.digest != self.cells.digest:
                sentence = f"{self.cells.name} was changed while it is open: end the studio and start it again"
                news.take(("failed", self.session.revision, sentence))  # its rows may be other ones
                Thread(target=self.worker.close, daemon=True).start()
            elif kind == "suggestions":
                self.queues.set_suggestions(news.suggestions)
            elif kind == "result":
                self._add_to_curve()
        self.notify(kind == "result")

    def _add_to_curve(self) -> None:
        result = self.result
        if result is not None and result.error is not None and all(map(math.isfinite, result.error)):
            with suppress(NotSavedError):  # it is found again by the next propagation
                self.session.add_curve_point(result.revision, result.n_labels, *result.error)


def _skipped_last(rows: Sequence[int], skipped: Sequence[int]) -> list[int]:
    """The rows with the skipped ones last."""
    late = set(skipped)
    return [row for row in rows if row not in late] + [row for row in rows if row in late]


def _sureness(shown: Shown, row: int) -> str:
    return f"{int(shown.confidence[row]) / 255:.0%} sure" if shown.sources[row] == PROPAGATED else "no label yet"


def is_narrow(low: float, high: float) -> bool:
    """Whether a range of labels that are needed is narrow enough to plan by."""
    return LabelsNeeded(0, int(low), int(high)).is_known


def _voter(one: Voter) -> dict[str, Any]:
    accuracy = None if math.isnan(one.accuracy) else one.accuracy
    judged = {"low": one.low, "high": one.high, "judged": one.n_judged, "votes": one.n_votes}
    return {"name": one.name, "accuracy": accuracy, **judged}


def _range(found: tuple[float, float, float] | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    value, low, high = (one if math.isfinite(one) else None for one in found)
    return {"value": value, "low": low, "high": high}
