"""The pages of the documentation, and what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
TABLE_OF_CONTENTS = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^( *)(`{3,})(\{?[\w-]*\}?)[^\n]*\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of code; `line` is the number of its first line in the page."""

    language: str
    text: str
    line: int


def toctree(page: Path) -> list[Path]:
    """The pages that a page lists."""
    entries = []
    for block in TABLE_OF_CONTENTS.findall(page.read_text(encoding="utf-8")):
        lines = [line.strip() for line in block.splitlines()]
        entries += [page.parent / f"{line}.md" for line in lines if line and not line.startswith(":")]
    return entries


def guide_pages() -> list[Path]:
    """The pages of the guide."""
    return toctree(DOCS / "guide.md")


def documents() -> list[Path]:
    """All documents in Markdown."""
    pages = sorted([*DOCS.glob("*.md"), *(DOCS / "reference").glob("*.md")])
    return [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *pages]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order, without the indentation of lists."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        indent, _, language, code = match.groups()
        lines = [line.removeprefix(indent) for line in code.splitlines(keepends=True)]
        found.append(Block(language, "".join(lines), text.count("\n", 0, match.start()) + 2))
    return found


def without_code(text: str) -> str:
    """The text of a page without code and equations; lines stay where they are."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    text = FENCE.sub(blank, text)
    text = re.sub(r"`[^`]+`", "", text)
    return re.sub(r"\$[^$\n]+\$", "", text)


def name(page: Path) -> str:
    """The path of a page in the checkout, for names of tests."""
    return page.relative_to(ROOT).as_posix()
