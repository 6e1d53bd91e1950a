"""From the page to the second file, in a real browser: correct a row, download, label again."""

from __future__ import annotations

from pathlib import Path

import pytest

from otprop.cli import main
from tests.cli.conftest import lots, read_rows  # noqa: F401
from tests.report.browser import BINARY, MISSING, Browser

pytestmark = pytest.mark.skipif(BINARY is None, reason=MISSING)
pytest.importorskip("pandas")


def _choose(browser: Browser, section: str, label: str) -> int:
    """Choose another label for the first row of a table; the number of the row."""
    return int(
        browser.evaluate(
            f"(r => {{ const s = r.querySelector('select.correct'); "
            f"s.value = [...s.options].find(o => o.text === '{label}').value; s.dispatchEvent(new Event('change')); "
            f"return r.dataset.review; }})(document.querySelector('#{section} tr[data-review]'))"
        )
    )


def _download(browser: Browser, folder: Path) -> Path:
    browser.downloads_to(folder)
    browser.click("#download")
    path = folder / "corrections.csv"
    browser.wait(lambda: path.exists() and not list(folder.glob("*.crdownload")))
    return path


def test_a_row_that_is_corrected_on_the_page_has_its_label_in_the_second_file(
    quiet: Browser,
    lots: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    page, out = tmp_path / "page.html", tmp_path / "second.csv"
    command = ["label", str(lots), "--target", "kind", "--quiet"]
    assert main([*command, "--report", str(page)]) == 0
    first = read_rows(lots.with_name("lots.labelled.csv"))
    quiet.open(page)
    old = quiet.evaluate("document.querySelector('#review tr[data-review] td.label bdi').textContent")
    new = next(name for name in "abc" if name != old)
    row = _choose(quiet, "review", new)
    assert first[row - 1]["kind_label"] == old
    path = _download(quiet, tmp_path)
    assert main([*command, "--corrections", str(path), "-o", str(out)]) == 0
    second = read_rows(out)
    assert (second[row - 1]["kind_label"], second[row - 1]["kind_source"]) == (new, "corrected")
    assert second[row - 1]["kind"] == ""
    assert [n["kind_source"] for n in second].count("corrected") == 1
    lots.write_text(lots.read_text().replace("green", "blue"))
    assert main([*command, "--corrections", str(path), "-o", str(out), "--force"]) == 2  # another file by now


def test_a_given_label_that_looks_wrong_is_corrected_on_the_page(
    quiet: Browser,
    lots: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    lines = lots.read_text().splitlines()
    for number in range(1, 100):
        lines[number] = lines[number].rpartition(",")[0] + "," + "abc"[(number - 1) % 3]
    lines[50] = lines[50].rpartition(",")[0] + ",c"  # it is b
    lots.write_text("\n".join(lines) + "\n")
    page, out = tmp_path / "page.html", tmp_path / "second.csv"
    command = ["label", str(lots), "--target", "kind", "--quiet"]
    assert main([*command, "--report", str(page)]) == 0
    quiet.open(page)
    assert "Labels that look wrong" in quiet.evaluate("document.querySelector('main').innerText")
    assert _choose(quiet, "issues", "b") == 50
    quiet.click("#issues button.find")
    assert quiet.evaluate("document.querySelector('#readout').textContent").startswith("Row 50")
    path = _download(quiet, tmp_path)
    assert main([*command, "--corrections", str(path), "-o", str(out)]) == 0
    row = read_rows(out)[49]
    assert (row["kind"], row["kind_label"], row["kind_source"]) == ("c", "b", "corrected")


def test_the_page_explains_rows_and_shows_the_confusion(
    quiet: Browser,
    lots: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.html"
    assert main(["label", str(lots), "--target", "kind", "--quiet", "--report", str(page)]) == 0
    quiet.open(page)
    assert quiet.evaluate("document.querySelector('#issues')") is None
    quiet.click("button.explain")
    words = quiet.evaluate("document.querySelector('tr.why').innerText")
    for expected in ("diffusion", "forest", "linear", "result", "Nearest labelled rows"):
        assert expected in words
    counts = "[...document.querySelectorAll('#confusion td.number')].reduce((sum, e) => sum + Number(e.textContent), 0)"
    assert quiet.evaluate(counts) == 12
