"""A real browser without a window, driven over a pipe by the DevTools protocol: no port, no network, no dependency."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BINARY = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "no Chromium binary was found on PATH"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe"),
)
PATIENCE = 180.0  # seconds for one answer


class Browser:
    """A browser with one tab; what goes wrong in it is kept."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50) for end in (theirs_in, theirs_out)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [str(BINARY), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, preexec_fn=place, close_fds=False, stdin=quiet, stdout=quiet, stderr=quiet
        )
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        self._said: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        self._reader.join(10)
        os.close(self._read)

    def _listen(self) -> None:
        rest = b""
        while block := os.read(self._read, 1 << 20):
            *whole, rest = (rest + block).split(b"\0")
            for words in whole:
                self._said.put(json.loads(words))
        self._said.put(None)

    def _next(self, deadline: float) -> dict[str, Any]:
        try:
            message = self._said.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty as error:
            raise RuntimeError("the browser does not answer") from error
        if message is None:
            raise RuntimeError("the browser ended")
        return message

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser, and keep the events that come before its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        words = json.dumps(message).encode() + b"\0"
        while words:
            words = words[os.write(self._write, words) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._keep(answer)

    def _keep(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event.get("method") == "Page.javascriptDialogOpening":  # else the tab would wait for ever
            self._number += 1
            message = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": False}}
            os.write(self._write, json.dumps(message | {"sessionId": self._session}).encode() + b"\0")

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False, touch: bool = False) -> None:
        """Show a file in a window of this size and wait until it is loaded."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.wait(lambda: any(event.get("method") == "Page.loadEventFired" for event in self.events))

    def wait(self, happened: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError("it did not happen in time")
            self.call("Runtime.evaluate", expression="0")
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, once two more frames are drawn."""
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        found = self.call(
            "Runtime.evaluate",
            expression=f"{frames}.then(() => ({expression}))",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def point(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        place = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
            f"return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **where)

    def key(self, name: str) -> None:
        """Press a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=_KEYS[name])

    def press(self, name: str) -> None:
        """Press a key that writes or triggers."""
        code = {" ": "Space"}.get(name, name)
        shared = {"key": name, "code": code, "windowsVirtualKeyCode": ord(name) if len(name) == 1 else _KEYS[name]}
        self.call("Input.dispatchKeyEvent", type="keyDown", text={"Enter": "\r"}.get(name, name), **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def downloads_to(self, folder: Path) -> None:
        """Save downloads in a folder."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def picture(self, out: Path, whole: bool = True) -> None:
        """Save what the page looks like."""
        self.evaluate("0")
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        out.write_bytes(base64.b64decode(found["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}}

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        asked = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in asked]

    @property
    def troubles(self) -> list[str]:
        """Errors on the console, exceptions and dialogs."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            wrong = method in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
            wrong |= method == "Log.entryAdded" and params["entry"]["level"] == "error"
            wrong |= method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert")
            if wrong:
                found.append(f"{method}: {json.dumps(params)[:500]}")
        return found


_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Tab": 9, "Enter": 13}
