"""The server's end of the worker: start it, send labels, ask questions, start it again; what the worker has said."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any

import numpy as np

from otprop._errors import OtpropError
from otprop.loop.labels_needed import LabelsNeeded
from otprop.studio import worker
from otprop.studio.propagator import Result
from otprop.studio.source import Source

MAX_RESTARTS = 3  # in a row, without a result in between
WITHOUT = 'labels are still saved, and can be exported as "Labels"'

TWO_CLASSES = "label rows of two classes, and the others follow"

Receiver = Callable[[tuple[Any, ...]], None]


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that is started here is never interrupted by Ctrl-C, not even before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts through again, were it started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerGoneError(OtpropError, RuntimeError):
    """The worker ended before it answered."""


class WorkerClient:
    """A worker process.

    `receive` gets every message of the worker except answers, from a separate thread; first ("started",), to which it
    sends the labels.
    """

    def __init__(self, source: Source, receive: Receiver) -> None:
        self._source, self._receive = source, receive
        self._lock, self._numbers, self._questions = Lock(), count(), dict[int, Future[Any]]()
        self._connection: Connection | None = None
        self._process: Any = None
        self._closed, self._failures = False, 0

    @property
    def pid(self) -> int | None:
        """The process id, for tests that kill it."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process."""
        context = get_context("spawn")  # a fork would copy the threads of the server halfway
        with self._lock:
            if self._closed:
                return
            ours, theirs = context.Pipe()
            self._process = context.Process(
                target=worker.main, args=(theirs, self._source), name="otprop-studio-worker"
            )
            with _without_interrupts():
                self._process.start()
            theirs.close()
            self._connection = ours
        self._receive(("started",))
        Thread(target=self._listen, args=(ours, self._process), daemon=True).start()

    def send(self, *message: Any) -> None:
        """Send a message; lost where the worker is gone, since the next one starts with the labels of then."""
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._connection.send(message)

    def ask(self, question: str, argument: Any = None) -> Future[Any]:
        """The answer to a question, once it comes; a ValueError with its sentence where it fails."""
        answer: Future[Any] = Future()
        number = next(self._numbers)
        self._questions[number] = answer
        self.send("ask", number, question, argument)
        if self._connection is None:
            self._fail_questions()
        return answer

    def close(self) -> None:
        """End the worker."""
        self.send("close")  # the end of the connection is not seen while our own thread reads from it
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
        if self._process is not None:
            self._process.join(2)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()

    def _listen(self, connection: Connection, process: Any) -> None:
        try:
            while True:
                message = connection.recv()
                if message[0] == "answer":
                    self._take_answer(*message[1:])
                    continue
                if message[0] == "result":
                    self._failures = 0
                self._receive(message)
        except (EOFError, OSError, TypeError):  # a TypeError where the connection is closed while it is read
            pass
        if self._closed:
            return
        with self._lock:
            self._connection = None
        self._failures += 1
        again = self._starts_again
        self._fail_questions()
        process.join()
        self._receive(("gone", process.exitcode, again))
        if again:
            self.start()

    @property
    def _starts_again(self) -> bool:
        return not self._closed and self._failures <= MAX_RESTARTS

    def _take_answer(self, number: int, answer: Any, error: ValueError | None) -> None:
        question = self._questions.pop(number, None)
        if question is None or question.cancelled():
            return
        if error is None:
            question.set_result(answer)
        else:
            question.set_exception(error)

    def _fail_questions(self) -> None:
        ending = "; it is started again." if self._starts_again else f", and is not started again: {WITHOUT}."
        for number in list(self._questions):
            question = self._questions.pop(number, None)
            if question is not None and not question.done():
                question.set_exception(WorkerGoneError(f"the propagation was stopped{ending}"))


class WorkerNews:
    """Takes the messages of the worker, each by a method of its name."""

    def __init__(self) -> None:
        self.result: Result | None = None
        self.n_results = 0  # how often `result` was another one
        self.status: dict[str, Any] = {  # of the propagation, as the page shows it
            **{"state": "waiting", "revision": 0, "step": "starting", "done": 0, "total": 0},
            **{"message": "", "seconds": None, "reused": []},
        }
        self.explained: dict[int, dict[str, Any]] = {}  # by row, for the last result
        self.explained_before: dict[int, dict[str, Any]] = {}  # for an earlier result
        self.suggestions: list[tuple[int, str]] = []  # row, reason
        self.n_suggested, self.suggested_for = 0, -1  # how often suggestions or explanations came, and the revision
        self.needed: tuple[float, LabelsNeeded | None] | None = None  # goal, labels needed
        self.maps: dict[str, bytes | Future[Any] | str] = {}  # coordinates, or the sentence why there are none
        self.digest: str | None = None  # of the file that the worker has read

    def take(self, message: tuple[Any, ...]) -> None:
        """Take a message."""
        getattr(self, f"_on_{message[0]}")(*message[1:])

    def explanation(self, row: int) -> dict[str, Any] | None:
        """The newest explanation of a row; None where it has not been explained."""
        return self.explained.get(row, self.explained_before.get(row))

    def _on_started(self) -> None:
        self.status |= {"state": "waiting", "step": "starting"}

    def _on_digest(self, digest: str) -> None:
        self.digest = digest

    def _on_map(self, kind: str, points: np.ndarray) -> None:
        self.maps[kind] = points.tobytes()

    def _on_progress(self, done: float, total: float, step: str) -> None:
        self.status |= {"step": step, "done": done, "total": total}

    def _on_running(self, revision: int) -> None:
        self.status |= {"state": "running", "revision": revision, "message": ""}

    def _on_waiting(self, revision: int) -> None:
        self.status |= {"state": "waiting", "revision": revision, "step": "", "message": TWO_CLASSES}
        if self.result is not None:
            self.result, self.explained = None, {}
            self.n_results += 1

    def _on_unchanged(self, revision: int) -> None:
        self.status["revision"] = revision

    def _on_result(self, result: Result) -> None:
        self.explained_before.update(self.explained)
        self.result, self.n_results, self.explained = result, self.n_results + 1, {}
        self.status |= {
            **{"state": "done", "revision": result.revision, "step": "", "message": ""},
            **{"seconds": round(result.seconds, 3), "reused": result.reused},
        }

    def _on_suggestions(self, revision: int, found: list[tuple[int, str]]) -> None:
        self.suggestions, self.suggested_for = found, revision
        self.n_suggested += 1

    def _on_explanations(self, found: dict[int, dict[str, Any]]) -> None:
        self.explained.update(found)
        self.n_suggested += 1

    def _on_needed(self, error: float, needed: LabelsNeeded | None) -> None:
        self.needed = error, needed

    def _on_failed(self, revision: int, sentence: str) -> None:
        self.status |= {"state": "failed", "revision": revision, "step": "", "message": sentence}

    def _on_gone(self, status: int | None, again: bool) -> None:
        ending = "it is started again" if again else f"it is not started again; {WITHOUT}"
        message = f"the propagation was stopped (exit status {status}): {ending}"
        self.status |= {"state": "waiting" if again else "failed", "step": "", "message": message}
