"""The page of the studio in a real browser, used with pointer and keys."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.studio.browser.conftest import (
    current_row,
    fetched,
    press_and_wait,
    ready,
    saved,
    source_of,
    wait_for,
    wait_until,
)

OpenPage = Callable[..., Any]
GIVEN, HERE, PROPAGATED, PILE = 1, 2, 3, 4


def lasso(page: Any, x: float, y: float, radius: float) -> None:
    """Draw around a place on the map, given as shares of its width and height."""
    box = page.locator("#map").bounding_box()
    middle, down = box["x"] + x * box["width"], box["y"] + y * box["height"]
    steps = [(math.cos(turn / 12 * math.pi), math.sin(turn / 12 * math.pi)) for turn in range(24)]
    page.mouse.move(middle + radius, down)
    page.keyboard.down("Shift")
    page.mouse.down()
    for across, along in steps:
        page.mouse.move(middle + radius * across, down + radius * along)
    page.mouse.up()
    page.keyboard.up("Shift")


def map_picture(page: Any) -> bytes:
    """The map as it is drawn now."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture: bytes = page.locator(".frame").screenshot()
    return picture


def test_the_map_is_drawn_with_webgl_and_all_rows_can_be_reached(open_page: OpenPage) -> None:
    page = open_page()
    assert page.get_attribute("#map", "data-renderer") == "webgl2"
    page.wait_for_selector("#map[data-drawn]")
    page.click("#select-window")
    assert page.text_content(".region-title b") == "150 rows selected."
    page.keyboard.press("Escape")
    assert page.is_hidden(".region-title")


def test_rows_of_a_map_that_is_not_there_yet_cannot_be_selected(open_page: OpenPage) -> None:
    page = open_page()
    page.route("**/api/map*", lambda route: route.fulfill(status=202, json={"state": "computing"}))
    page.reload()
    ready(page)
    page.keyboard.press("Shift+A")
    assert page.text_content("#said") == "The map is not ready yet."
    page.unroute("**/api/map*")
    page.wait_for_selector("#map[data-layout=pca]")
    page.keyboard.press("Shift+A")
    assert page.text_content("#said") == "150 rows selected."


def test_without_webgl_the_map_is_drawn_on_a_plain_canvas(open_page: OpenPage) -> None:
    page = open_page(fragment="canvas")
    assert page.get_attribute("#map", "data-renderer") == "canvas"
    by_label = map_picture(page)
    page.keyboard.press("Shift+C")
    assert map_picture(page) != by_label


def test_keys_label_accept_skip_and_undo(open_page: OpenPage) -> None:
    page = open_page()
    row, _ = press_and_wait(page, "2")
    saved(page)
    assert source_of(page, row) == (HERE, 1)
    page.wait_for_selector("#accept")
    proposed = page.text_content("#accept b")
    accepted, _ = press_and_wait(page, "Enter")
    saved(page)
    source, label = source_of(page, accepted)
    assert source == HERE
    assert fetched(page, "/api/state")["classes"][label]["name"] == proposed
    skipped, _ = press_and_wait(page, "s")
    saved(page)
    assert source_of(page, skipped)[0] not in (GIVEN, HERE)
    pile, _ = press_and_wait(page, "0")
    saved(page)
    assert source_of(page, pile)[0] == PILE
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{pile}']")
    assert source_of(page, pile)[0] != PILE


def test_a_label_is_saved_before_the_page_says_so(open_page: OpenPage) -> None:
    page = open_page()
    held: list[Any] = []
    page.route("**/api/label", lambda route: held.append(route))
    press_and_wait(page, "1")  # the next row does not wait for the answer
    assert page.text_content("#saved") == "Saving …"
    wait_until(page, "document.querySelector('#said').textContent.endsWith('is Elstar.')")
    assert page.text_content("#saved") == "Saving …"
    held[0].continue_()
    saved(page)
    page.unroute("**/api/label")


def test_a_label_is_sent_with_the_reason_on_the_screen(open_page: OpenPage) -> None:
    page = open_page()
    shown = page.text_content("#row-reason .tag")
    with page.expect_request("**/api/label") as sent:
        row, _ = press_and_wait(page, "1")
    assert sent.value.post_data_json["reason"] == shown
    saved(page)
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")
    tags = page.locator("#row-reason .tag").all_text_contents()
    assert tags == (["random", "undone"] if shown == "random" else ["undone"])  # it is as random as before


