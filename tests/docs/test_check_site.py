"""tools/check_site.py finds what a built site must not have."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def check_site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "tools" / "check_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HEAD = '<html lang="en"><title>a</title><h1 id="there">A</h1>'


def test_a_site_whose_links_lead_somewhere_has_no_problem(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "site.css").write_text("body { color: black }")
    (tmp_path / "index.html").write_text(
        f'{HEAD}<link rel="stylesheet" href="site.css"><a href="sub/a.html#there">a</a>'
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.html").write_text(f'{HEAD}<a href="../index.html">b</a><a href="#there">c</a>')
    (tmp_path / "sub" / "b.html").write_text(
        f'{HEAD}<a href="https://example.org">elsewhere, if the reader wants to</a>'
    )
    assert check_site.problems(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="nowhere.html">a</a>', "there is no nowhere.html"),
        ('<a href="#nowhere">a</a>', "#nowhere has no such anchor"),
        ('<img src="picture.png" alt="">', "there is no picture.png"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from another machine"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loads //example.org/a.css from another machine"),
        ('<img src="data:," >', "the picture data:, has no alt text"),
        ('<h3 id="x">deep</h3>', "a heading of level 3 follows one of level 1"),
        ("<h1>again</h1>", "2 first headings, expected one"),
        ('<a href="#there"><i></i></a>', "<a href='#there'> has no name"),
        ("<button></button>", "<button > has no name"),
        ('<p tabindex="2">a</p>', "<p> has the tabindex 2, which breaks the order of the keys"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(text: str, problem: str, tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text(HEAD + text)
    assert check_site.problems(tmp_path) == [f"index.html: {problem}"]


def test_a_style_sheet_that_fetches_is_found(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text(HEAD)
    (tmp_path / "site.css").write_text("@font-face { src: url(https://example.org/font.woff2) }")
    assert check_site.problems(tmp_path) == ["site.css: fetches from another machine"]


def test_a_page_without_language_title_and_heading_is_found(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text("<p>a</p>")
    assert check_site.problems(tmp_path) == [
        "index.html: 0 first headings, expected one",
        "index.html: <html> has no lang",
        "index.html: there is no title",
    ]


def test_links_and_buttons_are_named_by_text_label_or_picture(tmp_path: Path, check_site: ModuleType) -> None:
    named = ["<b>text</b>", '<img src="data:," alt="logo">']
    links = "".join(f'<a href="#there">{name}</a>' for name in named) + '<button aria-label="menu"></button>'
    (tmp_path / "index.html").write_text(HEAD + links)
    assert check_site.problems(tmp_path) == []


def test_pale_text_and_code_are_found_in_both_schemes(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text(HEAD)
    (tmp_path / "theme.css").write_text(
        "html[data-theme=light]{--pst-color-text-base:#777;--pst-color-background:#fff;--pst-color-link:var(--pst-color-a)}"
        "html[data-theme=light]{--pst-color-a:#000}"
        'html[data-theme="dark"] .highlight { background: #111 } html[data-theme="dark"] .highlight .k { color: #222 }'
    )
    assert check_site.problems(tmp_path) == [
        "theme.css: code .k (dark): contrast 1.2 of #222 on #111",
        "theme.css: text-base (light): contrast 4.5 of #777 on #fff",
    ]


def test_a_focus_that_cannot_be_seen_is_found(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text(HEAD)
    (tmp_path / "site.css").write_text("a:focus { outline: none }")
    assert check_site.problems(tmp_path) == ["site.css: hides the keyboard focus"]


def test_contrast_is_that_of_the_guidelines(check_site: ModuleType) -> None:
    assert check_site.contrast("#000", "#ffffff") == pytest.approx(21)
    assert check_site.contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)
