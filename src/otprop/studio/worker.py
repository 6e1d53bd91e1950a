"""The worker: a separate process that reads the table, propagates the labels, and answers questions about rows."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any

import numpy as np

from otprop._errors import OtpropError
from otprop._progress import FitCancelledError
from otprop.studio.export import export
from otprop.studio.propagator import N_EXPLAINED, Labels, Propagator
from otprop.studio.session_log import AS_IN_FILE
from otprop.studio.source import Source

PATIENCE = 2.0  # a run may finish if newer labels have cancelled runs for this many times its usual duration
MIN_PATIENCE = 5.0  # seconds
_LONG = ("umap", "export")  # questions that others must not wait for
_PROGRESS_INTERVAL = 0.1  # seconds


class NotReadyError(OtpropError, ValueError):
    """A question came before the table was read: it may be asked again."""


@dataclass(frozen=True)
class Changes:
    """Newer labels, sent to the worker: rows and their states; at the start, of all rows that have one."""

    n_rows: int
    revision: int
    classes: list[str]
    rows: np.ndarray
    state: np.ndarray
    drawn: np.ndarray
    goal: float | None
    curve: list[tuple[int, float]] = field(default_factory=list)


def main(connection: Connection, source: Source) -> None:
    """Run a worker until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the connection
    logging.getLogger("otprop").addHandler(logging.NullHandler())  # what matters of both is among the notes of a result
    warnings.simplefilter("ignore")
    if hasattr(os, "nice"):
        os.nice(10)  # the page and the server come first
    Worker(connection, source).serve()


