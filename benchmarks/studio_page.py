"""The page of `otprop studio` in Chromium with software GL: how fast it follows a person.

    python benchmarks/studio_page.py keys           from a key press until the next row is on the screen
    python benchmarks/studio_page.py draw           points first drawn, recoloured, moved; 100 000 and a million

`keys` presses a key of a class again and again while the propagation runs, on tables of 3 000 and 100 000 rows; a row
counts as shown when the frame with its cells was made. `draw` counts from the moment the page has the numbers until the
graphics card has drawn them (a pixel is read back); the numbers are made up by this script, so that no worker runs
beside it. The load of the machine is in the results: on a busy one the times are longer. Writes
benchmarks/results/studio_page_*.csv.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from common import argument_parser, write_csv
from studio_server import mixed_table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.studio.browser.running import CHROMIUM, FLAGS, RunningStudio  # noqa: E402

N_KEYS, KEYS = 60, "123456"
PAUSE = 120  # milliseconds between two keys
N_COLORINGS = 6
PATIENCE = 900_000  # milliseconds for a million rows to open

WATCH_ROWS = """() => {
  window.times = [];
  let pressed = 0;
  addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  const row = document.querySelector("#row");
  new MutationObserver(() => {
    if (!pressed) return;
    const start = pressed, ready = row.dataset.ready === "true";
    pressed = 0;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();  // runs after the frame was made
      channel.port1.onmessage = () => window.times.push([performance.now() - start, ready]);
      channel.port2.postMessage(0);
    });
  }).observe(row, { attributes: true, attributeFilter: ["data-row"] });
}"""
WATCH_MAP = """
addEventListener("DOMContentLoaded", () => {
  const host = document.querySelector("#map");
  window.finish = () => {
    const canvas = host.querySelector(".points"), gl = canvas.getContext("webgl2");
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    else canvas.getContext("2d").getImageData(0, 0, 1, 1);
  };
  window.drawn = () => new Promise((done) => new MutationObserver((_, observer) => {
    observer.disconnect();
    window.finish();
    done(performance.now());
  }).observe(host, { attributes: true, attributeFilter: ["data-drawn"] }));
  window.drawn().then((now) => { window.firstDrawn = now; });
});
"""
FIRST = """() => {
  const numbers = /api.(map|labels|sources|rounds)/;
  const entries = performance.getEntriesByType("resource").filter(({ name }) => numbers.test(name));
  const ends = entries.map(({ responseEnd }) => responseEnd).filter((end) => end < window.firstDrawn);
  return window.firstDrawn - Math.max(...ends);
}"""
RECOLOR = """async (name) => {
  const start = performance.now(), drawn = window.drawn();
  document.querySelector(`[name=coloring][value=${name}]`).click();
  return (await drawn) - start;
}"""
KEY = """async (key) => {
  const start = performance.now(), drawn = window.drawn();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true }));
  return (await drawn) - start;
}"""
MOVE = """async () => {
  const host = document.querySelector("#map"), frames = [];
  for (let step = 0; step < 60; step++) {
    const key = step % 20 < 10 ? "ArrowLeft" : "ArrowRight";
    host.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    frames.push(await new Promise(requestAnimationFrame));
  }
  const between = frames.slice(1).map((time, at) => time - frames[at]).sort((a, b) => a - b);
  return [between[Math.floor(between.length / 2)], between[between.length - 1]];
}"""


@contextmanager
def closing_studio(studio: RunningStudio) -> Iterator[None]:
    """End the studio in any case."""
    try:
        yield
    finally:
        studio.stop()


def sender(body: bytes) -> Callable[[Any], None]:
    """Answers a request with these bytes."""
    headers = {"X-Revision": "0", "Content-Type": "application/octet-stream"}
    return lambda route: route.fulfill(body=body, headers=headers)


@contextmanager
def page(path: Path, sent: dict[str, bytes] | None = None, renderer: str = "") -> Iterator[Any]:
    """The studio of a file in a window of 1600 x 900; `sent` are numbers that the page gets instead of the server's."""
    if CHROMIUM is None:
        raise SystemExit("no Chromium binary was found on PATH.")
    studio = RunningStudio(path, "kind")
    with closing_studio(studio), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        opened = browser.new_context(viewport={"width": 1600, "height": 900}).new_page()
        opened.set_default_timeout(PATIENCE)
        opened.add_init_script(WATCH_MAP)
        for name, body in (sent or {}).items():
            opened.route(re.compile(rf"/api/{name}(\?|$)"), sender(body))
        opened.goto(studio.url, timeout=PATIENCE)
        if renderer:
            opened.goto(f"{studio.address}#{renderer}")
            opened.reload()
        opened.wait_for_selector("#map[data-drawn]")
        opened.wait_for_selector("#row[data-ready=true]")
        yield opened
        browser.close()


