"""One browser and one studio for the tests of a module, and a page whose console and requests are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.studio.browser.running import CHROMIUM, FLAGS, RunningStudio

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
pytest.importorskip("starlette", reason="the studio needs the extra otprop[studio]")

SLOW = 30_000  # milliseconds that a test waits for an event, on the slowest machine


def write_table(path: Path, n: int = 150, n_given: int = 60, wrong: int = 2) -> Path:
    """Three kinds of apples, apart from each other; some labels are given, a few of them wrong. Cells hold markup."""
    rng = np.random.default_rng(0)
    kinds = np.array(["Elstar", "Gala", "Idared"])
    truth = np.arange(n) % 3
    note = [f"<b>{kinds[code]}</b>, maybe: <img src=x onerror=alert(1)> crate {row}" for row, code in enumerate(truth)]
    label = np.full(n, "", dtype=object)
    given = np.sort(rng.choice(n, n_given, replace=False))
    label[given] = kinds[truth[given]]
    label[given[:wrong]] = kinds[(truth[given[:wrong]] + 1) % 3]
    table = pd.DataFrame(
        {
            "weight": (120 + 40 * truth + rng.normal(0, 3, n)).round(1),
            "sugar": (10 + 3 * (truth == 1) + rng.normal(0, 0.3, n)).round(2),
            "<i>diameter</i>": (60 + 9 * (truth == 2) + rng.normal(0, 1, n)).round(1),
            "note": note,
            "variety": label,
        }
    )
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium binary was found on PATH")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield made
        made.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    made = RunningStudio(write_table(tmp_path_factory.mktemp("studio") / "apples.csv"), "variety", quick=True)
    yield made
    made.stop()


class Watched:
    """What the pages of a test wrote to the console, and what they asked for beyond their own address."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.said: list[str] = []
        self.foreign: list[str] = []
        self.server_may_go = False

    def watch(self, context: Any) -> None:
        """Watch all pages of a context."""
        context.on("console", lambda message: self._keep(message.text))
        context.on("weberror", lambda error: self.said.append(str(error.error)))
        context.on("request", lambda request: self._check(request.url))

    def _keep(self, text: str) -> None:
        if not (self.server_may_go and "net::ERR_" in text):  # the browser itself reports requests without answer
            self.said.append(text)

    def _check(self, url: str) -> None:
        if not url.startswith(self._address):
            self.foreign.append(url)


@pytest.fixture
def open_page(browser: Any, studio: RunningStudio) -> Iterator[Callable[..., Any]]:
    """Open the studio in a new window; afterwards no console message and no foreign request was seen."""
    watched = Watched(studio.address)
    contexts = []

    def open_it(width: int = 1280, height: int = 800, scheme: str = "light", fragment: str = "") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(SLOW)
        watched.watch(context)
        contexts.append(context)
        page = context.new_page()
        page.goto(studio.url)
        if fragment:
            page.goto(f"{studio.address}#{fragment}")
            page.reload()
        ready(page)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert watched.said == []
    assert watched.foreign == []


def wait_until(page: Any, expression: str, argument: object = None) -> None:
    """Wait until an expression is true. (`page.wait_for_function` needs the eval that the page forbids.)"""
    deadline = monotonic() + SLOW / 1000
    while not page.evaluate(expression, argument):
        assert monotonic() < deadline, f"this did not become true: {expression}"
        page.wait_for_timeout(20)


def wait_for(page: Any, holds: Callable[[], bool]) -> None:
    """Wait until something is true here, while the browser goes on."""
    deadline = monotonic() + SLOW / 1000
    while not holds():
        assert monotonic() < deadline, "this did not become true"
        page.wait_for_timeout(20)


def ready(page: Any) -> None:
    """Wait until a row is shown, and labels were propagated once."""
    page.wait_for_selector("body[data-ready=true]")
    page.wait_for_selector("#row[data-ready=true]")
    page.wait_for_selector("#play:enabled", state="attached")


def current_row(page: Any) -> int:
    """The row that is shown, counted from 0."""
    return int(page.get_attribute("#row", "data-row"))


def press_and_wait(page: Any, key: str) -> tuple[int, int]:
    """Press a key and wait until another row is shown; both rows."""
    before = current_row(page)
    page.keyboard.press(key)
    wait_until(page, "row => document.querySelector('#row').dataset.row !== row", str(before))
    return before, current_row(page)


def saved(page: Any) -> None:
    """Wait until the page says that everything is saved."""
    wait_until(page, "document.querySelector('#saved').dataset.state === 'saved'")


def fetched(page: Any, path: str) -> Any:
    """What the server says, with the cookie of the page."""
    return page.evaluate("path => fetch(path).then(answer => answer.json())", path)


def source_of(page: Any, row: int) -> tuple[int, int | None]:
    """Where the label of a row comes from, and its class, as the server has it."""
    found = fetched(page, f"/api/row/{row}")
    return found["source"], found["label"]
