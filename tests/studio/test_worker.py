"""The threads of the worker: newer labels, questions, and the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

from otprop.labelling.job import Request
from tests.studio.conftest import write_lots

pytest.importorskip("pyarrow")
pytest.importorskip("starlette")


from otprop.studio import worker
from otprop.studio.client import WorkerClient
from otprop.studio.propagator import Propagator
from otprop.studio.source import Source


@contextmanager
def serving(path: Path) -> Iterator[Connection]:
    """The other end of a worker in threads of this process."""
    ours, theirs = Pipe()
    source = Source(str(path), Request("kind", settings={"evidence": None}))
    thread = Thread(target=worker.Worker(theirs, source, lambda status: None).serve, daemon=True)
    thread.start()
    yield ours
    ours.send(("close",))
    thread.join(60)
    assert not thread.is_alive()


def changes(revision: int, states: dict[int, int], n_rows: int = 60) -> worker.Changes:
    rows = np.array(list(states), dtype=np.int64)
    state = np.array(list(states.values()), dtype=np.int64)
    classes = ["apple", "pear <img src=x onerror=alert(1)>"]
    return worker.Changes(n_rows, revision, classes, rows, state, np.zeros(len(rows), dtype=bool), None)


def receive(connection: Connection, *kinds: str) -> tuple[Any, ...]:
    while True:
        assert connection.poll(120)
        message = connection.recv()
        assert message[0] != "failed", message
        if message[0] in kinds:
            return tuple(message)


def test_a_newer_label_cancels_the_run_and_only_the_newest_has_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MIN_PATIENCE", 600.0)
    with serving(write_lots(tmp_path / "lots.csv")) as connection:
        run, sent = Propagator.run, list[int]()

        def labelled_meanwhile(self: Propagator, labels: Any) -> Any:
            sent.append(labels.revision)
            if labels.revision < 3:  # a newer label comes before the estimator has done a step
                connection.send(("changes", changes(labels.revision + 1, {20 + labels.revision: 0})))
                while not vars(self)["_stop"]:
                    sleep(0.001)
            return run(self, labels)

        monkeypatch.setattr(Propagator, "run", labelled_meanwhile)
        connection.send(("changes", changes(0, {})))
        result = receive(connection, "result")[1]
        assert sent == [0, 1, 2, 3]
        assert (result.revision, result.n_labels) == (3, 11)


def test_questions_are_answered_and_a_failure_is_a_sentence(tmp_path: Path) -> None:
    with serving(write_lots(tmp_path / "lots.csv")) as connection:
        connection.send(("ask", 1, "explain", [20]))
        connection.send(("changes", changes(0, {})))
        _, number, answer, error = receive(connection, "answer")
        assert number == 1
        assert isinstance(error, worker.NotReadyError) or answer == {}
        receive(connection, "result")
        connection.send(("ask", 2, "explain", [20]))
        _, number, answer, error = receive(connection, "answer")
        assert (number, list(answer), error) == (2, [20], None)
        connection.send(("ask", 3, "explain", [10_000]))
        _, number, answer, error = receive(connection, "answer")
        assert (number, answer) == (3, None)
        assert "10000" in str(error)
        assert type(error) is ValueError


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with serving(tmp_path / "missing.csv") as connection:
        while (message := connection.recv())[0] != "failed":
            pass
        assert "there is no file" in message[2]


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_worker_that_has_only_begun_is_not_ended_by_an_interrupt(tmp_path: Path) -> None:
    messages: Queue[str] = Queue()
    source = Source(str(write_lots(tmp_path / "lots.csv")), Request("kind", settings={"evidence": None}))
    client = WorkerClient(source, lambda message: messages.put(message[0]))
    client.start()
    try:
        assert client.pid is not None
        os.kill(client.pid, signal.SIGINT)
        assert messages.get() == "started"
        assert messages.get(timeout=60) != "gone"
    finally:
        client.close()


def test_results_are_let_through_where_newer_labels_come_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MIN_PATIENCE", 0.0)
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    with serving(write_lots(tmp_path / "lots.csv")) as connection:
        run = Propagator.run

        def labelled_meanwhile(self: Propagator, labels: Any) -> Any:
            if labels.revision == 0:
                connection.send(("changes", changes(1, {20: 0})))
            return run(self, labels)

        monkeypatch.setattr(Propagator, "run", labelled_meanwhile)
        connection.send(("changes", changes(0, {})))
        assert [receive(connection, "result")[1].revision for _ in range(2)] == [0, 1]
