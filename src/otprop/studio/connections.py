"""Limits of connections: nobody fills the descriptors of the server with requests that are never finished."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256  # browsers open six to a server
PATIENCE = 20.0  # seconds for a request to arrive whole


class LimitedProtocol(H11Protocol):
    """A connection that is closed where a request takes too long to arrive, or where it is the oldest of too many.

    A new connection is not refused for the sake of idle ones, so that strangers cannot lock the page out.
    """

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether the server waits for a request, or for the rest of one."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.connections) > MAX_CONNECTIONS:
            others: list[Any] = [one for one in self.connections if one is not self]
            idle = [one for one in others if isinstance(one, LimitedProtocol) and one.is_waiting]
            min(idle, key=lambda one: one._since, default=self)._drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self.is_waiting:
            self._unwatch()
        elif self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self._drop)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        self._unwatch()
        self.connections.discard(self)  # at once: the next connection counts them before this one is gone
        self.transport.abort()
