"""Pictures, rows like no labelled class, and votes on the page."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from otprop._votes import Voter
from otprop.files import read_table
from otprop.labelling.job import Job, Request, prepare
from otprop.labelling.outcome import Outcome
from otprop.report import page_rows
from otprop.report.label_page import make_page
from otprop.report.page_rows import NovelRows, novel_rows, vote_sentences
from tests.report.browser import BINARY, MISSING, Browser
from tests.report.outcomes import made_outcome, made_page
from tests.table.pictures import write_pictures

EVIL = "<img src=x onerror=alert(1)>"
GEOMETRY_ALONE = {"evidence": None}  # is fast


def picture_page(folder: Path, names: list[str]) -> tuple[str, Job]:
    pytest.importorskip("PIL", reason="reading pictures needs Pillow")
    kinds = [("green", "red")[row % 2] if row < 6 else "" for row in range(len(names))]
    pd.DataFrame({"photo": names, "kind": kinds}).to_csv(folder / "photos.csv", index=False)
    job = prepare(read_table(folder / "photos.csv"), Request("kind", settings=GEOMETRY_ALONE))
    return make_page(job, job.run(), command="otprop label photos.csv"), job


def test_rows_to_review_and_nearest_rows_have_their_pictures_in_the_page(tmp_path: Path) -> None:
    html, _ = picture_page(tmp_path, write_pictures(tmp_path, 20))
    shown = {int(number) for number in re.findall(r'data-picture="(\d+)" src="data:image/', html)}
    reviewed = {int(number) for number in re.findall(r'data-review="(\d+)"', html)}
    assert reviewed
    assert reviewed <= shown
    assert shown & {1, 2, 3, 4, 5, 6}  # labelled rows that are nearest to one
    assert "values]" not in html


def test_pictures_that_cannot_be_shown_are_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    names = write_pictures(folder, 20)
    write_pictures(tmp_path, 1)
    (folder / "10.png").unlink()
    (folder / "11.png").write_bytes(b"")
    names[12], names[13] = "", "../00.png"  # no picture, and one that is not below the folder
    evil = f"{EVIL.replace('/', '')}.png"
    (folder / "14.png").rename(folder / evil)
    names[14] = evil
    html, job = picture_page(folder, names)
    pictures = page_rows.job_pictures(job)
    found = page_rows.page_pictures(pictures, range(20))
    assert sorted(set(range(20)) - set(found)) == [10, 11, 12, 13]
    assert EVIL not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_a_page_does_not_grow_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, job = picture_page(tmp_path, write_pictures(tmp_path, 20))
    pictures = page_rows.job_pictures(job)
    one = len(pictures.of_row(0, page_rows.SIDE)[0])
    monkeypatch.setattr(page_rows, "MAX_BYTES", 3 * one)
    assert 1 <= len(page_rows.page_pictures(pictures, range(20))) <= 5
    monkeypatch.setattr(page_rows, "MAX_PICTURES", 1)
    assert list(page_rows.page_pictures(pictures, [4, 4, 5])) == [4]


def test_pictures_in_an_array_are_shown_and_not_spelled_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    dark = np.arange(20) % 2
    images = (rng.integers(0, 60, (20, 30, 30)) + 150 * dark[:, None, None]).astype(np.uint8)
    kinds = np.array([("light", "dark")[one] if row < 8 else "" for row, one in enumerate(dark)])
    np.savez(tmp_path / "photos.npz", images=images, kind=kinds)
    job = prepare(read_table(tmp_path / "photos.npz"), Request("kind", settings=GEOMETRY_ALONE))
    html = make_page(job, job.run(), command="otprop label photos.npz")
    assert 'src="data:image/png;base64,' in html
    body = html.split("<body>")[1]
    assert '<th scope="col" class="name">images</th>' not in body
    assert "900 values" not in body


def novel_page() -> tuple[str, Outcome]:
    outcome, X = made_outcome(60, ["Gala", "Cox"])
    free = np.flatnonzero(~outcome.given)
    novelty = np.zeros(60)
    novelty[free[:7]] = np.linspace(0.96, 1.0, 7)
    object.__setattr__(outcome, "novelty", novelty)
    rows = [int(row) for row in free[:7][::-1]]
    novel = NovelRows(0.12, 0.03, 0.25, rows)
    return made_page(outcome, X, {"lot": lambda row: f"strange {EVIL} {row}"}, novel=novel), outcome


def test_rows_like_no_labelled_class_have_a_section() -> None:
    html, _ = novel_page()
    section = html.split('<section id="novel">')[1].split("</section>")[0]
    assert section.count("data-review=") == 7
    assert "About 12" in section
    assert "strange &lt;img" in section
    plain = made_page(*made_outcome(60, ["Gala", "Cox"]))
    assert '<section id="novel">' not in plain


def test_novel_rows_are_the_strangest_without_a_given_label_that_are_not_shown_already() -> None:
    job: Any = SimpleNamespace(estimator=SimpleNamespace(novel_share_=0.2, novel_range_=(0.1, 0.3)))
    outcome, _ = made_outcome(60, ["Gala", "Cox"])
    free, given = np.flatnonzero(~outcome.given), np.flatnonzero(outcome.given)
    novelty = np.full(60, 0.5)
    novelty[free[:4]] = [0.96, 0.99, 0.98, 0.97]
    novelty[given[0]] = 1.0
    object.__setattr__(outcome, "novelty", novelty)
    found = novel_rows(job, outcome, [int(free[2])])
    assert found == NovelRows(0.2, 0.1, 0.3, [int(free[1]), int(free[3]), int(free[0])])
    job.estimator.novel_share_ = 0.0
    assert novel_rows(job, outcome, []) is None


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_a_new_class_is_typed_on_the_page_and_downloaded(quiet: Browser, tmp_path: Path) -> None:
    html, _ = novel_page()
    (tmp_path / "page.html").write_text(html)
    quiet.open(tmp_path / "page.html")
    row = quiet.evaluate(
        "(r => { const i = r.querySelector('input.new-class'); i.value = ' Quince, \"red\" '; "
        "i.dispatchEvent(new Event('input')); return r.dataset.review; })"
        "(document.querySelector('#novel tr[data-review]'))"
    )
    assert "1 label changed" in quiet.evaluate("document.querySelector('#summary').textContent")
    quiet.downloads_to(tmp_path)
    quiet.click("#download")
    path = tmp_path / "corrections.csv"
    quiet.wait(lambda: path.exists() and not list(tmp_path.glob("*.crdownload")))
    found = pd.read_csv(path)
    assert (found["row"].tolist(), found["label"].tolist()) == ([int(row)], ['Quince, "red"'])


def test_votes_are_said_in_a_sentence() -> None:
    votes = pd.DataFrame({"llm": [0, 1, np.nan], "anna": [0, 0, np.nan], "rule": [1, np.nan, np.nan]})
    job: Any = SimpleNamespace(votes=votes, target=SimpleNamespace(classes=["Elstar", "Gala"]))
    assert vote_sentences(job, [0, 1, 2]) == {
        0: "2 of 3 say Elstar, 1 says Gala",
        1: "1 of 2 says Gala, 1 says Elstar",
        2: "no voter says anything",
    }


def test_voters_are_listed_with_their_accuracy() -> None:
    outcome, X = made_outcome(60, ["Gala", "Cox"])
    outcome.voters.extend([Voter(EVIL, 0.81, 0.7, 0.9, 40, 55), Voter("rule", float("nan"), 0.0, 1.0, 0, 3)])
    html = made_page(outcome, X)
    section = html.split('<section id="voters">')[1].split("</section>")[0]
    assert EVIL not in section
    assert "81" in section
    assert "not known" in section
