"""Write docs/_static/studio-*.jpg, pictures of the studio on examples/orchard.csv, by driving it in Chromium.

    python tools/studio_pictures.py

Needs the extras `studio` and `test` and Chromium on PATH.
"""

from __future__ import annotations

import csv
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "_static"
SIZE = {"width": 1280, "height": 800}
N_LABELLED = 8
PATIENCE = 120_000  # milliseconds


def truth() -> list[str]:
    """The variety of every row of the orchard."""
    with (ROOT / "examples" / "orchard_truth.csv").open(encoding="utf-8", newline="") as file:
        found = {row["lot"]: row["variety"] for row in csv.DictReader(file)}
    with (ROOT / "examples" / "orchard.csv").open(encoding="utf-8", newline="") as file:
        return [found[row["lot"]] for row in csv.DictReader(file)]


def state(page: Any) -> dict[str, Any]:
    """What the server says of the session."""
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
    page.wait_for_timeout(1500)  # the colours of the map fade over


def picture(page: Any, name: str) -> None:
    """Write one picture."""
    path = OUT / f"studio-{name}.jpg"
    page.screenshot(path=path, type="jpeg", quality=82)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KB")


def label_rows(page: Any, n: int) -> None:
    """Label the rows of the queue by key, as somebody who knows the truth."""
    right, keys = truth(), {one["name"]: one["key"] for one in state(page)["classes"]}
    for _ in range(n):
        row = int(page.get_attribute("#row", "data-row"))
        page.keyboard.press(keys[right[row]])
        page.wait_for_function(f"document.querySelector('#row').dataset.row !== '{row}'", timeout=PATIENCE)


def main() -> None:
    """Start the studio, use it, and end it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        table = Path(shutil.copy(ROOT / "examples" / "orchard.csv", folder))
        command = [sys.executable, "-m", "otprop.cli", "studio", str(table), "--target", "variety", "--no-browser"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert server.stdout is not None
            address = next(match[0] for line in server.stdout if (match := re.search(r"http://\S+", line)))
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--use-gl=swiftshader"])
            page = browser.new_page(viewport=SIZE)
            page.goto(address)
            page.wait_for_selector("#row[data-row]", timeout=PATIENCE)
            wait_for_labels(page)
            label_rows(page, N_LABELLED)
            wait_for_labels(page)
            picture(page, "labelled")
            page.keyboard.press("Shift+C")
            page.wait_for_timeout(1500)
            picture(page, "confidence")
            browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


if __name__ == "__main__":
    main()
