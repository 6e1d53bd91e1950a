"""Requests that are never finished: they end by themselves, and lock nobody out."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from tests.studio.client import StudioClient

security = pytest.importorskip("otprop.studio.security")
BEGINNINGS = (b"", b"GET / HTTP/1.1\r\n", b"POST /api/goal HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")


def unfinished(stack: ExitStack, port: int, beginning: bytes) -> socket.socket:
    """A connection that sends the beginning of a request only."""
    found = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    found.sendall(beginning)
    return found


def ended(connection: socket.socket) -> bool:
    """Whether the server ends a connection, perhaps after an answer."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_an_unfinished_request_is_ended(
    quiet: tuple[Any, StudioClient], monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    _, client = quiet
    monkeypatch.setattr(security, "PATIENCE", 0.05)
    with ExitStack() as stack:
        assert ended(unfinished(stack, client.port, beginning))


def test_many_unfinished_requests_lock_nobody_out(
    quiet: tuple[Any, StudioClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    studio, client = quiet
    monkeypatch.setattr(security, "MAX_CONNECTIONS", 20)
    with ExitStack() as stack:
        waiting = [unfinished(stack, client.port, BEGINNINGS[number % 2]) for number in range(100)]
        assert client.get("/api/state")["file"] == "quiet.csv"
        assert all(map(ended, waiting[:80]))
        events = client.events()
        next(events)
        more = [unfinished(stack, client.port, BEGINNINGS[number % 2]) for number in range(40)]
        assert all(map(ended, [*waiting, *more[:20]]))
        client.post("/api/goal", {"error": 0.25})
        assert any(state["goal"] and state["goal"]["error"] == 0.25 for _, state in events)  # the stream was not ended
        events.close()
    client.post("/api/goal", {"error": None})
    assert studio.workspace.session.goal is None
