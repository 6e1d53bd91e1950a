"""The server is killed under an open page: it is said, nothing is lost, and the page goes on with the new address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.studio.browser.conftest import (
    SLOW,
    Watched,
    current_row,
    press_and_wait,
    ready,
    saved,
    source_of,
    wait_until,
    write_table,
)
from tests.studio.browser.running import RunningStudio

HERE = 2
LABELLED = "row => fetch(`/api/row/${row}`).then(answer => answer.json()).then(found => found.source === 2)"


def open_in(browser: Any, url: str, watched: Watched) -> Any:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SLOW)
    watched.watch(context)
    page = context.new_page()
    page.goto(url)
    ready(page)
    return page


def test_labels_outlive_a_killed_server_and_a_closed_page(browser: Any, tmp_path: Path) -> None:
    path = write_table(tmp_path / "apples.csv")
    studio = RunningStudio(path, "variety")
    watched = Watched(studio.address)
    page = open_in(browser, studio.url, watched)
    first, _ = press_and_wait(page, "1")
    saved(page)
    closed = page.context.new_page()
    closed.goto(studio.address)
    ready(closed)
    while current_row(closed) == current_row(page):  # another row than on the first page
        press_and_wait(closed, "ArrowRight")
    for one in (page, closed):
        one.wait_for_selector("#row[data-ready=true]")
    watched.server_may_go = True
    studio.kill()

    for one in (page, closed):
        one.wait_for_selector("#alarm:not([hidden])")
        assert "does not answer" in one.text_content("#alarm")
    second, third = current_row(page), current_row(closed)
    assert second != third
    page.keyboard.press("2")
    closed.keyboard.press("3")
    for one in (page, closed):
        one.wait_for_selector("#saved[data-state=unsaved]")
        assert "kept in this browser" in one.text_content("#alarm")
    closed.close()

    studio = RunningStudio(path, "variety", studio.port)
    try:
        wait_until(page, "() => document.querySelector('#alarm').textContent.includes('restarted')")
        other = page.context.new_page()  # the new address lets the browser in, and takes over what was not sent
        other.goto(studio.url)
        page.wait_for_selector("#alarm", state="hidden")
        saved(page)
        assert source_of(page, first) == (HERE, 0)
        assert source_of(page, second) == (HERE, 1)
        wait_until(other, LABELLED, third)
        assert source_of(other, third) == (HERE, 2)
        fourth, _ = press_and_wait(page, "3")  # the first page goes on
        saved(page)
        assert source_of(page, fourth) == (HERE, 2)
    finally:
        page.context.close()
        studio.stop()
    assert [text for text in watched.said if "401" not in text] == []  # of the page before it is let in again
    assert watched.foreign == []
