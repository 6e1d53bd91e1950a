"""Who may ask the server, and what: deny unless allowed."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the program
    """A request is refused, with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """The outermost part of the application.

    Parameters
    ----------
    app : the application
    port : int
    allowed : callable of (method, path), whether there is such a route, and the largest body it takes; None for none
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
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(data))),
        *(more or []),
        *HEADERS.items(),
    ]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in headers],
        }
    )
    await send({"type": "http.response.body", "body": data})
