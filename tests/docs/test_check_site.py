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


def test_a_site_whose_links_lead_somewhere_has_no_problem(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "site.css").write_text("body { color: black }")
    (tmp_path / "index.html").write_text('<link rel="stylesheet" href="site.css"><a href="sub/a.html#there">a</a>')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.html").write_text('<h1 id="there">A</h1><a href="../index.html">b</a><a href="#there">c</a>')
    (tmp_path / "sub" / "b.html").write_text('<a href="https://example.org">elsewhere, if the reader wants to</a>')
    assert check_site.problems(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="nowhere.html">a</a>', "there is no nowhere.html"),
        ('<a href="#nowhere">a</a>', "#nowhere has no such anchor"),
        ('<img src="picture.png">', "there is no picture.png"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from another machine"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loads //example.org/a.css from another machine"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(text: str, problem: str, tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text(text)
    assert check_site.problems(tmp_path) == [f"index.html: {problem}"]


def test_a_style_sheet_that_fetches_is_found(tmp_path: Path, check_site: ModuleType) -> None:
    (tmp_path / "index.html").write_text("<p>a</p>")
    (tmp_path / "site.css").write_text("@font-face { src: url(https://example.org/font.woff2) }")
    assert check_site.problems(tmp_path) == ["site.css: fetches from another machine"]
