"""Events for open pages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

server = pytest.importorskip("otprop.studio.server")


class Page:
    """A hub whose state counts how often it was asked for."""

    def __init__(self) -> None:
        self.hub, self.n_asked = server.Hub(), 0

    def state(self) -> dict[str, Any]:
        self.n_asked += 1
        return {"propagation": {"revision": self.n_asked}, "changed": 3}

    async def open(self) -> Any:
        self.hub.start()
        return self.hub.events(self.state)


def parsed(event: bytes) -> tuple[str, Any]:
    name, data = event.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_the_state_comes_at_once_and_a_result_does_not_wait_for_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MIN_INTERVAL", 3600.0)

    async def run() -> list[str]:
        page = Page()
        events = await page.open()
        first = parsed(await anext(events))
        page.hub.notify(True)
        names = [first[0], *[parsed(await anext(events))[0] for _ in range(2)]]
        page.hub.close()
        assert [one async for one in events] == []
        return names

    assert asyncio.run(run()) == ["state", "state", "result"]


def test_what_happens_in_between_comes_as_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MIN_INTERVAL", 0.0)

    async def run() -> int:
        page = Page()
        events = await page.open()
        await anext(events)
        for _ in range(100):
            page.hub.notify()
        await anext(events)
        await events.aclose()
        return page.n_asked

    assert asyncio.run(run()) <= 3


def test_a_quiet_stream_has_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEARTBEAT", 0.001)
    monkeypatch.setattr(server, "MIN_INTERVAL", 0.0)

    async def run() -> bytes:
        events = await Page().open()
        await anext(events)
        beat = await anext(events)
        await events.aclose()
        return bytes(beat)

    assert asyncio.run(run()).startswith(b":")
