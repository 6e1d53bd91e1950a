"""The studio behind the routes: what a person does, and what the worker says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from otprop.studio.client import WorkerClient, WorkerGoneError
from otprop.studio.export import FORMATS, MADE_HERE, ExportFolder, export_made_here
from otprop.studio.propagator import NO_CLASS, Labels
from otprop.studio.rows import GIVEN, HERE, probability_of
from otprop.studio.session_file import NotSavedError
from otprop.studio.session_log import (
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
)
from otprop.studio.source import MAX_CLASSES, Source
from otprop.studio.view import View
from otprop.studio.worker import Changes, NotReadyError

DOUBTFUL = 0.2  # probability of a class below which a label contradicts what is near
MAX_CONTRADICTED = 3


class Workspace(View):
    """Everything that a request may ask for or change; its parameters are those of `View`."""

    def __init__(self, source: Source, *more: Any) -> None:
        super().__init__(source, *more)
        self.notify: Callable[[bool], None] = lambda result: None  # called after a change; True for a new result
        self._exports = ExportFolder()
        self.worker = WorkerClient(source, self.receive)

    def close(self) -> None:
        """End the worker and delete what was exported."""
        self.worker.close()
        self.session.close()
        self._exports.close()

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
            answer = {"revision": self.session.revision} if event is None else self._made(event)
            return {**answer, "saved": True, "contradicts": contradicts, "expected_wrong": wrong}

    def _keep(self, rows: np.ndarray, number: int | None, request: str) -> dict[str, Any]:
        """Say that the label of a row is right, where a person gave it and it is still there."""
        _, shown = self.shown()
        row = int(rows[0])
        if len(rows) != 1 or shown.sources[row] not in (GIVEN, HERE) or shown.classes[row] != number:
            raise ValueError(f"row {row + 1} has no such label any more: there is nothing to keep.")
        return self._made(self.session.keep(row, request))

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
            return self._made(event)

    def skip(self, row: int, request: str = "") -> dict[str, Any]:
        """Move a row to the end of the queue."""
        with self.lock:
            return self._made(self.session.skip(row, request))

    def repeated(self, request: str) -> dict[str, Any] | None:
        """The answer to a request that was answered before, whose answer was lost on the way."""
        event = self.session.event_of_request(request) if request else None
        return None if event is None else _answer(event)

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
            return self._made(self.session.rename(number, name, request))

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

    def _made(self, event: Event) -> dict[str, Any]:
        """Tell the worker and the pages of an event; the answer to the request that made it."""
        self._changed(event.rows)
        return _answer(event)

    def _changed(self, rows: np.ndarray) -> None:
        """Tell the worker and the pages; called with the lock that the change was made with, so that none is passed."""
        with self.session.lock:
            session = self.session
            said = rows, session.state[rows], session.drawn[rows], session.goal, self._points()
            changes = Changes(self.cells.n_rows, session.revision, list(session.classes), *said)
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


def _answer(event: Event) -> dict[str, Any]:
    """The answer to the request that made an event."""
    answer: dict[str, Any] = {"revision": event.revision}
    if event.kind in (*KINDS, KEEP):
        return {**answer, "saved": True, "contradicts": [], "expected_wrong": None}
    if event.kind in (SKIP, RENAME):
        return answer
    if event.renamed is not None:
        names = {"before": event.renamed[1], "after": event.renamed[2]}
        return {**answer, "rows": [], "what": f"{event.kind}: {names['after']}", "renamed": names}
    rows = event.rows.tolist()
    many = f"row {rows[0] + 1}" if len(rows) == 1 else f"{len(rows)} rows"
    return {**answer, "rows": rows, "what": f"{event.kind}: {many}"}
