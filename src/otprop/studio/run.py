"""Opening a table in the studio: everything from the file to a server that listens."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from otprop.studio.cells import Cells
from otprop.studio.security import LimitedProtocol
from otprop.studio.server import Hub, make_app
from otprop.studio.session import Session
from otprop.studio.source import Source, prepare_source, read_row_votes, read_source, with_kept_options
from otprop.studio.workspace import Workspace
from otprop.table.opening import target_of

HOST = "127.0.0.1"  # nobody else on the network
DEFAULT_PORT = 8756
PORTS_TRIED = 20


class Studio:
    """An open table and its server.

    `port` is None for the first that is free; `note_text` turns a note into what the page shows, its parameters named
    as the user gives them. The attribute `url` is the address with the token, `notes` what the user should know.
    """

    def __init__(
        self, source: Source, session_path: Path, port: int | None = None, note_text: Callable[[str], str] = str
    ) -> None:
        table = read_source(source)
        source = replace(source, request=replace(source.request, target=target_of(table, source.request.target)))
        source, notes = with_kept_options(source, session_path, table.names)
        job = prepare_source(source, table)
        votes = read_row_votes(source.request, table, job.target)
        cells = Cells(table, source.request.target, source.folder)
        classes = job.target.classes if votes is None else votes.classes
        self.session = Session(session_path, cells, source.request.target, classes)
        try:
            self.session.set_options(groups=source.request.groups, votes=list(source.request.votes))
            self.session.notes += notes
            self._socket, note = bind(port)
            self.port: int = self._socket.getsockname()[1]
            self.notes = [*job.notes, *self.session.notes, *([note] if note else [])]
            self.workspace = Workspace(source, job, cells, self.session, votes, note_text)
        except BaseException:
            self.session.close()
            raise
        self.hub = Hub()
        self._app = make_app(self.workspace, self.hub, self.port)
        self.url = f"http://{HOST}:{self.port}/?token={self._app.token}"
        config = uvicorn.Config(
            self._app,
            log_level="error",  # broken requests of strangers are not worth a line in the terminal
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=2,
            http=LimitedProtocol,
        )
        self._server = _Server(config, self.hub)

    def serve(self, started: Callable[[], Any] = lambda: None) -> None:
        """Serve until a signal or `stop`; `started` is called once requests are answered."""
        self.workspace.worker.start()
        self._server.started_callback = started
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """End `serve` from another thread."""
        self.hub.close()
        self._server.should_exit = True

    def close(self) -> None:
        """Give everything free."""
        self._socket.close()
        self.workspace.close()


class _Server(uvicorn.Server):
    """A server that ends its event streams when it is asked to stop, and says when it listens."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub
        self.started_callback: Callable[[], Any] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.start()
        await super().startup(sockets)
        if self.started:
            self.started_callback()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:  # a second Ctrl-C must not cut the end short
            self._hub.close()
            super().handle_exit(sig, frame)


def bind(port: int | None) -> tuple[socket.socket, str]:
    """A socket on the port, or on the next free one, and a note on that; 0 for any port."""
    wanted = DEFAULT_PORT if port is None else port
    for offered in [wanted] if wanted == 0 else range(wanted, min(wanted + PORTS_TRIED, 65_536)):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not taken, only left a moment ago
        try:
            listener.bind((HOST, offered))
            listener.listen(128)
        except OSError:
            listener.close()
            continue
        return listener, "" if offered == wanted else f"port {wanted} is taken: {offered} is used"
    raise OSError(f"no port from {wanted} on is free: name another one.")
