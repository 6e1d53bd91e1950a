"""The routes of the studio, and the events that tell open pages what happened."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from otprop.studio.cells import MAX_FOUND, SHORT
from otprop.studio.client import WorkerGoneError
from otprop.studio.rows import ORDERS
from otprop.studio.security import (
    KEPT_BY_BROWSER,
    LARGE_BODY,
    SMALL_BODY,
    Guard,
    Refusal,
    body_of,
    check_class_name,
    class_of,
    query_number,
    row_of,
    rows_of,
    share_of,
)
from otprop.studio.session_file import NotSavedError
from otprop.studio.session_log import Event
from otprop.studio.workspace import Workspace
from otprop.table.row_pictures import LARGE, THUMBNAIL, NoPictureError

MAX_CELLS = 200  # rows of one request for cells, and of a queue
QUICK = 0.03  # seconds that a row waits for its explanation
PATIENT = 10.0  # the same, where the page says that it waits
HEARTBEAT = 15.0  # seconds between two events
MIN_INTERVAL = 0.2  # seconds between two states of a page, except for a result
MEDIA_TYPES = {
    **{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"},
    **{".js": "text/javascript; charset=utf-8", ".png": "image/png", ".woff2": "font/woff2"},
}


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


def as_json(data: Any, status: int = 200) -> Response:
    """An answer in JSON; any text fits, also half of a surrogate pair."""
    return Response(json.dumps(data, allow_nan=False).encode(), status, media_type="application/json")


def as_bytes(data: bytes, revision: int | None = None) -> Response:
    """An answer of numbers, a fixed number of bytes per row."""
    headers = {} if revision is None else {"X-Revision": str(revision)}
    return Response(data, media_type="application/octet-stream", headers=headers)


class Application:
    """The handlers of all routes."""

    def __init__(self, workspace: Workspace, hub: Hub) -> None:
        self._space, self._hub = workspace, hub
        static = Path(str(files("otprop.studio") / "static"))
        self._static = {
            path.relative_to(static).as_posix(): path
            for path in (sorted(static.rglob("*")) if static.is_dir() else [])
            if path.is_file() and path.suffix in MEDIA_TYPES
        }
        self.routes: list[tuple[str, str, Callable[[Request], Any], int]] = [
            ("GET", "/", self.index, 0),
            ("GET", "/static/{path:path}", self.static, 0),
            ("GET", "/api/state", self.state, 0),
            ("GET", "/api/map", self.map, 0),
            ("GET", "/api/labels", self.labels, 0),
            *(("GET", f"/api/{name}", partial(self.column, name), 0) for name in ("confidence", "sources", "rounds")),
            ("GET", "/api/changed", self.changed, 0),
            ("GET", "/api/novelty", self.novelty, 0),
            ("GET", "/api/cells", self.cells, 0),
            ("GET", "/api/row/{row:int}", self.row, 0),
            ("GET", "/api/image/{row:int}", partial(self.picture, LARGE), 0),
            ("GET", "/api/thumbnail/{row:int}", partial(self.picture, THUMBNAIL), 0),
            ("GET", "/api/queue", self.queue, 0),
            ("GET", "/api/search", self.search, 0),
            ("GET", "/api/log", self.log, 0),
            ("GET", "/api/events", self.events, 0),
            ("GET", "/api/export/{name:str}", self.download, 0),
            ("POST", "/api/label", self.label, LARGE_BODY),
            ("POST", "/api/undo", partial(self.step, workspace.undo), SMALL_BODY),
            ("POST", "/api/redo", partial(self.step, workspace.redo), SMALL_BODY),
            ("POST", "/api/skip", self.skip, SMALL_BODY),
            ("POST", "/api/classes", self.classes, SMALL_BODY),
            ("POST", "/api/rename", self.rename, SMALL_BODY),
            ("POST", "/api/goal", self.goal, SMALL_BODY),
            ("POST", "/api/export", self.export, SMALL_BODY),
        ]
        self._patterns = [
            (method, re.compile(re.sub(r"\{(\w+):(\w+)\}", _as_pattern, path)), most)
            for method, path, _, most in self.routes
        ]

    def allowed(self, method: str, path: str) -> int | None:
        """The largest body of a route; None where there is no such route."""
        return next(
            (most for name, pattern, most in self._patterns if name == method and pattern.fullmatch(path)), None
        )

    def make(self) -> Starlette:
        """The application without its guard."""
        return Starlette(
            routes=[Route(path, handler, methods=[method]) for method, path, handler, _ in self.routes],
            exception_handlers={
                Refusal: lambda request, error: as_json({"error": error.sentence}, error.status),
                ValueError: lambda request, error: as_json({"error": str(error)}, 400),
                NoPictureError: lambda request, error: as_json({"error": str(error)}, 404),
                WorkerGoneError: lambda request, error: as_json({"error": str(error)}, 503),
                NotSavedError: lambda request, error: as_json({"error": str(error)}, 507),
                404: lambda request, error: as_json({"error": "there is nothing here."}, 404),
                500: lambda request, error: as_json({"error": f"a mistake of the studio: {error}"}, 500),
            },
        )

    # --- pages

    async def index(self, request: Request) -> Response:
        return self._file("index.html")

    async def static(self, request: Request) -> Response:
        return self._file(request.path_params["path"])

    def _file(self, name: str) -> Response:
        path = self._static.get(name)  # a list made at the start, so that no name leads anywhere else
        if path is None:
            raise Refusal(404, "there is nothing here.")
        return Response(path.read_bytes(), media_type=MEDIA_TYPES[path.suffix])

    # --- what there is

    def state(self, request: Request) -> Response:
        return as_json(self._space.state())

    def map(self, request: Request) -> Response:
        kind = request.query_params.get("kind", "pca")
        if kind not in ("pca", "umap"):
            raise ValueError("kind must be pca or umap.")
        try:
            points = self._space.map(kind)
        except ValueError as error:  # not an error status, which browsers write to their console
            return as_json({"state": "failed", "error": str(error)}, 202)
        return as_json({"state": "computing"}, 202) if points is None else as_bytes(points)

    def labels(self, request: Request) -> Response:
        revision, shown = self._space.shown()
        return as_bytes(shown.class_bytes(len(self._space.session.classes)), revision)

    def column(self, name: str, request: Request) -> Response:
        revision, shown = self._space.shown()
        return as_bytes(getattr(shown, name).tobytes(), revision)

    def changed(self, request: Request) -> Response:
        result = self._space.result
        return as_bytes(b"" if result is None else result.changed.astype("<u4").tobytes())

    def novelty(self, request: Request) -> Response:
        novelty = self._space.novelty
        return as_bytes(b"" if novelty is None else novelty.tobytes())

    def cells(self, request: Request) -> Response:
        words = request.query_params.get("ids", "").split(",")
        if len(words) > MAX_CELLS:
            raise ValueError(f"at most {MAX_CELLS} ids at once.")
        rows = [row_of(_whole(word), self._space.cells.n_rows) for word in words if word]
        cells = self._space.cells
        return as_json(
            {"rows": [{"id": row, "cells": cells.of_row(row, SHORT), "image": cells.pictures.has(row)} for row in rows]}
        )

    async def row(self, request: Request) -> Response:
        row = row_of(request.path_params["row"], self._space.cells.n_rows)
        found = await run_in_threadpool(self._space.row, row)
        waits = request.query_params.get("wait") == "1"
        if not found["explained"] and (waits or not found["evidence"]):
            answered = asyncio.Event()
            loop = asyncio.get_running_loop()
            answer = self._space.explain(row)
            answer.add_done_callback(lambda future: loop.call_soon_threadsafe(answered.set))
            with suppress(TimeoutError):  # the page asks again
                await asyncio.wait_for(answered.wait(), PATIENT if waits else QUICK)
                found = await run_in_threadpool(self._space.row, row)
        return as_json(found)

    def picture(self, side: int, request: Request) -> Response:
        """The picture of a row; the page adds a query that is new at each start, so that no other table's is shown."""
        row = row_of(request.path_params["row"], self._space.cells.n_rows)
        data, kind = self._space.cells.pictures.of_row(row, side)
        return Response(data, media_type=kind, headers={"Cache-Control": KEPT_BY_BROWSER})

    def queue(self, request: Request) -> Response:
        query = request.query_params
        order, n = query.get("order", "suggest"), query_number(query.get("n", "20"), 1, MAX_CELLS)
        if order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}.")
        number = (
            query_number(query.get("class", "0"), 0, len(self._space.session.classes) - 1) if order == "class" else None
        )
        rows, total = self._space.queue(order, n, number)
        return as_json(
            {
                "order": order,
                "rows": [
                    {"id": row, "reason": reason, "image": self._space.cells.pictures.has(row)} for row, reason in rows
                ],
                "total": total,
            }
        )

    def search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        found: Any = self._space.cells.search(text) if text else []
        return as_json({"ids": [int(row) for row in found[:MAX_FOUND]], "total": len(found)})

    def log(self, request: Request) -> Response:
        n = query_number(request.query_params.get("n", "50"), 1, 1000)
        return as_json({"events": [_as_dict(one) for one in self._space.session.log(n)]})

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._hub.events(self._space.state), media_type="text/event-stream")

    # --- what a person does

    async def label(self, request: Request) -> Response:
        body = await body_of(request)
        rows = await run_in_threadpool(rows_of, body, self._space.cells.n_rows)
        number, kind, reason = class_of(body), body.get("kind", "label"), body.get("reason", "")
        if not isinstance(kind, str) or not isinstance(reason, str):
            raise ValueError("kind and reason must be text.")
        return await self._once(request, lambda name: self._space.label(rows, number, kind, reason, name))

    async def step(self, change: Callable[[str], dict[str, Any]], request: Request) -> Response:
        await body_of(request)
        return await self._once(request, change)

    async def skip(self, request: Request) -> Response:
        row = row_of((await body_of(request)).get("row"), self._space.cells.n_rows)
        return await self._once(request, lambda name: self._space.skip(row, name))

    async def _once(self, request: Request, change: Callable[[str], dict[str, Any]]) -> Response:
        """Make a change once, however often the page sends it; only then is it answered."""
        name = request.headers.get("x-otprop-request", "")
        if name and not re.fullmatch(r"[0-9a-f]{32}", name):
            raise ValueError("X-Otprop-Request must be 32 hexadecimal digits.")

        def make() -> dict[str, Any]:
            with self._space.lock:  # two of one name must not pass each other
                return self._space.repeated(name) or change(name)

        return as_json(await run_in_threadpool(make))

    async def classes(self, request: Request) -> Response:
        name = check_class_name((await body_of(request)).get("name"), self._space.source.request.unlabeled)
        return as_json(await run_in_threadpool(self._space.add_class, name))

    async def rename(self, request: Request) -> Response:
        body = await body_of(request)
        number, new = class_of(body), check_class_name(body.get("name"), self._space.source.request.unlabeled)
        return await self._once(request, lambda name: self._space.rename_class(number, new, name))

    async def goal(self, request: Request) -> Response:
        error = share_of((await body_of(request)).get("error"))
        await run_in_threadpool(self._space.set_goal, error)
        return as_json({})

    async def export(self, request: Request) -> Response:
        what = (await body_of(request)).get("format")
        written: Future[Any] = await run_in_threadpool(self._space.export, what if isinstance(what, str) else "")
        name = await asyncio.wrap_future(written)
        path = self._space.exported(name)
        if path is None:
            raise Refusal(500, "the file was not written.")
        return as_json({"name": name, "bytes": path.stat().st_size, "url": f"/api/export/{quote(name)}"})

    def download(self, request: Request) -> Response:
        path = self._space.exported(request.path_params["name"])
        if path is None:
            raise Refusal(404, "there is nothing here.")
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)


def _as_dict(event: Event) -> dict[str, Any]:
    """An event as the page lists it: how many rows, and what became of the first."""
    row, old, new = (int(part[0]) if len(part) else None for part in (event.rows, event.old, event.new))
    return {
        **{"revision": event.revision, "rows": len(event.rows), "row": row, "old": old, "new": new},
        "kind": event.kind,
        "time": event.time,
        "name": None if event.renamed is None else event.renamed[2],
    }


def _as_pattern(parameter: re.Match[str]) -> str:
    """The expression for a parameter in the path of a route, such as {row:int}."""
    return {"int": r"[0-9]{1,12}", "str": r"[^/]+", "path": r"[\w./-]+"}[parameter[2]]


def _whole(word: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", word):
        raise ValueError("ids must be whole numbers with commas between them.")
    return int(word)


def make_app(workspace: Workspace, hub: Hub, port: int) -> Guard:
    """The whole application; its `token` goes into the address."""
    application = Application(workspace, hub)
    workspace.notify = hub.notify
    return Guard(application.make(), port, application.allowed)
