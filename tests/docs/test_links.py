"""Links and anchors of the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import DOCS, documents, name, toctree, without_code

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CARD = re.compile(r"^:link: (\S+)$", re.MULTILINE)
BUILT = {DOCS / "gallery" / "index.md"}  # by sphinx-gallery


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub and MyST make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def problems(page: Path, text: str) -> list[str]:
    """Links in the text of a page that lead nowhere."""
    found = []
    prose = without_code(text.replace("[`", "[").replace("`]", "]"))
    for address in LINK.findall(prose):
        parts = urlsplit(address)
        if parts.scheme:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.exists():
            found.append(f"{name(page)}: there is no {address}")
        elif parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target):
            found.append(f"{name(page)}: {address} has no such heading")
    return found


@pytest.mark.parametrize("page", documents(), ids=name)
def test_every_link_of_a_document_leads_somewhere(page: Path) -> None:
    assert problems(page, page.read_text(encoding="utf-8")) == []


def test_every_page_is_reached_from_the_start_page() -> None:
    reached, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page not in reached and page.exists():
            reached.add(page)
            todo += toctree(page)
    assert {page for page in documents() if DOCS in page.parents} == reached


@pytest.mark.parametrize("page", ["index.md", "guide.md", "research.md", "reference/index.md"])
def test_tables_of_contents_and_cards_name_pages_that_are_there(page: str) -> None:
    cards = [DOCS / f"{target}.md" for target in CARD.findall((DOCS / page).read_text(encoding="utf-8"))]
    for target in [*toctree(DOCS / page), *cards]:
        assert target.exists() or target in BUILT, target


def test_the_page_for_language_models_names_pages_that_are_there() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    targets = [DOCS / address.replace(".html", ".md") for address in LINK.findall(text)]
    assert len(targets) > 10
    assert [target for target in targets if not target.exists() and target not in BUILT] == []


def test_a_link_to_nowhere_and_a_missing_heading_are_found() -> None:
    text = "[a](nowhere.md), [b](trust.md#no-such-heading), [c](trust.md#when-not-to-believe-it), `[d](code.md)`"
    assert problems(DOCS / "index.md", text) == [
        "docs/index.md: there is no nowhere.md",
        "docs/index.md: trust.md#no-such-heading has no such heading",
    ]
