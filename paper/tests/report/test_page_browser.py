"""The page in a real browser, with no network: it is drawn, and nothing sticks out of a narrow window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper.tests.made import line
from tests.report.browser import BINARY, MISSING, Browser

from otprop_paper.benchmark.output import Origin
from otprop_paper.benchmark.reliability import summarise
from otprop_paper.report.page import make_benchmark_page

pytestmark = pytest.mark.skipif(BINARY is None, reason=MISSING)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = summarise(np.linspace(0.4, 1.0, 300), np.arange(300) % 4 > 0)
    lines: list[dict[str, Any]] = [
        line(dataset, method, percent, 0, base + percent / 200, params={"sigma": 1.0}, n_candidates=15)
        | {"reliability": kept if method == "otp" else None}
        for dataset in ("iris", "a-data-set-with-a-very-long-name-indeed.parquet")
        for method, base in (("otp", 0.7), ("otp-paper", 0.4), ("released", 0.65), ("ls", 0.6), ("vote", 0.5))
        for percent in (5.0, 15.0, 25.0)
    ]
    out = tmp_path_factory.mktemp("page") / "page.html"
    out.write_text(make_benchmark_page(lines, Origin("otprop-paper", "0.1.0", "", "today"), "A run", "About it."))
    return out


def test_a_browser_shows_text_and_charts(quiet: Browser, path: Path) -> None:
    quiet.open(path)
    assert quiet.evaluate("document.querySelectorAll('svg').length") >= 7
    assert "About it." in quiet.evaluate("document.body.innerText")


@pytest.mark.parametrize("width", [1400, 520, 400])
def test_the_page_is_drawn_with_a_margin_on_the_right(quiet: Browser, path: Path, width: int) -> None:
    image = pytest.importorskip("matplotlib.image")
    quiet.open(path, width, 1600)
    assert quiet.evaluate("document.documentElement.scrollWidth") == width
    picture = path.parent / f"{width}.png"
    quiet.picture(picture)
    pixels = np.asarray(image.imread(picture))[:, :, :3]
    assert pixels.shape[1] == width
    dark = pixels.min(axis=2) < 0.6
    assert dark.mean() > 0.005  # something is there
    assert dark[:, -6:].sum() == 0  # and nothing is cut off at the edge
