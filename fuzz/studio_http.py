"""Requests to the studio, odd and broken ones, alone and many at once: each is answered, and the studio can be used on.

A studio without a worker runs in this process. Requests without the cookie are never served. Those with it are served,
or refused in one sentence, never with a status of 500. (The name `requests` is taken by a package that others import.)
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from harness import Run, check, check_sentence
from otprop.labelling.job import Request
from otprop.studio.run import Studio
from otprop.studio.source import Source
from otprop.table.row_pictures import png

sys.path.append(str(Path(__file__).parents[1]))
from tests.studio.client import StudioClient

N_ROWS = 40
PATHS = (
    *("/", "/api/state", "/api/labels", "/api/confidence", "/api/sources", "/api/rounds", "/api/changed", "/api/map"),
    *("/api/map?kind=umap", "/api/cells?ids=0,1", "/api/row/0", "/api/image/0", "/api/queue", "/api/queue?order=class"),
    *("/api/novelty", "/api/queue?order=novel", "/api/queue?order=novel&n=50", "/api/queue?order=class&class=9"),
    *("/api/thumbnail/0", "/api/thumbnail/1?v=x", "/api/thumbnail/2", "/api/thumbnail/3", "/api/image/4"),
    *("/api/search?q=lot", "/api/log", "/api/export/x", "/static/index.html", "/static/js/main.js", "/?token=x"),
)
CHANGES = {
    "/api/label": {"rows": [0], "class": 0, "kind": "label", "reason": "random"},
    "/api/undo": {},
    "/api/redo": {},
    "/api/skip": {"row": 1},
    "/api/classes": {"name": "plum"},
    "/api/rename": {"class": 2, "name": "prune"},
    "/api/goal": {"error": 0.1},
    "/api/export": {"format": "labels"},
}
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 39, 40, 2**31, 2**63, 10**30, 0.5, 1e308, float("nan"), float("inf"), "", "a", "0", "NA"),
    *("=cmd", "\ud800", "\x00", "x" * 300, [], {}, [[]], [0] * 50, {"a": 1}, "label", "accept", "remove", "unknown"),
    *("keep", "csv", "spreadsheet", "../x"),
)
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "GE T", "")
OTHERS = ('prefs={"theme":"dark"}', "a=b", 'x="', ";;", "=", "otprop_studio_1=x", "a" * 3000)
Rng = np.random.Generator


def write_table(path: Path) -> None:
    photos = ("0.png", "gone.png", "../1.png", "text.png", "")
    rows = [
        f"{place % 2 * 5 + place / 100},lot {place},{photos[place % 5]},{'ab'[place % 2] if place < 6 else ''}"
        for place in range(N_ROWS)
    ]
    path.write_text("\n".join(["size,name,photo,kind", *rows]) + "\n")
    (path.parent / "0.png").write_bytes(png(np.zeros((300, 2))))
    (path.parent / "text.png").write_text("not a picture")


@contextmanager
def running(path: Path) -> Iterator[tuple[Studio, StudioClient]]:
    studio = Studio(Source(str(path), Request("kind", settings={"evidence": None})), Path(f"{path}.otprop"), 0)
    studio.workspace.worker.start = lambda: None  # type: ignore[method-assign]
    started = Event()
    thread = Thread(target=studio.serve, args=(started.set,))
    thread.start()
    try:
        check(started.wait(60), "the server does not start")
        yield studio, StudioClient(studio.url)
    finally:
        studio.stop()
        thread.join(60)


def one_of(values: Any, rng: Rng) -> Any:
    return values[int(rng.integers(len(values)))]


def some_body(path: str, rng: Rng) -> bytes:
    """The body of a change with some of it replaced, or bytes."""
    body: dict[str, Any] = dict(CHANGES.get(path, {}))
    for name in list(body):
        if rng.random() < 0.4:
            body[name] = one_of(JUNK, rng)
    if rng.random() < 0.2:
        body[str(one_of(JUNK, rng))] = one_of(JUNK, rng)
    data = json.dumps(body).encode()
    way = rng.integers(12)
    if way == 0:
        return data[: rng.integers(len(data) + 1)]
    if way == 1:
        return rng.bytes(int(rng.choice([0, 1, 50, 20_000])))
    if way == 2:
        return b"[" * int(rng.choice([10, 15_000]))
    return json.dumps(one_of(JUNK, rng)).encode() if way == 3 else data


def some_path(rng: Rng) -> str:
    path = str(one_of((*PATHS, *CHANGES, *CHANGES), rng))
    way = rng.integers(8)
    if way == 0:
        return path + str(
            one_of(("/..", "%00", "%2e%2e/", "?", "?a=b&&=", "/1", "%ff", "?ids=-1", "?n=x", "?n=99999999"), rng)
        )
    if way == 1:
        return "/api/row/" + str(one_of(("-1", "40", "999999999999", "9999999999999", "x", "1e3", ""), rng))
    return (
        "/api/queue?order=" + str(one_of(("suggest", "unsure", "novel", "class&class=9", "issues", "x"), rng))
        if way == 2
        else path
    )


def some_headers(client: StudioClient, known: bool, rng: Rng) -> dict[str, str]:
    """Headers as the page sends them, some left out or wrong; the cookie only where the sender is known."""
    cookies = [one_of(OTHERS, rng) for _ in range(rng.integers(3))] + ([client.cookie] if known else [])
    headers = {
        "Cookie": "; ".join(cookies[place] for place in rng.permutation(len(cookies))),
        "Origin": f"http://{client.host}",
        "X-Otprop-Studio": "1",
        "Content-Type": "application/json",
    }
    for name in ("Origin", "X-Otprop-Studio", "Content-Type"):
        if rng.random() < 0.1:
            headers[name] = str(one_of(("", "null", "x", "http://evil.example", "text/plain"), rng))
    if rng.random() < 0.1:
        headers["X-Otprop-Request"] = str(one_of(("f" * 32, "x", "'", "F" * 32), rng))
    if rng.random() < 0.05:
        headers["Host"] = str(one_of(("evil.example", "", "127.0.0.1"), rng))
    return headers


def one_request(client: StudioClient, rng: Rng) -> str:
    known = bool(rng.random() < 0.8)
    path, method = (
        some_path(rng),
        "GET" if rng.random() < 0.4 else "POST" if rng.random() < 0.8 else one_of(METHODS, rng),
    )
    body = some_body(path, rng) if method == "POST" else None
    headers = some_headers(client, known, rng)
    try:
        status, answered, data = client.send(method, path, headers, body)
    except (ValueError, http.client.InvalidURL, http.client.BadStatusLine):
        return "not sent"  # by Python's client
    except OSError:
        return "connection ended"
    check(known or status >= 400, f"{method} {path} is served without the cookie")
    no_worker = status == 503 and path == "/api/export"  # a table is exported by the worker, and there is none
    check(status < 500 or no_worker, f"{method} {path} with {body!r:.200}: {status} {data!r:.300}")
    if answered.get("content-type") == "application/json" and method != "HEAD":
        answer = json.loads(data)
        if status >= 400:
            check_sentence(answer["error"])
    return f"answered {status}"


def flood(client: StudioClient, rng: Rng) -> str:
    """Many connections that never finish a request, and one that does."""
    starts = (b"", b"GET / HTTP/1.1\r\n", b"POST /api/goal HTTP/1.1\r\nContent-Length: 5\r\n\r\n{", rng.bytes(20))
    with ExitStack() as stack:
        for _ in range(int(rng.choice([10, 300, 600]))):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=30))
            one.sendall(one_of(starts, rng))
        check(client.get("/api/state")["n_rows"] == N_ROWS, "no answer beside many connections")
    return "flooded"


def run(options: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lots.csv"
        write_table(path)
        before = path.read_bytes()
        with running(path) as (studio, client):

            def example(rng: Rng) -> str:
                outcome = flood(client, rng) if rng.random() < 0.01 else one_request(client, rng)
                if rng.random() < 0.05:
                    check_use(studio, client, rng)
                return outcome

            options.each(example)
        check(path.read_bytes() == before, "the table was changed")


def check_use(studio: Studio, client: StudioClient, rng: Rng) -> None:
    """The studio works as before: the state is asked for, and a label is saved."""
    state = client.get("/api/state")
    row, number = int(rng.integers(N_ROWS)), int(rng.integers(2))
    client.label(row, number)
    check(int(studio.session.state[row]) == number, "a label that was said to be saved is not there")
    check(client.get("/api/state")["revision"] >= state["revision"], "the log went back")
