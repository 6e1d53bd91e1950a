"""The page of `otprop label` in a real browser: it moves, it shows rows as text, and it asks nobody for anything."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.report.browser import BINARY, MISSING, Browser
from tests.report.outcomes import explained, made_outcome, made_page

pytestmark = pytest.mark.skipif(BINARY is None, reason=MISSING)

EVIL = "<script>alert(1)</script>"
WORSE = '</script><img src=x onerror=alert(2)>"'
ODD_CLASSES = ['say "hello", you', " spaces ", "two\nlines", "e\u0301\u00e9\u6f22", "control\x01"]
PIXELS = "document.querySelector('#canvas').toDataURL()"
STATE = "document.querySelector('#state').textContent"
READOUT = "document.querySelector('#readout').textContent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    outcome, X = made_outcome(500, [EVIL, WORSE, "W" * 150], abstain_below=0.7)
    columns = {"lot": lambda row: f"{row:05d}", "<b>bold</b>": lambda row: WORSE, "long": lambda row: "x" * 3000}
    (made / "few.html").write_text(made_page(outcome, X, columns, notes=[WORSE]), encoding="utf-8")
    outcome, X = made_outcome(900, [f"a class whose name is long, number {number}" for number in range(30)])
    (made / "thirty.html").write_text(made_page(outcome, X), encoding="utf-8")
    outcome, X = made_outcome(700, [*ODD_CLASSES, *(f"kind {number}" for number in range(9))])
    columns = {"lot": lambda row: f"{row:05d}", "remarks": lambda row: f"{row} " + "word " * 100 + "end"}
    page = made_page(explained(outcome), X, columns, file_digest="a1b2")
    (made / "explained.html").write_text(page, encoding="utf-8")
    outcome, X = made_outcome(25_000, ["a", "b", "c"], n_rounds=30)
    (made / "large.html").write_text(made_page(outcome, X), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", ["few", "thirty", "explained", "large"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_opens_and_nothing_sticks_out_of_the_window(
    quiet: Browser, folder: Path, name: str, width: int
) -> None:
    quiet.open(folder / f"{name}.html", width, 900, touch=width < 500)
    assert quiet.evaluate("document.documentElement.scrollWidth") == width
    assert quiet.evaluate("document.querySelector('#live').hidden") is False


def test_the_slider_moves_the_picture(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    end = quiet.evaluate(PIXELS)
    quiet.evaluate("document.querySelector('#slider').focus()")
    seen = {end}
    for step in (3, 2, 1, 0):
        quiet.key("ArrowLeft")
        assert quiet.evaluate(STATE).startswith(
            f"Round {step} of 4: " if step else "Start: 10 rows with a given label."
        )
        seen.add(quiet.evaluate(PIXELS))
    assert len(seen) == 5
    for _ in range(4):
        quiet.key("ArrowRight")
    assert quiet.evaluate(PIXELS) == end


def test_play_goes_through_all_rounds_and_stops_at_the_last(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    quiet.evaluate(
        "new MutationObserver(() => (window.seen = window.seen || []).push(" + STATE + "))"
        ".observe(document.querySelector('#state'), {childList: true}),"
        "window.texts = [], new MutationObserver(() => window.texts.push(document.querySelector('#play').textContent))"
        ".observe(document.querySelector('#play'), {childList: true})"
    )
    before = quiet.evaluate("document.querySelector('#play').textContent")
    quiet.click("#play")
    quiet.wait(lambda: len(quiet.evaluate("window.texts")) > 1)
    assert quiet.evaluate("window.texts") == ["Stop", before]
    seen = quiet.evaluate("window.seen")
    assert seen[0].startswith("Start")
    assert [words.split(":")[0] for words in seen[1:]] == [f"Round {step} of 4" for step in range(1, 5)]


def test_pointing_at_a_mark_shows_its_row(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html", 1400)
    assert "No row chosen" in quiet.evaluate(READOUT)
    quiet.evaluate("document.querySelector('#canvas').scrollIntoView({block: 'center'})")
    box = quiet.evaluate(
        "(b => [b.x, b.y, b.width, b.height])(document.querySelector('#canvas').getBoundingClientRect())"
    )
    for step in range(1, 40):  # across the picture until a mark is met
        quiet.point(box[0] + box[2] * step / 40, box[1] + box[3] * step / 40)
        quiet.point(box[0] + box[2] * step / 40, box[1] + box[3] * (1 - step / 40))
    shown = quiet.evaluate(READOUT)
    number = int(shown.split("Row ")[1].split("label")[0])
    assert f"lot{number - 1:05d}" in shown  # the cells are those of the row
    assert f"<b>bold</b>{WORSE}" in shown


def test_arrow_keys_walk_from_the_least_sure_row(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    quiet.evaluate("document.querySelector('#canvas').focus()")
    quiet.key("ArrowRight")
    first = quiet.evaluate(READOUT)
    quiet.key("ArrowRight")
    assert quiet.evaluate(READOUT) != first
    quiet.key("ArrowLeft")
    assert quiet.evaluate(READOUT) == first
    least = quiet.evaluate("Math.min(...JSON.parse(document.querySelector('#data').textContent).confidence)")
    assert f"confidence{least:.3f}" in first
    quiet.key("Escape")
    assert "No row chosen" in quiet.evaluate(READOUT)


def test_names_and_cells_with_markup_are_text(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    assert quiet.evaluate("document.querySelectorAll('img, #page b, main script').length") == 0
    words = quiet.evaluate("document.querySelector('main').innerText")
    assert EVIL in words
    assert WORSE in words
    assert quiet.evaluate("document.querySelector('button.class bdi').textContent") == EVIL


def test_classes_can_be_switched_off_and_on(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "thirty.html")
    start = quiet.evaluate(PIXELS)
    quiet.click("button[data-class='4']")
    assert quiet.evaluate("document.querySelector(\"[data-class='4']\").ariaPressed") == "false"
    assert quiet.evaluate(PIXELS) != start
    quiet.click("#none")
    empty = quiet.evaluate(PIXELS)
    blank = (
        "(c => { c.width = %s.width; c.height = %s.height; return c.toDataURL(); })(document.createElement('canvas'))"
    )
    assert empty == quiet.evaluate(blank.replace("%s", "document.querySelector('#canvas')"))
    quiet.click("#all")
    assert quiet.evaluate(PIXELS) == start


def test_colour_by_confidence_changes_the_picture_and_shows_its_scale(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    start = quiet.evaluate(PIXELS)
    quiet.click("input[value=confidence]")
    assert quiet.evaluate(PIXELS) != start
    shown = "Array.from(document.querySelectorAll('.scale')).filter(e => !e.hidden).map(e => e.dataset.of)"
    assert quiet.evaluate(shown) == ["confidence"]


def test_zoom_changes_the_picture_and_comes_back(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    start = quiet.evaluate(PIXELS)
    quiet.click("#in")
    assert quiet.evaluate(PIXELS) != start
    quiet.click("#whole")
    assert quiet.evaluate(PIXELS) == start


def test_a_row_to_review_is_found_on_the_map(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "large.html")
    number = quiet.evaluate("document.querySelector('button.find').dataset.row")
    quiet.click("button.find")
    shown = quiet.evaluate(READOUT)
    assert "".join(shown.split("Row ")[1].split("label")[0].split()) == number
    assert quiet.evaluate("document.activeElement.id") == "canvas"


def test_every_control_is_reached_by_the_tab_key(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "few.html")
    reached = set()
    for _ in range(40):
        quiet.key("Tab")
        reached.add(quiet.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"in", "out", "whole", "canvas", "play", "slider", "all", "none", "class", "find"} <= reached


def test_the_page_is_dark_where_the_reader_wants_it(quiet: Browser, folder: Path) -> None:
    look = "getComputedStyle(document.body).backgroundColor"
    quiet.open(folder / "few.html", dark=True)
    dark = quiet.evaluate(look)
    quiet.open(folder / "few.html")
    assert (dark, quiet.evaluate(look)) == ("rgb(20, 23, 27)", "rgb(255, 255, 255)")


def _rows(quiet: Browser) -> list[dict[str, int]]:
    """Number and class of the rows to review."""
    return list(
        quiet.evaluate(
            "Array.from(document.querySelectorAll('tr[data-review]'), "
            "r => ({row: Number(r.dataset.review), code: Number(r.dataset.code)}))"
        )
    )


def _choose(quiet: Browser, number: int, code: int) -> None:
    quiet.evaluate(
        f"(s => {{ s.value = '{code}'; s.dispatchEvent(new Event('change')); }})"
        f"(document.querySelectorAll('select.correct')[{number}])"
    )


def _download(quiet: Browser, folder: Path) -> list[dict[str, str]]:
    """What a click on the button downloads."""
    quiet.downloads_to(folder)
    quiet.click("#download")
    return _downloaded(quiet, folder)


def _downloaded(quiet: Browser, folder: Path) -> list[dict[str, str]]:
    """The corrections, once they are there."""
    path = folder / "corrections.csv"
    quiet.wait(lambda: path.exists() and not list(folder.glob("*.crdownload")))
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_corrections_are_downloaded_as_csv(quiet: Browser, folder: Path, tmp_path: Path) -> None:
    quiet.open(folder / "explained.html")
    assert quiet.evaluate("document.querySelector('#download').disabled") is True
    rows = _rows(quiet)
    classes = [*ODD_CLASSES, *(f"kind {number}" for number in range(9))]
    expected = []
    for number in range(len(ODD_CLASSES)):  # every odd name as a new label, and some as the old one
        new = number if rows[number]["code"] != number else 9
        _choose(quiet, number, new)
        old = classes[rows[number]["code"]]
        expected.append({"row": str(rows[number]["row"]), "label": classes[new], "was": old, "file_digest": "a1b2"})
    quiet.click("tr[data-review]:nth-of-type(13) input.confirm")  # every second line explains the one before
    same = classes[rows[6]["code"]]
    expected.append({"row": str(rows[6]["row"]), "label": same, "was": same, "file_digest": "a1b2"})
    assert quiet.evaluate("document.querySelector('#summary').textContent") == "5 labels changed, 1 marked as right."
    assert _download(quiet, tmp_path) == expected


def test_a_row_is_either_right_or_changed_and_can_be_cleared(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "explained.html")
    code = _rows(quiet)[0]["code"]
    state = "[...document.querySelectorAll('select.correct, input.confirm')].slice(0, 2).map(e => e.checked ?? e.value)"
    assert quiet.evaluate(state) == [False, str(code)]
    _choose(quiet, 0, (code + 1) % 5)
    quiet.click("input.confirm")
    assert quiet.evaluate(state) == [True, str(code)]
    _choose(quiet, 0, (code + 1) % 5)
    assert quiet.evaluate(state) == [False, str((code + 1) % 5)]
    quiet.click("#clear")
    assert quiet.evaluate(state) == [False, str(code)]
    assert quiet.evaluate("document.querySelector('#summary').textContent") == "0 labels changed, 0 marked as right."


def test_a_row_without_a_label_can_get_one_but_cannot_be_right(quiet: Browser, folder: Path, tmp_path: Path) -> None:
    quiet.open(folder / "few.html")
    number = next(number for number, row in enumerate(_rows(quiet)) if row["code"] < 0)
    assert quiet.evaluate(f"document.querySelectorAll('input.confirm')[{number}].disabled") is True
    _choose(quiet, number, 1)
    row = str(_rows(quiet)[number]["row"])
    assert _download(quiet, tmp_path) == [{"row": row, "label": WORSE, "was": "", "file_digest": ""}]


def test_corrections_need_no_mouse(quiet: Browser, folder: Path, tmp_path: Path) -> None:
    quiet.open(folder / "explained.html")
    row = _rows(quiet)[0]
    quiet.evaluate("document.querySelector('button.find').focus()")
    quiet.key("Tab")
    quiet.press(" ")  # right
    assert quiet.evaluate("document.querySelector('input.confirm').checked") is True
    quiet.key("Tab")
    chosen = "document.querySelector('select.correct').value"
    last = quiet.evaluate(chosen)
    for key in ("ArrowDown", "ArrowUp"):  # one of them leads to another class
        if quiet.evaluate(chosen) == last:
            quiet.key(key)
    new = quiet.evaluate(chosen)
    assert new != last
    quiet.key("Tab")
    quiet.press("Enter")  # why
    assert quiet.evaluate("document.activeElement.ariaExpanded") == "true"
    assert quiet.evaluate(f"document.querySelector('#why-{row['row']}').checkVisibility()") is True
    quiet.downloads_to(tmp_path)
    quiet.evaluate("document.querySelector('#clear').focus()")
    quiet.key("Tab")
    quiet.press("Enter")
    classes = [*ODD_CLASSES, *(f"kind {number}" for number in range(9))]
    assert [found["label"] for found in _downloaded(quiet, tmp_path)] == [classes[int(new)]]


def test_a_long_cell_shows_its_whole_text_on_demand(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "explained.html")
    shown = "document.querySelector('td.cell:has(.long)').innerText"
    assert "word end" not in quiet.evaluate(shown)
    quiet.click("details.long summary")
    assert "word end" in quiet.evaluate(shown)
    quiet.click("button.find")  # the same text beside the map
    assert "word end" not in quiet.evaluate(READOUT)
    quiet.click("#readout button.more")
    assert "word end" in quiet.evaluate(READOUT)


def test_a_row_is_explained_by_its_sources_and_nearest_labelled_rows(quiet: Browser, folder: Path) -> None:
    quiet.open(folder / "explained.html")
    shown = "document.querySelector('tr.why').innerText"
    assert quiet.evaluate("document.querySelector('tr.why').checkVisibility()") is False
    quiet.click("button.explain")
    words = quiet.evaluate(shown)
    for expected in ("diffusion", "forest", "result", "Nearest labelled rows", "0.071", "2.5"):
        assert expected in words
    number = quiet.evaluate("document.querySelector('tr.why button.find').dataset.row")
    quiet.click("tr.why button.find")
    assert quiet.evaluate(READOUT).startswith(f"Row {number}")


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1400, False)])
def test_nothing_sticks_out_while_rows_are_corrected(quiet: Browser, folder: Path, width: int, dark: bool) -> None:
    quiet.open(folder / "explained.html", width, 900, dark=dark, touch=width < 500)
    quiet.evaluate("document.querySelectorAll('button.explain, details.long summary').forEach(e => e.click())")
    _choose(quiet, 0, 9)
    assert quiet.evaluate("document.documentElement.scrollWidth") == width
    inside = "(b => b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight)"
    quiet.evaluate("document.querySelector('#review').scrollIntoView({block: 'start'})")
    assert quiet.evaluate(f"{inside}(document.querySelector('#download').getBoundingClientRect())") is True


def test_without_rows_to_review_there_is_nothing_to_correct(quiet: Browser, tmp_path: Path) -> None:
    outcome, X = made_outcome(12, ["a", "b"], n_given=12)
    (tmp_path / "given.html").write_text(made_page(outcome, X), encoding="utf-8")
    quiet.open(tmp_path / "given.html")
    assert quiet.evaluate("document.querySelector('#download')") is None


def test_trouble_in_a_page_would_be_noticed(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src='http://example.invalid/x.png'><script>console.error('x'); alert(1); nothing.at.all</script>"
    )
    browser.open(page)
    assert "http://example.invalid/x.png" in browser.requests
    found = " ".join(browser.troubles)
    for expected in ("consoleAPICalled", "javascriptDialogOpening", "exceptionThrown"):
        assert expected in found