def test_a_lasso_and_a_key_label_many_rows_and_one_undo_takes_them_back(open_page: OpenPage) -> None:
    page = open_page()
    before = fetched(page, "/api/state")["labels"]
    lasso(page, 0.5, 0.5, 220)
    page.wait_for_selector(".region-title")
    picture = map_picture(page)
    page.keyboard.press("1")
    page.wait_for_selector("[data-notice=region]")
    assert "expected to be wrong" in page.text_content("[data-notice=region] p")
    saved(page)
    assert fetched(page, "/api/state")["labels"] > before + 5
    assert map_picture(page) != picture
    page.click("[data-notice=region] button:has-text('Undo')")
    wait_until(page, "document.querySelector('#said').textContent.startsWith('Undone')")
    assert fetched(page, "/api/state")["labels"] == before


DEAF = """{
  const listen = EventSource.prototype.addEventListener;
  EventSource.prototype.addEventListener = function (name, act) {
    return listen.call(this, name, (event) => window.deaf || act(event));
  };
}"""


def test_what_was_done_to_a_region_is_said_and_its_undo_brings_the_rows_back_at_once(open_page: OpenPage) -> None:
    page = open_page()
    page.add_init_script(DEAF)
    page.reload()
    ready(page)
    free = int(page.evaluate("fetch('/api/queue?order=unsure').then(answer => answer.json())")["total"])
    page.keyboard.press("Shift+A")
    page.keyboard.press("0")
    page.wait_for_selector(f"[data-notice=region]:has-text('{free} rows are on the unknown pile.')")
    page.wait_for_selector("#row-body .empty:has-text('No rows left in this queue.')")
    saved(page)
    page.evaluate("window.deaf = true")  # the next result would bring rows, too
    page.keyboard.press("u")
    page.wait_for_selector("#row-body .cells")
    page.evaluate("window.deaf = false")
    labels = fetched(page, "/api/state")["labels"]
    page.keyboard.press("Shift+A")
    page.keyboard.press("x")
    page.wait_for_selector(f"[data-notice=region]:has-text('{labels} labels removed.')")
    page.wait_for_selector("#row-body .cells")
    page.keyboard.press("u")
    wait_until(page, "document.querySelector('#said').textContent.startsWith('Undone')")
    assert fetched(page, "/api/state")["labels"] == labels


def test_a_key_for_a_row_that_is_still_being_read_is_said_to_be_unused(open_page: OpenPage) -> None:
    page = open_page()
    before = fetched(page, "/api/state")["revision"]
    held: list[Any] = []
    page.route("**/api/row/*", lambda route: held.append(route))
    for _ in range(40):
        if page.get_attribute("#row", "data-ready") == "false":
            break
        press_and_wait(page, "ArrowRight")
    for key in ("1", "Enter"):
        page.evaluate("document.querySelector('#said').textContent = ''")
        page.keyboard.press(key)
        row = current_row(page)
        assert page.text_content("#said") == f"Row {row + 1} is still loading: the key was ignored."
    page.unroute("**/api/row/*")  # which lets those go on that are held
    page.wait_for_selector("#row[data-ready=true]")
    assert (current_row(page), fetched(page, "/api/state")["revision"]) == (row, before)


FIRST_CLASS = """async () => {
  const { Orders } = await import("/static/js/orders.js");
  const asked = [], listeners = {};
  const store = { classes: [{ id: 1, name: "b" }, { id: 2, name: "c" }],
    state: { issues: 0, unknown: 0, novel: { rows: 0, share: null } },
    on: (topic, listener) => { listeners[topic] = listener; } };
  const queue = { order: "suggest", lasso: [], setOrder: async (...order) => asked.push(order) };
  const orders = new Orders(store, queue, {}, { entries: [] }, () => {});
  listeners.classes();
  orders.chosen("class");
  store.classes = store.classes.slice(1);
  listeners.classes();
  orders.chosen("class");
  return asked.map((one) => one.slice(0, 2));
}"""


