"""The server's end of the worker: start it, send labels, ask questions, start it again when it is gone."""

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

from otprop._errors import OtpropError
from otprop.studio import worker
from otprop.studio.source import Source

MAX_RESTARTS = 3  # in a row, without a result in between
WITHOUT = 'labels are still saved, and can be exported as "Labels"'

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

    Parameters
    ----------
    source : Source
    receive : callable, gets every message of the worker except answers, from a separate thread; first ("started",), to
        which it sends the labels
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
