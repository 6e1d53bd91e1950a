"""Telling open pages what happened: server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

HEARTBEAT = 15.0  # seconds
MIN_INTERVAL = 0.2  # seconds between two states of a page, except for a result


class Hub:
    """Wakes every open page after a change; what happens in between comes as one event."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pages: set[tuple[asyncio.Event, asyncio.Event]] = set()  # something happened, a result is there
        self._n_results = 0
        self._closed = False

    def start(self) -> None:
        """Remember the event loop of this thread."""
        self._loop = asyncio.get_running_loop()

    def notify(self, is_result: bool = False) -> None:
        """Wake the pages, from any thread."""
        if is_result:
            self._n_results += 1
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, is_result or self._closed)

    def close(self) -> None:
        """End the streams, from any thread."""
        self._closed = True
        self.notify()

    def _wake(self, is_urgent: bool) -> None:
        for news, urgent in self._pages:
            news.set()
            if is_urgent:
                urgent.set()

    async def events(self, state: Callable[[], dict[str, Any]]) -> AsyncIterator[bytes]:
        """The stream of one page: the state at once, then after every change."""
        news, urgent = page = asyncio.Event(), asyncio.Event()
        news.set()
        self._pages.add(page)
        seen = self._n_results
        try:
            while not self._closed:
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                news.clear()
                urgent.clear()
                now, results = await asyncio.to_thread(state), self._n_results
                yield _event("state", now)
                if results != seen:
                    seen = results
                    yield _event("result", {"revision": now["propagation"]["revision"], "changed": now["changed"]})
                with suppress(TimeoutError):
                    await asyncio.wait_for(urgent.wait(), MIN_INTERVAL)
        finally:
            self._pages.discard(page)


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()