def test_rows_of_a_class_begin_with_the_first_in_the_list_whose_legend_says_which_share_a_marker(
    open_page: OpenPage,
) -> None:
    page = open_page()
    assert page.evaluate(FIRST_CLASS) == [["class", "1"], ["class", "2"]]
    show = """n => import("/static/js/classes.js").then(({ ClassList }) => {
      const counts = { key: null, given: 1, here: 0, propagated: 0 };
      const classes = Array.from({ length: n }, (_, id) => ({ id, name: `kind ${id}`, ...counts }));
      new ClassList({ on() {}, classes, isolated: null, state: { classes, unknown: 0 } }).render();
    })"""
    for n, shared in ((36, False), (37, True)):
        page.evaluate(show, n)
        assert page.is_visible("#many-classes") == shared


def test_colouring_and_a_click_on_a_class_change_what_the_map_shows(open_page: OpenPage) -> None:
    page = open_page()
    whole = map_picture(page)
    page.click("#class-list [data-class='1']")
    assert "only Gala" in page.text_content("#filter")
    assert map_picture(page) != whole
    page.click("#class-list [data-class='1']")  # another click shows all
    assert page.is_hidden("#filter")
    pictures = [map_picture(page)]
    for name in ("confidence", "source"):
        page.check(f"[name=coloring][value={name}]", force=True)
        assert page.is_visible(f"[data-legend={name}]")
        pictures.append(map_picture(page))
    assert len(set(pictures)) == 3


