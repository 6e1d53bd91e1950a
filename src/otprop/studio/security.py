"""What stands between a request and the studio: limits of connections, who may ask and what, checks of bodies.

Deny unless allowed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import secrets
import unicodedata
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

import h11
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from otprop.files import MISSING_MARKERS

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_CONNECTIONS = 256  # browsers open six to a server
PATIENCE = 20.0  # seconds for a request to arrive whole
MAX_NAME = 200  # characters of the name of a class
OWN_HEADER = "x-otprop-studio"
SMALL_BODY, LARGE_BODY = 16_384, 32_000_000  # bytes; large: the rows of a region
MAX_QUERY = 8_192  # bytes of a query string
HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
            *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
            "require-trusted-types-for 'script'",  # no text becomes markup, whatever the page's script does
            "trusted-types 'none'",
        )
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
    "cache-control": "no-store",
}
KEPT_BY_BROWSER = "private, max-age=300"  # of pictures, the only answers that are kept


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


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the program
    """A request is refused, with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """The outermost part of the application `app`.

    `allowed` returns the largest body that the route of a method and a path takes; None where there is no such route.
    """

    def __init__(self, app: App, port: int, allowed: Callable[[str, str], int | None]) -> None:
        self._app, self._allowed = app, allowed
        self.token = secrets.token_urlsafe(32)
        self._cookie_name = f"otprop_studio_{port}"  # cookies do not tell ports apart
        self._cookie = secrets.token_urlsafe(32)  # of this start alone, and in no file
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and put our headers on every answer."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            most = self._check(scope)
            if scope["path"] == "/" and scope["query_string"]:
                await self._let_in(scope, send)
                return
            await self._app(scope, _limited(receive, most), _with_headers(send))
        except Refusal as refusal:
            await _answer(send, refusal.status, {"error": refusal.sentence})

    def _check(self, scope: Scope) -> int:
        """Refuse what is not allowed; the largest body that the route takes."""
        headers = _headers(scope)
        method, path = scope["method"], scope["path"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refusal(403, "this address is not the studio's: use the one that was printed.")
        origins = headers.get("origin", [])
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            raise Refusal(403, "another page may not ask the studio.")
        if headers.get("sec-fetch-site", ["none"])[0] not in ("none", "same-origin"):
            raise Refusal(403, "another page may not ask the studio.")
        if len(scope["query_string"]) > MAX_QUERY:
            raise Refusal(414, "the address is too long.")
        enters = path == "/" and bool(scope["query_string"])
        if not enters and not self._has_cookie(headers):
            raise Refusal(401, "open the address that was printed in the terminal: it holds the token.")
        most = self._allowed(method, path)
        if most is None:
            raise Refusal(404, "there is nothing here.")
        if method == "POST":
            if headers.get(OWN_HEADER) != ["1"]:
                raise Refusal(403, "a change needs the header X-Otprop-Studio: 1.")
            kinds = headers.get("content-type", [""])
            if kinds[0].partition(";")[0].strip().lower() != "application/json":
                raise Refusal(415, "a change is sent as application/json.")
        lengths = headers.get("content-length", ["0"])
        if len(lengths) != 1 or not lengths[0].isdigit() or int(lengths[0]) > most:
            raise Refusal(413, f"the request is too large: at most {most} bytes.")
        return most

    def _has_cookie(self, headers: dict[str, list[str]]) -> bool:
        """Whether our own cookie is there; those of other servers on this machine come along and may be anything."""
        cookies = (one.partition("=") for line in headers.get("cookie", []) for one in line.split(";"))
        return any(
            hmac.compare_digest(value.strip().encode(), self._cookie.encode())
            for name, _, value in cookies
            if name.strip() == self._cookie_name
        )

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """Swap the token of the address for the cookie."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        if scope["method"] != "GET" or not hmac.compare_digest(given[0].encode(), self.token.encode()):
            raise Refusal(401, "the token is wrong or of an earlier start: open the address that was printed last.")
        cookie = f"{self._cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 303, None, [("location", "/"), ("set-cookie", cookie)])


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
    return found


def _limited(receive: Receive, most: int) -> Receive:
    """Receive a body of a limited size, whatever its headers say."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise Refusal(413, f"the request is too large: at most {most} bytes.")
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name.decode("latin-1") not in HEADERS]
            own = dict(HEADERS)
            if (b"cache-control", KEPT_BY_BROWSER.encode()) in message["headers"]:
                own["cache-control"] = KEPT_BY_BROWSER
            message["headers"] = kept + [(name.encode(), value.encode()) for name, value in own.items()]
        await send(message)

    return sending


async def _answer(send: Send, status: int, body: Any, more: list[tuple[str, str]] | None = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    own = [("content-type", "application/json"), ("content-length", str(len(data))), *(more or []), *HEADERS.items()]
    headers = [(name.encode(), value.encode()) for name, value in own]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    data = await request.body()
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError("the body must be JSON.") from error
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object.")
    return body


def row_of(value: Any, n_rows: int) -> int:
    """A row by its number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < n_rows:
        raise ValueError(f"a row is a number from 0 to {n_rows - 1}.")
    return value


def rows_of(body: dict[str, Any], n_rows: int) -> list[int]:
    """The rows of a body."""
    rows = body.get("rows")
    if not isinstance(rows, list) or not rows:
        raise ValueError("rows must be a list of numbers.")
    return [row_of(row, n_rows) for row in rows]


def class_of(body: dict[str, Any]) -> int | None:
    """The class of a body; None for none."""
    number = body.get("class")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 65535):
        raise ValueError("class must be the id of a class, or null.")
    return number


def share_of(value: Any) -> float | None:
    """An expected error; None for no goal."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 < value < 1:
        raise ValueError("error must be a share between 0 and 1, or null.")
    return float(value)


def query_number(text: str, least: int, most: int) -> int:
    """A whole number of a query, cut to its limits."""
    if not text.isdecimal() or len(text) > 9:
        raise ValueError("a whole number was expected.")
    return max(least, min(int(text), most))


def check_class_name(name: Any, unlabeled: Sequence[str] = ()) -> str:
    """The name of a class without blanks around it."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError("the name of a class must be text.")
    name = name.strip()
    if len(name) > MAX_NAME:
        raise ValueError(f"the name of a class may have {MAX_NAME} characters.")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ValueError("the name of a class may not hold control characters.")
    if name in MISSING_MARKERS or name in unlabeled:
        raise ValueError(f"{name!r} marks rows without a label: choose another name.")
    return name
