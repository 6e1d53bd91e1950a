"""Write docs/_static/studio-*.jpg and studio.webp, pictures and a film of the studio, by driving it in Chromium.

    python tools/studio_pictures.py

Needs the extras `studio` and `test` and Chromium on PATH. The table is examples/orchard.csv.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "_static"
SIZE = {"width": 1280, "height": 800}
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
N_LABELLED = 8
PATIENCE = 120_000  # milliseconds

FILM_SIZE = (960, 600)
CAPTION = 44  # height in pixels
FILM_QUALITY = 60


def truth() -> list[str]:
    """The variety of every row of the orchard."""
    with (ROOT / "examples" / "orchard_truth.csv").open(encoding="utf-8", newline="") as file:
        found = {row["lot"]: row["variety"] for row in csv.DictReader(file)}
    with (ROOT / "examples" / "orchard.csv").open(encoding="utf-8", newline="") as file:
        return [found[row["lot"]] for row in csv.DictReader(file)]


@contextmanager
def studio_page(driver: Any) -> Iterator[Any]:
    """The page of a new studio session on the orchard, with its first labels drawn."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(shutil.copy(ROOT / "examples" / "orchard.csv", folder))
        command = [sys.executable, "-m", "otprop", "studio", str(table), "--target", "variety", "--no-browser"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert server.stdout is not None
            address = next(match[0] for line in server.stdout if (match := re.search(r"http://\S+", line)))
            browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
            page = browser.new_page(viewport=SIZE)
            page.goto(address)
            page.wait_for_selector("#row[data-row]", timeout=PATIENCE)
            wait_for_labels(page)
            yield page
            browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


def state(page: Any) -> dict[str, Any]:
    """The state of the session, as the server reports it."""
    found: dict[str, Any] = page.evaluate("fetch('/api/state').then(answer => answer.json())")
    return found


def wait_for_labels(page: Any) -> None:
    """Wait until the labels of the newest revision are drawn."""
    while True:
        found = state(page)
        propagation = found["propagation"]
        if propagation["state"] == "done" and propagation["revision"] == found["revision"]:
            break
        if propagation["state"] == "failed":
            raise SystemExit(f"the propagation failed: {propagation['message']}")
        page.wait_for_timeout(500)
    page.wait_for_selector("#map[data-drawn]", timeout=PATIENCE)
    page.wait_for_timeout(1500)  # the map fades to the new colours


def right_key(page: Any) -> str:
    """The key of the true class of the row that is shown."""
    keys = {one["name"]: one["key"] for one in state(page)["classes"]}
    found: str = keys[truth()[int(page.get_attribute("#row", "data-row"))]]
    return found


def label_row(page: Any) -> str:
    """Label the row that is shown with its true class; the key."""
    row, key = page.get_attribute("#row", "data-row"), right_key(page)
    page.keyboard.press(key)
    page.wait_for_function(f"document.querySelector('#row').dataset.row !== '{row}'", timeout=PATIENCE)
    return key


def screenshot(page: Any, **options: Any) -> bytes:
    """What the page shows, without the seconds of the last propagation, which depend on the machine."""
    page.evaluate("() => { const text = document.getElementById('propagation');"
                  " text.textContent = text.textContent.replace(/ [(][^)]* s[)]/, ''); }")  # fmt: skip
    found: bytes = page.screenshot(**options)
    return found


def write_pictures(page: Any) -> None:
    """The studio after some labels, coloured by label and by confidence."""
    for _ in range(N_LABELLED):
        label_row(page)
    wait_for_labels(page)
    for name in ("labelled", "confidence"):
        path = OUT / f"studio-{name}.jpg"
        screenshot(page, path=path, type="jpeg", quality=82)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KB")
        page.keyboard.press("Shift+C")
        page.wait_for_timeout(1500)


class Film:
    """Frames of a page, each with a caption and how long it is shown."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []  # milliseconds

    def shoot(self, caption: str, duration: int) -> None:
        """Add what the page shows now."""
        shot = Image.open(io.BytesIO(screenshot(self.page))).convert("RGB").resize(FILM_SIZE, Image.Resampling.LANCZOS)
        frame = Image.new("RGB", (FILM_SIZE[0], FILM_SIZE[1] + CAPTION), "#1c2733")
        frame.paste(shot, (0, 0))
        place = (FILM_SIZE[0] // 2, FILM_SIZE[1] + CAPTION // 2)
        ImageDraw.Draw(frame).text(place, caption, fill="white", font=ImageFont.load_default(22), anchor="mm")
        self.frames.append(frame)
        self.durations.append(duration)

    def write(self, path: Path) -> None:
        """Write the frames as an animated WebP that repeats."""
        first, *more = self.frames
        first.save(path, save_all=True, append_images=more, duration=self.durations, loop=0,
                   quality=FILM_QUALITY, method=6, minimize_size=True)  # fmt: skip
        seconds = sum(self.durations) / 1000
        print(f"{path.relative_to(ROOT)}: {seconds:.0f} s, {len(self.frames)} frames, {path.stat().st_size // 1024} KB")


def write_film(page: Any) -> None:
    """Half a minute: label by key, undo, propagation, rounds, confidence, lasso, export."""
    film = Film(page)
    film.shoot("3 000 lots of apples on a map; 40 have a variety", 2500)
    for _ in range(5):
        caption = f"Label the row with one key: {right_key(page)}"
        film.shoot(caption, 700)
        label_row(page)
        page.wait_for_timeout(250)
        film.shoot(caption, 500)
    page.keyboard.press("u")
    page.wait_for_timeout(700)
    film.shoot("A slip? u takes it back", 1600)
    label_row(page)
    wait_for_labels(page)
    film.shoot("The labels of all other rows follow, with the error to expect", 2500)
    play_rounds(film)
    page.keyboard.press("Shift+C")
    page.wait_for_timeout(1500)
    film.shoot("Colour by confidence: red rows are uncertain", 2500)
    for _ in range(3):
        page.keyboard.press("Shift+C")
    page.wait_for_timeout(1500)
    draw_lasso(film)
    page.keyboard.press("Shift+E")
    page.wait_for_timeout(700)
    film.shoot("Export the table, a report or a model", 3000)
    film.write(OUT / "studio.webp")


def play_rounds(film: Film) -> None:
    """Go through the rounds with the slider."""
    last = int(film.page.get_attribute("#round", "max"))
    for number in range(last + 1):
        film.page.locator("#round").fill(str(number))
        film.page.wait_for_timeout(900)
        film.shoot("Labels spread in rounds, certain rows first", 700 if number < last else 1200)


def draw_lasso(film: Film) -> None:
    """Draw around rows of the map, mostly Jonagold, label them with one key, and undo it."""
    page, caption = film.page, "Or draw around rows with Shift and label them together"
    box = page.locator("#map").bounding_box()
    middle, radius = (box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"]), 0.16 * box["width"]
    page.mouse.move(middle[0] + radius, middle[1])
    page.keyboard.down("Shift")
    page.mouse.down()
    for step in range(25):
        turn = step / 12 * math.pi
        page.mouse.move(middle[0] + radius * math.cos(turn), middle[1] + radius * math.sin(turn))
        if step % 6 == 5:
            page.wait_for_timeout(100)
            film.shoot(caption, 350)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_selector(".region-title")
    page.wait_for_timeout(500)
    film.shoot(caption, 1500)
    page.keyboard.press(next(one["key"] for one in state(page)["classes"] if one["name"] == "Jonagold"))
    page.wait_for_selector("[data-notice=region]", timeout=PATIENCE)
    page.wait_for_timeout(500)
    film.shoot("One key for all; the studio says how many are probably wrong", 2500)
    page.keyboard.press("u")
    page.wait_for_timeout(700)
    film.shoot("One undo reverts them", 1500)


def main() -> None:
    """Write the pictures and the film, each in a new session."""
    with sync_playwright() as driver:
        for write in (write_pictures, write_film):
            with studio_page(driver) as page:
                write(page)


if __name__ == "__main__":
    main()
