"""Check the built site: every link and anchor leads somewhere, and nothing is loaded from another machine.

python tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}  # what a browser fetches by itself
LINK_KINDS = {"canonical", "next", "prev", "search", "index", "author"}  # of <link>, which are not fetched


class Page(HTMLParser):
    """The links, anchors and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        values = {name: value or "" for name, value in attrs}
        for name in ("id", "name"):
            if name in values:
                self.anchors.add(values[name])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and not set(values.get("rel", "").split()) & LINK_KINDS:
            self.loaded.append(values[LOADED[tag]])


def problems(folder: Path) -> list[str]:
    """What is wrong, one line each."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        for address in page.loaded:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or address.startswith("//"):
                found.append(f"{name}: loads {address} from another machine")
            elif parts.path and parts.scheme != "data" and not (path.parent / unquote(parts.path)).exists():
                found.append(f"{name}: there is no {address}")
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.exists():
                found.append(f"{name}: there is no {address}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {address} has no such anchor")
    found += [
        f"{path.relative_to(folder).as_posix()}: fetches from another machine"
        for path in sorted(folder.rglob("*.css"))
        if any(
            mark in path.read_text(encoding="utf-8", errors="replace") for mark in ("url(http", 'url("http', "url(//")
        )
    ]
    return sorted(set(found))


def main() -> int:
    """Print the problems of the site in the folder named on the command line."""
    folder = Path(sys.argv[1]).resolve()
    found = problems(folder)
    for problem in found:
        print(problem)
    n_pages = sum(1 for _ in folder.rglob("*.html"))
    print(f"{n_pages} pages: {len(found)} problems")
    return int(bool(found) or not n_pages)


if __name__ == "__main__":
    sys.exit(main())
