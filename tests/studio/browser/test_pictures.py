"""Pictures in the studio in a real browser: beside the row, on the map, and many at once, labelled by keys alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("PIL", reason="reading pictures needs Pillow")

from tests.studio.browser.conftest import current_row, fetched, saved, wait_for, wait_until
from tests.studio.browser.running import RunningStudio
from tests.table.pictures import GREEN, RED, picture

OpenPage = Callable[..., Any]
N = 40
HERE, PROPAGATED = 2, 3
LOADED = "i => [...document.querySelectorAll(i)].every(one => one.complete && one.naturalWidth > 0)"
TILES = "[...document.querySelectorAll('.tile')].map(tile => Number(tile.dataset.row))"
SELECTED = "[...document.querySelectorAll('.tile[aria-selected=true]')].map(tile => Number(tile.dataset.row))"
EVIL = "<img src=x onerror=alert(1)>.png"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Red and green pictures with two voters."""
    folder = tmp_path_factory.mktemp("pictures")
    names = [f"{number:02d}.png" if number != 20 else EVIL for number in range(N)]
    for number, name in enumerate(names):
        picture(RED if number % 2 else GREEN, number).save(folder / name)
    kinds = [("green", "red")[number % 2] for number in range(N)]
    table = {"photo": names, "llm": kinds, "anna": [*kinds[:30], *[""] * 10]}
    given = [kind if number < 10 else "" for number, kind in enumerate(kinds)]
    pd.DataFrame({**table, "colour": given}).to_csv(folder / "photos.csv", index=False)
    made = RunningStudio(folder / "photos.csv", "colour", more=["--votes", "llm", "anna"], quick=True)
    yield made
    made.stop()


def open_pictures(page: Any) -> list[int]:
    page.keyboard.press("Shift+P")
    page.wait_for_selector(".tile")
    wait_until(page, LOADED, ".tile:nth-child(-n+5) img")
    rows: list[int] = page.evaluate(TILES)
    return rows


def test_a_row_its_nearest_rows_and_those_to_come_have_pictures(open_page: OpenPage) -> None:
    page = open_page()
    wait_until(page, LOADED, "#row .picture")
    page.wait_for_selector(".near img")
    wait_until(page, LOADED, ".near img")
    page.click("#upcoming-title")
    wait_until(page, "document.querySelectorAll('#upcoming img').length > 3")
    assert "values" not in page.inner_text("#row")


def test_hovering_shows_the_picture(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector("#map[data-drawn]")
    box = page.locator("#map").bounding_box()
    for step in range(1, 60):
        share = step / 60
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * (0.5 + 0.45 * ((step % 7) - 3) / 3))
        if page.is_visible("#hover"):
            break
    if not page.is_visible("#hover"):
        pytest.skip("no row lay under the pointer's way")
    page.wait_for_selector("#hover img")
    wait_until(page, LOADED, "#hover img")


def test_many_pictures_are_labelled_and_taken_back_by_keys_alone(open_page: OpenPage) -> None:
    page = open_page()
    rows = open_pictures(page)
    assert len(rows) == N - 10
    assert page.evaluate("document.activeElement.id") == "grid"
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate(SELECTED) == rows[:3]
    page.keyboard.press("Space")  # the third again
    assert page.evaluate(SELECTED) == rows[:2]
    assert "2 rows selected" in page.inner_text("#decide")
    page.keyboard.press("1")
    saved(page)
    wait_for(page, lambda: [fetched(page, f"/api/row/{row}")["source"] for row in rows[:2]] == [HERE, HERE])
    assert not set(rows[:2]) & set(page.evaluate(TILES))
    page.keyboard.press("u")
    wait_for(page, lambda: all(fetched(page, f"/api/row/{row}")["source"] != HERE for row in rows[:2]))


def test_the_pictures_of_a_class_are_accepted_at_once(open_page: OpenPage) -> None:
    page = open_page()
    open_pictures(page)
    page.click("#class-list [data-class='1']")
    wait_until(page, "document.querySelector('#grid-title').textContent.includes('labelled red')")
    found = page.evaluate(TILES)
    assert all(fetched(page, f"/api/row/{row}")["label"] == 1 for row in found[:3])
    page.focus("#grid")
    page.keyboard.press("Shift+A")
    assert page.evaluate(SELECTED) == found
    page.keyboard.press("Enter")
    saved(page)
    wait_for(page, lambda: all(fetched(page, f"/api/row/{row}")["source"] == HERE for row in found))
    page.keyboard.press("u")
    wait_for(page, lambda: all(fetched(page, f"/api/row/{row}")["source"] != HERE for row in found))


def test_a_selection_on_the_map_is_shown_as_pictures(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Shift+M")
    page.keyboard.press("Shift+A")
    wait_until(page, "document.querySelector('#decide').dataset.mode === 'region'")
    rows = open_pictures(page)
    assert len(rows) == N
    assert page.evaluate(SELECTED) == rows
    page.keyboard.press("Escape")
    assert page.evaluate(SELECTED) == []
    page.keyboard.press("End")
    page.keyboard.press("Shift+Enter")  # one of them in large
    wait_for(page, lambda: current_row(page) == rows[-1])
    page.keyboard.press("Shift+M")
    assert page.is_visible("#map")


def test_of_a_selection_only_the_rows_labelled_meanwhile_leave(open_page: OpenPage) -> None:
    page, other = open_page(), open_page()
    page.keyboard.press("Shift+A")
    wait_until(page, "document.querySelector('#decide').dataset.mode === 'region'")
    rows = open_pictures(page)
    assert len(rows) == N
    labelled = current_row(other)
    other.keyboard.press("1")
    saved(other)
    wait_for(page, lambda: page.evaluate(TILES) == [row for row in rows if row != labelled])
    other.keyboard.press("u")
    wait_for(other, lambda: fetched(other, f"/api/row/{labelled}")["source"] != HERE)


def test_names_with_markup_are_text_and_votes_are_counted(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    page.keyboard.press("Enter")
    wait_for(page, lambda: current_row(page) == 20)
    page.wait_for_selector("#row .picture")
    assert EVIL in page.inner_text("#row")
    wait_until(page, "document.querySelector('.votes')?.textContent === '2 of 2 say green.'")
    assert page.evaluate("document.querySelectorAll('#row dd img, #row bdi img').length") == 0


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
def test_the_pictures_fit_into_the_window(open_page: OpenPage, width: int, scheme: str) -> None:
    page = open_page(width=width, scheme=scheme)
    open_pictures(page)
    page.keyboard.press("Space")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.is_visible("#grid-classes") == (width < 980)  # elsewhere the keys are beside the row
    if width < 980:
        page.click("#grid-classes button >> nth=0")
        saved(page)
        wait_until(page, "document.querySelector('#undo').disabled === false")
        page.click("#undo")
        wait_until(page, "document.querySelector('#redo').disabled === false")


def test_colouring_by_novelty_has_its_legend(open_page: OpenPage) -> None:
    page = open_page()
    for _ in range(3):
        page.keyboard.press("Shift+C")
    assert page.get_attribute("#map", "data-coloring") == "novelty"
    assert page.is_visible("[data-legend=novelty]")
    page.keyboard.press("Shift+N")
    wait_until(page, "document.querySelector('#order').value === 'novel'")
    page.keyboard.press("Shift+S")
    wait_until(page, "document.querySelector('#order').value === 'suggest'")
