"""The server is killed under an open page: it is said, nothing is lost, and the page goes on."""

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


def open_in(browser: Any, url: str, watched: Watched) -> Any:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SLOW)
    watched.watch(context)
    page = context.new_page()
    page.goto(url)
    ready(page)
    return page


def test_the_page_outlives_a_killed_server(browser: Any, tmp_path: Path) -> None:
    path = write_table(tmp_path / "apples.csv")
    studio = RunningStudio(path, "variety")
    watched = Watched(studio.address)
    page = open_in(browser, studio.url, watched)
    first, _ = press_and_wait(page, "1")
    saved(page)
    watched.server_may_go = True
    studio.kill()
    page.wait_for_selector("#alarm:not([hidden])")
    assert "does not answer" in page.text_content("#alarm")
    second = current_row(page)
    page.keyboard.press("2")
    page.wait_for_selector("#saved[data-state=unsaved]")
    assert "kept in this browser" in page.text_content("#alarm")

    studio = RunningStudio(path, "variety", studio.port)
    try:
        saved(page)
        page.wait_for_selector("#alarm", state="hidden")
        assert source_of(page, first) == (HERE, 0)
        assert source_of(page, second) == (HERE, 1)
        third, _ = press_and_wait(page, "3")  # it goes on
        saved(page)
        assert source_of(page, third) == (HERE, 2)
    finally:
        page.context.close()
        studio.stop()
    assert watched.said == []
    assert watched.foreign == []


def test_a_label_that_was_not_saved_is_sent_by_the_next_page(browser: Any, tmp_path: Path) -> None:
    path = write_table(tmp_path / "apples.csv")
    studio = RunningStudio(path, "variety")
    watched = Watched(studio.address)
    page = open_in(browser, studio.url, watched)
    watched.server_may_go = True
    studio.kill()
    page.wait_for_selector("#alarm:not([hidden])")
    row = current_row(page)
    page.keyboard.press("3")
    page.wait_for_selector("#saved[data-state=unsaved]")
    page.close()

    studio = RunningStudio(path, "variety", studio.port)
    try:
        page = page.context.new_page()
        page.goto(studio.url)
        ready(page)
        saved(page)
        wait_until(
            page, "row => fetch(`/api/row/${row}`).then(answer => answer.json()).then(found => found.source === 2)", row
        )
        assert source_of(page, row) == (HERE, 2)
    finally:
        page.context.close()
        studio.stop()
    assert watched.said == []
