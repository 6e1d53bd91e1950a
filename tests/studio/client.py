"""A client of the studio: what the page does, without a page."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np

TIMEOUT = 120  # seconds; no test waits so long unless something is broken


class StudioClient:
    """Requests with the cookie that the address is swapped for."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.port = int(parts.port or 0)
        self.token = parts.query.removeprefix("token=")
        self.host = f"127.0.0.1:{self.port}"
        status, headers, _ = self.send("GET", f"/?token={self.token}", {})
        assert status == 303, status
        self.set_cookie = headers["set-cookie"]
        self.cookie = self.set_cookie.partition(";")[0]

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """A request as it is, with these headers only beside Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None and "Content-Length" not in headers and "Transfer-Encoding" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            try:
                if body is not None:
                    connection.send(body)
            except OSError:
                pass  # the server may answer and close before it has read all
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str, status: int = 200) -> Any:
        """JSON, or bytes."""
        found, headers, data = self.send("GET", path, {"Cookie": self.cookie})
        assert found == status, (path, found, data[:300])
        return json.loads(data) if headers["content-type"] == "application/json" else data

    def post(self, path: str, body: Any, status: int = 200, **headers: str) -> Any:
        """A change as the page sends it."""
        own = {"Cookie": self.cookie, "Origin": f"http://{self.host}", "X-Otprop-Studio": "1"}
        data = json.dumps(body).encode()
        sent = {**own, "Content-Type": "application/json", **headers}
        found, _, answer = self.send("POST", path, sent, data)
        assert found == status, (path, found, answer[:300])
        return json.loads(answer)

    def label(self, row: int, number: int, **more: Any) -> Any:
        """Label one row by key."""
        return self.post("/api/label", {"rows": [row], "class": number, "kind": "label", **more})

    def array(self, name: str, kind: Any = np.uint8) -> np.ndarray:
        """One of the arrays."""
        return np.frombuffer(self.get(f"/api/{name}"), kind)

    def events(self) -> Iterator[tuple[str, Any]]:
        """The events of the server as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request("GET", "/api/events", headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        name = ""
        try:
            while line := answer.readline().decode().rstrip("\n"):
                while line:
                    if line.startswith("event: "):
                        name = line.removeprefix("event: ")
                    elif line.startswith("data: "):
                        yield name, json.loads(line.removeprefix("data: "))
                    line = answer.readline().decode().rstrip("\n")
        finally:
            connection.close()

    def wait_for(self, wanted: Any) -> dict[str, Any]:
        """The first state that is as wanted; fails where the propagation fails."""
        for name, state in self.events():
            if name == "state" and wanted(state):
                return dict(state)
            if name == "state":
                assert state["propagation"]["state"] != "failed", state["propagation"]["message"]
        raise AssertionError("the stream of events ended")

    def wait_for_result(self, revision: int | None = None) -> dict[str, Any]:
        """The state once the propagation has seen a revision, the newest unless named."""
        wanted = self.get("/api/state")["revision"] if revision is None else revision
        return self.wait_for(
            lambda state: state["propagation"]["state"] == "done" and state["propagation"]["revision"] >= wanted
        )