def keys(sizes: list[int]) -> None:
    """Time from a key press to the next row."""
    rows = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path, _ = mixed_table(Path(folder), n_rows)
            with page(path) as opened:
                opened.evaluate(WATCH_ROWS)
                for number in range(N_KEYS):
                    opened.keyboard.press(KEYS[number % len(KEYS)])
                    opened.wait_for_timeout(PAUSE)
                opened.wait_for_selector("#saved[data-state=saved]")
                found = opened.evaluate("window.times")
        times = np.array([time for time, _ in found])
        rows.append(
            {
                "rows": n_rows,
                "keys": len(times),
                "cells_shown_at_once": sum(ready for _, ready in found),
                "median_ms": round(float(np.median(times)), 1),
                "p95_ms": round(float(np.quantile(times, 0.95)), 1),
                "max_ms": round(float(times.max()), 1),
                "load": round(os.getloadavg()[0], 1),
            }
        )
        print(rows[-1], flush=True)
        write_csv("studio_page_keys.csv", rows)


def numbers(n_rows: int) -> dict[str, bytes]:
    """What the page is sent of that many rows of six classes, one in a thousand labelled by a person."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, n_rows)
    points = rng.normal(size=(6, 2))[kind] + rng.normal(size=(n_rows, 2)) * 0.4
    person = rng.random(n_rows) < 0.001
    return {
        "map": (points / np.abs(points).max()).astype("<f4").tobytes(),
        "labels": kind.astype(np.uint8).tobytes(),
        "confidence": rng.integers(100, 256, n_rows).astype(np.uint8).tobytes(),
        "sources": np.where(person, 1, 3).astype(np.uint8).tobytes(),
        "rounds": np.where(person, 0, rng.integers(1, 9, n_rows)).astype(np.uint8).tobytes(),
    }


def draw(sizes: list[int]) -> None:
    """Time until points are drawn, by the page's choice (its own pixels, since there is no graphics card) and by GL."""
    rows = []
    for n_rows, renderer in [(n_rows, renderer) for n_rows in sizes for renderer in ("canvas", "webgl")]:
        with tempfile.TemporaryDirectory() as folder:
            path, _ = mixed_table(Path(folder), 60)
            with page(path, numbers(n_rows), renderer) as opened:
                first = opened.evaluate(FIRST)
                colorings = [
                    opened.evaluate(RECOLOR, ("confidence", "source", "label")[number % 3])
                    for number in range(N_COLORINGS)
                ]
                usual, longest = opened.evaluate(MOVE)
                opened.wait_for_timeout(1000)
                selected = opened.evaluate(KEY, "A")
        rows.append(
            {
                "rows": n_rows,
                "renderer": renderer,
                "first_drawn_ms": round(first),
                "recoloured_median_ms": round(float(np.median(colorings))),
                "recoloured_max_ms": round(max(colorings)),
                "all_selected_ms": round(selected),
                "frame_moving_median_ms": round(usual, 1),
                "frame_moving_max_ms": round(longest, 1),
                "load": round(os.getloadavg()[0], 1),
            }
        )
        print(rows[-1], flush=True)
        write_csv("studio_page_draw.csv", rows)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("what", choices=("keys", "draw"))
    parser.add_argument("--rows", type=int, nargs="*", help="sizes of the tables")
    options = parser.parse_args()
    if options.what == "keys":
        keys(options.rows or [3_000, 100_000])
    else:
        draw(options.rows or [100_000, 1_000_000])


if __name__ == "__main__":
    main()