class Worker:
    """Three threads: one receives, one propagates, one answers questions.

    `leave` ends the process at once: nothing in it is to be kept, and a running fit must not be waited for.
    """

    def __init__(self, connection: Connection, source: Source, leave: Callable[[int], Any] = os._exit) -> None:
        self._connection, self._source, self._leave = connection, source, leave
        self._labels = Labels(-1, [], np.empty(0), np.empty(0))  # until the server has sent them
        self._sending, self._news = Lock(), Condition()
        self._questions: list[tuple[int, str, Any]] = []
        self._propagator: Propagator | None = None
        self._done_revision, self._done_state = -1, self._labels.state
        self._failure, self._ended = "", False  # why there is no result of the newest labels; there will be none
        self._run_started: float | None = None
        self._waiting_since: float | None = None  # the first run since the last result
        self._usual = 0.0
        self._last_progress = 0.0

    def serve(self) -> None:
        """Receive until the server is gone, however it ended."""
        for work in (self._propagate, self._answer):
            Thread(target=work, daemon=True).start()
        try:
            while True:
                self._receive(self._connection.recv())
        except (EOFError, OSError):
            self._leave(0)

    def _receive(self, message: tuple[Any, ...]) -> None:
        with self._news:
            if message[0] == "close":
                raise EOFError
            if message[0] == "changes":
                before, self._labels = self._labels, _changed(self._labels, message[1])
                if self._labels.state is not before.state and self._may_cancel():
                    assert self._propagator is not None
                    self._propagator.cancel()
            else:
                self._questions.append(message[1:])
            self._news.notify_all()

    def _may_cancel(self) -> bool:
        """A newer label cancels the run, unless results have not come for long because of that."""
        if self._run_started is None or self._waiting_since is None:
            return False
        return monotonic() - self._waiting_since < max(MIN_PATIENCE, PATIENCE * self._usual)

    def _propagate(self) -> None:
        try:
            self._propagator = propagator = Propagator(self._source, self._progress)
            self._send("digest", propagator.digest)
            propagator.make_vectors()
            self._send("map", "pca", propagator.points("pca"))
            with self._news:
                self._news.wait_for(lambda: self._labels.revision >= 0)
            if not propagator.can_run(self._labels):
                self._suggest(propagator)
            propagator.find_neighbors()
            while True:
                with self._news:
                    self._news.wait_for(lambda: self._labels.revision != self._done_revision)
                    labels = self._labels
                try:
                    self._run(propagator, labels)
                except Exception as error:  # the next labels may do better
                    self._fail(labels, error)
        except Exception as error:
            self._ended = True
            self._fail(self._labels, error)

    def _fail(self, labels: Labels, error: Exception) -> None:
        self._failure = _sentence(error)
        self._send("failed", labels.revision, self._failure)
        self._done(labels)

    def _run(self, propagator: Propagator, labels: Labels) -> None:
        """One run, its result, and what to label next."""
        if labels.state is self._done_state:  # a row was skipped
            self._done(labels)
            self._send("unchanged", labels.revision)
            return
        if not propagator.can_run(labels):
            propagator.fitted = None
            self._done(labels)
            self._send("waiting", labels.revision)
            self._suggest(propagator)
            return
        with self._news:
            if self._labels.state is not labels.state:
                return
            self._run_started = monotonic()
            self._waiting_since = self._waiting_since or self._run_started
        self._send("running", labels.revision)
        try:
            result = propagator.run(labels)
        except FitCancelledError:
            return
        finally:
            with self._news:
                started, self._run_started = self._run_started, None
        self._usual, self._waiting_since = monotonic() - (started or 0.0), None
        self._send("result", result)
        self._failure = ""
        self._done(labels)
        self._suggest(propagator)

    def _done(self, labels: Labels) -> None:
        with self._news:
            self._done_revision, self._done_state = labels.revision, labels.state
            self._news.notify_all()

    def _suggest(self, propagator: Propagator) -> None:
        labels = self._labels
        found = propagator.suggest(labels)
        self._send("suggestions", labels.revision, found)
        if self._labels.revision == labels.revision:
            rows = [row for row, _ in found[:N_EXPLAINED]]
            self._send("explanations", propagator.explain(rows))
        if labels.goal is not None:
            self._send("needed", labels.goal, propagator.labels_needed(labels.goal, labels.curve))

    def _progress(self, done: float, total: float, step: str) -> None:
        if monotonic() - self._last_progress >= _PROGRESS_INTERVAL or done == 0:
            self._last_progress = monotonic()
            self._send("progress", float(done), float(total), step)

    def _answer(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._questions)
                number, question, argument = self._questions.pop(0)
            if question in _LONG:
                Thread(target=self._answer_one, args=(number, question, argument), daemon=True).start()
            else:
                self._answer_one(number, question, argument)

    def _answer_one(self, number: int, question: str, argument: Any) -> None:
        try:
            self._send("answer", number, self._answer_to(question, argument), None)
        except Exception as error:
            kind = NotReadyError if isinstance(error, NotReadyError) else ValueError
            self._send("answer", number, None, kind(_sentence(error)))

    def _ready(self) -> Propagator:
        if self._propagator is None or self._propagator.base.vectors is None:
            raise ValueError(self._failure) if self._failure else NotReadyError("the table is still being read.")
        return self._propagator

    def _answer_to(self, question: str, argument: Any) -> Any:
        propagator = self._ready()
        if question == "explain":
            return propagator.explain(argument)
        if question == "needed":
            return propagator.labels_needed(*argument)
        if question == "umap":
            return propagator.points("umap")
        folder, what, revision = argument  # "export", once the propagation has seen all labels up to a revision
        with self._news:
            self._news.wait_for(lambda: self._ended or self._done_revision >= revision)
        if self._failure:
            raise ValueError(f"there is no propagation to write: {self._failure}")
        return export(propagator, self._labels, what, Path(folder))

    def _send(self, *message: Any) -> None:
        with self._sending:
            try:
                self._connection.send(message)
            except (BrokenPipeError, OSError):
                self._leave(0)


def _changed(labels: Labels, changes: Changes) -> Labels:
    """The labels with newer ones, in new arrays, since a run may be reading the old ones; the same if none differs."""
    state, drawn, rows = labels.state, labels.drawn, changes.rows
    if labels.revision < 0:
        state, drawn = np.full(changes.n_rows, AS_IN_FILE, dtype=np.int64), np.zeros(changes.n_rows, dtype=bool)
    if (state[rows] != changes.state).any() or (drawn[rows] != changes.drawn).any():
        state, drawn = state.copy(), drawn.copy()
        state[rows], drawn[rows] = changes.state, changes.drawn
    if changes.classes[: len(labels.classes)] != labels.classes:  # a class was renamed, which may change their order
        state = state.copy()
    return Labels(changes.revision, changes.classes, state, drawn, changes.goal, changes.curve)


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, (ValueError, ImportError, OSError)) else f"{type(error).__name__}: {text}"
