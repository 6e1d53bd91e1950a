"""What another page, another user or a broken program might send to the studio; none of it may be served.

Used by the tests and by `benchmarks/studio_server.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.studio.client import StudioClient

PATHS = ("/api/state", "/api/labels", "/api/map", "/api/row/0", "/api/cells?ids=0", "/api/queue", "/api/events", "/")
CHANGES = (
    "/api/label",
    "/api/undo",
    "/api/redo",
    "/api/skip",
    "/api/classes",
    "/api/rename",
    "/api/goal",
    "/api/export",
)
TRAVERSALS = (
    *("../session.py", "..%2fsession.py", "%2e%2e/session.py", "..%252f", "....//session.py", "/etc/passwd"),
    *("js/../../session.py", "%5c..%5csession.py", "index.html%00", ".", "", "js/", "../../../../../../etc/passwd"),
)
BAD_BODIES = {
    "no JSON": b"{",
    "not an object": b"[1]",
    "a number": b"7",
    "null": b"null",
    "not UTF-8": b'{"rows": ["\xff"]}',
    "deep": b"[" * 15_000,
    "no rows": b'{"class": 0}',
    "empty rows": b'{"rows": [], "class": 0}',
    "rows are text": b'{"rows": "0", "class": 0}',
    "row is text": b'{"rows": ["0"], "class": 0}',
    "row is true": b'{"rows": [true], "class": 0}',
    "row is a fraction": b'{"rows": [0.5], "class": 0}',
    "row is negative": b'{"rows": [-1], "class": 0}',
    "row is too large": b'{"rows": [99999999999999999999], "class": 0}',
    "row is NaN": b'{"rows": [NaN], "class": 0}',
    "class is text": b'{"rows": [0], "class": "0"}',
    "class is unknown": b'{"rows": [0], "class": 60000}',
    "class is negative": b'{"rows": [0], "class": -3}',
    "kind is unknown": b'{"rows": [0], "class": 0, "kind": "drop"}',
    "kind is a list": b'{"rows": [0], "class": 0, "kind": []}',
    "label without class": b'{"rows": [0], "class": null, "kind": "label"}',
    "remove with class": b'{"rows": [0], "class": 0, "kind": "remove"}',
    "prototype": b'{"__proto__": {"rows": [0]}, "class": 0}',
}


@dataclass(frozen=True)
class Attack:
    """A request that must be refused."""

    name: str
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


def attacks(client: StudioClient) -> Iterator[Attack]:
    """All of them, against the server of this client."""
    own = {"Cookie": client.cookie}
    post = {**own, "Origin": f"http://{client.host}", "X-Otprop-Studio": "1", "Content-Type": "application/json"}
    label = json.dumps({"rows": [0], "class": 0, "kind": "label"}).encode()
    yield from _strangers(client, own)
    for host in ("evil.example", "evil.example:80", f"evil.example:{client.port}", "127.0.0.1", "127.0.0.1:1", ""):
        yield Attack(f"Host {host!r}", "GET", "/api/state", {**own, "Host": host})
        yield Attack(f"change with Host {host!r}", "POST", "/api/label", {**post, "Host": host}, label)
        yield Attack(f"token with Host {host!r}", "GET", f"/?token={client.token}", {"Host": host})
    for origin in ("http://evil.example", "null", "https://" + client.host, "http://127.0.0.1:1", "http://localhost"):
        yield Attack(f"Origin {origin!r}", "GET", "/api/state", {**own, "Origin": origin})
        yield Attack(f"change with Origin {origin!r}", "POST", "/api/label", {**post, "Origin": origin}, label)
    for site in ("cross-site", "same-site"):
        yield Attack(f"fetched {site}", "GET", "/api/state", {**own, "Sec-Fetch-Site": site})
    for path in CHANGES:
        plain = {name: value for name, value in post.items() if name != "X-Otprop-Studio"}
        yield Attack(f"{path} without our header", "POST", path, plain, b"{}")
        yield Attack(f"{path} as a form", "POST", path, {**post, "Content-Type": "text/plain"}, b"{}")
        yield Attack(f"GET {path}", "GET", path, own)
        yield Attack(f"{path} too large", "POST", path, {**post, "Content-Length": "99999999999"}, b"{}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND"):
        yield Attack(f"{method}", method, "/api/state", post)
    for name in TRAVERSALS:
        yield Attack(f"static {name}", "GET", f"/static/{name}", own)
        yield Attack(f"export {name}", "GET", f"/api/export/{name}", own)
        yield Attack(f"image {name}", "GET", f"/api/image/{name}", own)
        yield Attack(f"thumbnail {name}", "GET", f"/api/thumbnail/{name}", own)
    for path in (
        "/api/row/-1",
        "/api/row/999999999",
        "/api/row/x",
        "/api/image/0/../1",
        "/api",
        "/admin",
        "/openapi.json",
    ):
        yield Attack(path, "GET", path, own)
    for path in (
        "/api/cells?ids=-1",
        "/api/cells?ids=a",
        "/api/cells?ids=" + ",".join("0" * 300),
        "/api/queue?order=x",
    ):
        yield Attack(path[:40], "GET", path, own)
    yield Attack("a long query", "GET", "/api/search?q=" + "a" * 20_000, own)
    for name, body in BAD_BODIES.items():
        yield Attack(f"label: {name}", "POST", "/api/label", post, body)
    yield Attack("chunks without end", "POST", "/api/goal", {**post, "Transfer-Encoding": "chunked"}, _chunks(40_000))
    for name in ("", "  ", "a\x00b", "a\nb", "x" * 201, "NA", 7, None, ["a"], "\ud800"):
        body = json.dumps({"name": name}).encode()
        yield Attack(f"class named {str(name)[:10]!r}", "POST", "/api/classes", post, body)
    for error in (0, 1, -1, "0.1", True, [0.1]):
        yield Attack(f"goal {error!r}", "POST", "/api/goal", post, json.dumps({"error": error}).encode())
    yield Attack("goal NaN", "POST", "/api/goal", post, b'{"error": NaN}')
    for what in ("xlsx", "../csv", None, 1):
        yield Attack(f"export {what!r}", "POST", "/api/export", post, json.dumps({"format": what}).encode())
    yield Attack("request id", "POST", "/api/undo", {**post, "X-Otprop-Request": "'; DROP TABLE events"}, b"{}")


def _strangers(client: StudioClient, own: dict[str, str]) -> Iterator[Attack]:
    """Without the cookie, or with a wrong one."""
    name, _, value = own["Cookie"].partition("=")
    wrong = {
        "no cookie": {},
        "wrong cookie": {"Cookie": f"{name}={value[::-1]}"},
        "empty cookie": {"Cookie": f"{name}="},
        "cut cookie": {"Cookie": f"{name}={value[:-1]}"},
        "other name": {"Cookie": f"session={value}"},
        "the token as cookie": {"Cookie": f"{name}={client.token}"},
        "not ASCII": {"Cookie": f"{name}=\xe4"},
    }
    for how, headers in wrong.items():
        for path in PATHS:
            yield Attack(f"{path} with {how}", "GET", path, headers)
    for token in ("", "x", client.token[:-1], client.token + "x", client.token.swapcase(), "%00", "\xe4"):
        yield Attack(f"token {token[:5]!r}", "GET", f"/?token={_quoted(token)}")
    yield Attack("token in another place", "GET", f"/api/state?token={client.token}")


def _quoted(token: str) -> str:
    return token if token.isascii() else "%E4"


def _chunks(n_bytes: int) -> bytes:
    return f"{n_bytes:x}\r\n".encode() + b" " * n_bytes + b"\r\n0\r\n\r\n"


def served(client: StudioClient) -> list[str]:
    """The attacks that were not refused: all but an answer from 400 to 499, or the end of the connection."""
    found = []
    for attack in attacks(client):
        try:
            status, headers, _ = client.send(attack.method, attack.path, attack.headers, attack.body)
        except OSError:
            continue
        if not 400 <= status < 500:
            found.append(f"{attack.name}: {status}")
        elif "content-security-policy" not in headers and status not in (400,):  # 400: refused before our code sees it
            found.append(f"{attack.name}: {status} without our headers")
    return found