def test_the_rounds_play_like_a_film(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector("#play:enabled")
    last = page.get_attribute("#round", "max")
    page.keyboard.press("Shift+F")
    wait_until(page, "document.querySelector('#play').textContent === 'Pause'")
    assert "Given labels" in page.text_content("#round-text")
    wait_until(page, "last => document.querySelector('#round').value === last", last)
    wait_until(page, "document.querySelector('#play').textContent === 'Play rounds'")


def test_markup_in_cells_column_and_class_names_is_shown_as_text(open_page: OpenPage) -> None:
    page = open_page()
    assert "<img src=x onerror=alert(1)>" in page.text_content("#row-body")
    assert page.text_content("#row-body dt >> nth=2") == "<i>diameter</i>"
    assert page.locator("#row-body img, #row-body dt i").count() == 0
    name = "<script>alert(2)</script>"
    page.keyboard.press("n")
    page.fill("#new-class-name", name)
    row = current_row(page)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row:not([data-row='{row}'])")
    saved(page)
    assert page.text_content("#class-list li:last-child bdi") == name
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")
    box = page.locator("#map").bounding_box()
    for across in range(20, int(box["width"]), 15):  # until the pointer is on a row
        page.mouse.move(box["x"] + across, box["y"] + box["height"] * 0.5)
        if page.is_visible("#hover"):
            break
    page.wait_for_selector("#hover dd")
    assert page.locator("#hover img, #hover dt i").count() == 0
    assert "<b>" in page.text_content("#hover")


def test_a_class_made_by_mistake_is_gone_with_its_last_row(open_page: OpenPage) -> None:
    page = open_page()
    row = current_row(page)
    page.keyboard.press("n")
    page.keyboard.type("Braeburn")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row:not([data-row='{row}'])")
    page.wait_for_selector("#class-list bdi:has-text('Braeburn')")
    page.keyboard.press("u")
    page.wait_for_selector("#class-list bdi:has-text('Braeburn')", state="detached")
    page.wait_for_selector("#choices bdi:has-text('Braeburn')", state="detached")
    page.keyboard.press("Shift+U")
    page.wait_for_selector("#class-list bdi:has-text('Braeburn')")
    page.keyboard.press("u")
    page.wait_for_selector("#class-list bdi:has-text('Braeburn')", state="detached")


def test_a_class_made_here_is_renamed_and_undo_brings_its_name_back(open_page: OpenPage) -> None:
    page = open_page()
    row = current_row(page)
    page.keyboard.press("n")
    page.keyboard.type("  ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#new-class[open] #new-class-alike:has-text('Enter a name')")
    page.fill("#new-class-name", "Boskop")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row:not([data-row='{row}'])")
    page.click("[aria-label='Rename Boskop']")
    for name, problem in (("Gala", "There is a class “Gala” already"), ("  ", "Enter a name")):
        page.fill("#rename-class-name", name)
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#rename-class[open] #rename-class-problem:has-text('{problem}')")
    page.fill("#rename-class-name", "Boskoop")
    page.keyboard.press("Enter")
    page.wait_for_selector("#class-list bdi:has-text('Boskoop')")
    page.wait_for_selector("#choices bdi:has-text('Boskoop')")
    saved(page)
    page.keyboard.press("u")
    page.wait_for_selector("#class-list bdi:has-text('Boskop')")
    assert page.locator("#class-list .rename").count() == 1  # those of the file are named there
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")


def test_a_name_like_that_of_a_class_is_asked_about(open_page: OpenPage) -> None:
    page = open_page()
    classes = len(fetched(page, "/api/state")["classes"])
    for typed in ("gALA ", "Elstra", "Idred"):
        row = current_row(page)
        page.keyboard.press("n")
        page.keyboard.type(typed)
        sentence = page.text_content("#new-class-alike")
        assert sentence.startswith("There is already ")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#row:not([data-row='{row}'])")
        saved(page)
        state = fetched(page, "/api/state")
        assert len(state["classes"]) == classes
        assert state["classes"][source_of(page, row)[1]]["name"] in sentence
        page.keyboard.press("u")
        page.wait_for_selector(f"#row[data-row='{row}'][data-ready=true]")


def test_a_search_stands_out_on_the_map_and_becomes_the_queue(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("crate 14")
    wait_until(page, "document.querySelector('#filter-text').textContent.includes('found')")
    assert page.text_content("#filter-text") == "11 rows found"
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#order').value === 'search'")
    wait_until(page, "document.querySelector('#row-body').textContent.includes('crate 14')")


class Held:
    """Requests of a page that wait until they are let go."""

    def __init__(self, page: Any, pattern: str) -> None:
        self.routes: list[Any] = []
        self._holding = True
        page.route(pattern, self._handle)

    def _handle(self, route: Any) -> None:
        if self._holding:
            self.routes.append(route)
        else:
            route.continue_()

    def let_go(self) -> None:
        """Send all that waited."""
        self._holding = False
        for route in self.routes:
            route.continue_()


def test_an_answer_for_the_suggested_rows_that_comes_late_does_not_end_a_search(open_page: OpenPage) -> None:
    page = open_page()
    suggested = Held(page, "**/api/queue?*")
    page.keyboard.press("Shift+S")
    wait_for(page, lambda: bool(suggested.routes))
    page.keyboard.press("/")
    page.keyboard.type("crate 14")
    wait_until(page, "document.querySelector('#filter-text').textContent.includes('found')")
    found = Held(page, "**/api/search?*")
    page.keyboard.press("Enter")
    wait_for(page, lambda: len(found.routes) == 2)  # one for the map, one for the rows to come
    with page.expect_response("**/api/queue?*"):
        suggested.let_go()
    page.wait_for_timeout(200)  # for what the page does with the answer
    found.let_go()
    wait_until(page, "document.querySelector('#row-body').textContent.includes('crate 14')")


@pytest.mark.parametrize("width", [400, 1280])
def test_enter_goes_through_the_rows_of_a_search_and_labels_none(open_page: OpenPage, width: int) -> None:
    page = open_page(width)
    before = fetched(page, "/api/state")["revision"]
    page.keyboard.press("/")
    page.keyboard.type("crate 14")
    wait_until(page, "document.querySelector('#filter-text').textContent.includes('found')")
    page.keyboard.press("Enter")
    page.wait_for_selector("#next-match")
    wait_until(page, "document.querySelector('#row-body').textContent.includes('crate 14')")
    assert page.is_visible("#row-body")
    rows = [current_row(page)]
    for _ in range(11):  # as many as are found, those with a label among them
        row = press_and_wait(page, "Enter")[1]
        if row == rows[0]:  # it begins again
            break
        rows.append(row)
    assert 2 < len(rows) <= 11
    assert rows == sorted(set(rows))
    assert fetched(page, "/api/state")["revision"] == before
    labelled, after = press_and_wait(page, "1")
    saved(page)
    assert (after, source_of(page, labelled)) == (rows[1], (HERE, 0))
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{labelled}']")
    page.keyboard.press("Escape")
    wait_until(page, "document.querySelector('#order').value === 'suggest'")
    page.wait_for_selector("#next-match", state="detached")


def test_doubtful_labels_are_kept_or_changed(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector("#doubts:not([hidden])")
    page.click("#doubts")
    page.wait_for_selector("#row-body .doubt")
    row = current_row(page)
    assert "The other labels suggest " in page.text_content("#row-body .doubt")
    page.wait_for_selector("#row-body .why h3:has-text('What each source says, with the label of the row')")
    suggested = page.text_content("#row-body .doubt b:last-of-type")
    assert suggested in page.text_content("#proposal .main")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#said').textContent.includes('given in the file before')")
    saved(page)
    source, label = source_of(page, row)
    assert (source, fetched(page, "/api/state")["classes"][label]["name"]) == (HERE, suggested)
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")
    assert source_of(page, row)[0] == GIVEN
    page.wait_for_selector("#proposal button:has-text('Keep')")
    page.keyboard.press("k")
    wait_until(page, "document.querySelector('#said').textContent.includes(' stays ')")
    saved(page)
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")


POST = """([path, body]) => fetch(path, {method: "POST", body: JSON.stringify(body),
  headers: {"Content-Type": "application/json", "X-Otprop-Studio": "1"}}).then(answer => answer.json())"""


def test_the_row_on_the_screen_follows_changes_from_elsewhere(open_page: OpenPage) -> None:
    page = open_page()
    page.wait_for_selector("#doubts:not([hidden])")
    page.click("#doubts")
    page.wait_for_selector("#row-body .doubt")
    row = current_row(page)
    page.focus("#choices [data-class='0']")
    page.evaluate(POST, ["/api/label", {"rows": [row], "class": None, "kind": "remove"}])
    page.wait_for_selector("#row-body .doubt", state="detached")
    wait_until(page, "document.querySelector('#row-reason').textContent.includes('propagated')")
    assert page.evaluate("document.activeElement.dataset.class") == "0"
    page.keyboard.press("k")
    wait_until(page, "document.querySelector('#said').textContent.includes('no doubtful label to keep')")
    page.keyboard.press("x")
    assert "no label to remove" in page.text_content("#said")
    assert (current_row(page), source_of(page, row)[0]) == (row, PROPAGATED)
    page.evaluate(POST, ["/api/undo", {}])
    page.wait_for_selector("#row-body .doubt")
    assert (current_row(page), source_of(page, row)[0]) == (row, GIVEN)
    page.keyboard.press("k")
    wait_until(page, "document.querySelector('#said').textContent.includes(' stays ')")
    saved(page)
    assert source_of(page, row)[0] == GIVEN
    page.keyboard.press("u")
    page.wait_for_selector(f"#row[data-row='{row}']")


def test_a_change_that_changes_nothing_leaves_the_map_as_it_is(open_page: OpenPage) -> None:
    page = open_page()
    row = current_row(page)
    page.route(
        "**/api/label", lambda route: route.continue_(post_data={"rows": [row], "class": None, "kind": "remove"})
    )
    press_and_wait(page, "0")
    saved(page)
    page.unroute("**/api/label")
    press_and_wait(page, "ArrowLeft")
    assert current_row(page) == row
    wait_until(page, "document.querySelector('#row-reason').textContent.includes('propagated')")


def test_a_label_that_contradicts_others_is_said_at_once(open_page: OpenPage) -> None:
    page = open_page()
    wait_until(page, "document.querySelector('#propagation').dataset.state === 'done'")
    names = [one["name"] for one in fetched(page, "/api/state")["classes"]]
    unlikely: list[int] = []
    while not unlikely:  # the first rows may have three probable classes
        found = fetched(page, f"/api/row/{current_row(page)}?wait=1")
        likely = {one["class"] for one in found["probabilities"] if one["probability"] > 0.1}
        unlikely = sorted({0, 1, 2} - likely - {found["nearest"][0]["class"]})
        if not unlikely:
            press_and_wait(page, "s")
    number = unlikely[0]
    near, surprising = names[found["nearest"][0]["class"]], names[number]
    row, _ = press_and_wait(page, str(number + 1))
    page.wait_for_selector("[data-notice=contradiction]")
    sentence = page.text_content("[data-notice=contradiction] p")
    given = found["nearest"][0]["source"] == GIVEN
    assert sentence.startswith(f"{surprising} for row {row + 1} contradicts {'the' if given else 'your'} label of row ")
    assert (f"({near}, given in the file)" if given else f"({near})") in sentence
    page.click(f"[data-notice=contradiction] button:has-text('Look at row {row + 1}')")
    page.wait_for_selector(f"#row[data-row='{row}']")
    page.keyboard.press("u")
    wait_until(page, "document.querySelector('#said').textContent.startsWith('Undone')")


def test_a_contradiction_is_not_said_any_more_when_other_rows_have_been_labelled(open_page: OpenPage) -> None:
    page = open_page()
    answer = {"revision": 0, "saved": True, "contradicts": [{"id": 1, "class": 0, "source": HERE}]}
    page.route("**/api/label", lambda route: route.fulfill(json=answer))
    press_and_wait(page, "2")
    page.wait_for_selector("[data-notice=contradiction]")
    assert "contradicts your label of row 2 (Elstar)" in page.text_content("[data-notice=contradiction] p")
    answer["contradicts"] = []
    for _ in range(3):
        assert page.is_visible("[data-notice=contradiction]")
        press_and_wait(page, "2")
        saved(page)
    page.wait_for_selector("[data-notice=contradiction]", state="detached")
    page.unroute("**/api/label")


def test_two_tabs_stay_in_step(open_page: OpenPage) -> None:
    page = open_page()
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    count = int(other.text_content("#labels-value"))
    row, _ = press_and_wait(page, "3")
    for one in (page, other):
        wait_until(one, "n => Number(document.querySelector('#labels-value').textContent) === n", count + 1)
    other.bring_to_front()
    other.keyboard.press("u")
    wait_until(page, "n => Number(document.querySelector('#labels-value').textContent) === n", count)
    assert source_of(page, row)[0] != HERE


def test_a_goal_is_set_and_said_and_so_is_one_that_is_no_percentage(open_page: OpenPage) -> None:
    page = open_page()
    page.fill("#goal", "1,5")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#goal-message').textContent !== ''")
    assert fetched(page, "/api/state")["goal"]["error"] == pytest.approx(0.015)
    page.fill("#goal", "abc")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#goal-message').textContent.includes('not a percentage')")
    page.fill("#goal", "")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#goal-message').textContent === ''")


def test_the_confidence_of_a_row_is_one_number_wherever_it_is_shown(open_page: OpenPage) -> None:
    page = open_page()
    wait_until(page, "document.querySelector('#row-reason').textContent.includes('confidence ')")
    page.wait_for_selector("#accept .share")
    said = page.text_content("#accept .share")
    assert said.startswith("confidence ")
    assert page.text_content("#row-reason").endswith(said)
    assert page.get_attribute("#accept .share", "title").startswith("Confidence")


def test_what_is_not_saved_is_said_once_and_can_be_read(open_page: OpenPage) -> None:
    page = open_page()
    page.evaluate("""() => import("/static/js/status.js").then(({ Status }) =>
      new Status({ on() {}, state: null }).sent("failing", 2, "not saved: the disk is full."))""")
    assert page.text_content("#alarm").startswith("Not saved: the disk is full. 2 changes not saved yet")
    assert page.text_content("#saved") == "2 changes not saved"
    saved_box, undo_box = page.locator("#saved").bounding_box(), page.locator("#undo").bounding_box()
    assert saved_box["x"] + saved_box["width"] <= undo_box["x"]
    assert page.evaluate("(node => node.scrollWidth <= node.clientWidth)(document.querySelector('#saved'))")
    assert page.evaluate("(node => node.scrollWidth <= node.clientWidth)(document.querySelector('#file'))")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_nothing_sticks_out_and_all_parts_can_be_reached(open_page: OpenPage, width: int, scheme: str) -> None:
    page = open_page(width, 860, scheme)
    for part in ("label", "map", "progress"):
        if width < 980:
            page.click(f"[data-show={part}]")
        assert page.is_visible(f"[data-part={part}]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    if width < 980:
        page.click("[data-show=map]")
    page.wait_for_selector("#map[data-drawn]")


def test_from_start_to_end_with_the_keyboard_alone(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page()
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    row, _ = press_and_wait(page, "1")
    page.keyboard.press("Space")
    page.keyboard.type("ida")
    second = current_row(page)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row:not([data-row='{second}'])")
    saved(page)
    assert source_of(page, second) == (HERE, 2)
    page.keyboard.press("Shift+M")
    page.keyboard.press("+")
    page.keyboard.press("Shift+A")
    page.wait_for_selector(".region-title")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+O")
    page.keyboard.press("ArrowDown")
    wait_until(page, "document.querySelector('#order').value === 'unsure'")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+E")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "apples.csv")
    with (tmp_path / "apples.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    assert rows[second]["variety_label"] == "Idared"
    assert rows[second]["variety_source"] not in ("given", "propagated")
    page.keyboard.press("Escape")
    for undone in (second, row):
        page.keyboard.press("u")
        page.wait_for_selector(f"#row[data-row='{undone}']")
