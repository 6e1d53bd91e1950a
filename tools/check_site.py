"""Check the built site: links and anchors, nothing loaded from another machine, and that everyone can read it.

Reading it takes: a language and a title per page, one first heading and no level skipped, a text for every picture, a
name for every link and button, keyboard focus in page order and visible, and enough contrast in both colour schemes.

python tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "srcset",
    "video": "src",
    "audio": "src",
}  # what a browser fetches by itself
LINK_KINDS = {"canonical", "next", "prev", "search", "index", "author"}  # of <link>, which are not fetched

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
NAMED = {"a", "button"}  # elements that need a name for those who do not see them
SCHEMES = ("light", "dark")
MIN_CONTRAST = 4.5  # of text of normal size, WCAG 2.2 level AA
TEXT_COLOURS = [("text-base", "background"), ("text-muted", "background"), ("link", "background"),
                ("text-base", "surface"), ("inline-code", "surface")]  # fmt: skip


class Page(HTMLParser):
    """The links, anchors and loaded files of a page, and what is needed to read it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.language, self.title = "", ""
        self.headings: list[int] = []
        self.unreadable: list[str] = []
        self._open: list[tuple[str, list[str]]] = []  # links and buttons that have begun, with their names so far
        self._in_title = False
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
        self._read(tag, values)

    def _read(self, tag: str, values: dict[str, str]) -> None:
        """Collect what the readability of the page depends on."""
        if tag == "html":
            self.language = values.get("lang", "")
        self._in_title = tag == "title"
        if tag in HEADINGS:
            self.headings.append(int(tag[1]))
        if tag == "img" and "alt" not in values:
            self.unreadable.append(f"the picture {values.get('src', '')} has no alt text")
        if int(values.get("tabindex", "0") or 0) > 0:
            self.unreadable.append(f"<{tag}> has the tabindex {values['tabindex']}, which breaks the order of the keys")
        name = (
            values.get("aria-label") or values.get("title") or values.get("aria-labelledby") or values.get("alt") or ""
        )
        for _, names in self._open:
            names.append(name)
        if tag in NAMED and (tag == "button" or "href" in values):
            self._open.append((f"<{tag} {' '.join(f'{key}={value!r}' for key, value in values.items())}>", [name]))

    def handle_data(self, data: str) -> None:
        """Text is the name of the links around it."""
        if self._in_title:
            self.title += data
        for _, names in self._open:
            names.append(data)

    def handle_endtag(self, tag: str) -> None:
        """A link or button that ends has a name now, or none."""
        self._in_title = False
        if tag in NAMED and self._open and self._open[-1][0].startswith(f"<{tag} "):
            start, names = self._open.pop()
            if not "".join(names).strip():
                self.unreadable.append(f"{start} has no name")


def readability(page: Page) -> Iterator[str]:
    """What keeps somebody from reading a page."""
    if not page.language:
        yield "<html> has no lang"
    if not page.title.strip():
        yield "there is no title"
    if page.headings.count(1) != 1:
        yield f"{page.headings.count(1)} first headings, expected one"
    for before, after in zip(page.headings, page.headings[1:], strict=False):
        if after > before + 1:
            yield f"a heading of level {after} follows one of level {before}"
    yield from page.unreadable


def luminance(colour: str) -> float:
    """Relative luminance of a colour "#rgb" or "#rrggbb", WCAG 2.2."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def scheme_colours(css: str, scheme: str) -> dict[str, str]:
    """The colours that the theme defines for a scheme, by name, references resolved."""
    rules = re.findall(rf'html\[data-theme="?{scheme}"?\]\s*{{([^}}]*)}}', css)
    found = dict(re.findall(r"--pst-color-([\w-]+):\s*([^;}]+)", ";".join(rules)))
    for name, value in found.items():
        while match := re.fullmatch(r"var\(--pst-color-([\w-]+)\)", value.strip()):
            value = found.get(match[1], "")
        found[name] = value.strip()
    return found


def pale_text(css: str) -> Iterator[str]:
    """Text and code whose colour is too near that of their background."""
    for scheme in SCHEMES:
        colours = scheme_colours(css, scheme)
        pairs = [(text, colours.get(text, ""), colours.get(ground, "")) for text, ground in TEXT_COLOURS]
        code = rf'html\[data-theme="?{scheme}"?\] \.highlight'
        ground = re.search(rf"{code}\s*{{[^}}]*background:\s*(#\w+)", css)
        if ground:
            names = re.findall(rf"{code} (\.\w+)\s*{{[^}}]*?(?<!-)color:\s*(#\w+)", css)
            pairs += [(f"code {name}", colour, ground[1]) for name, colour in names]
        for name, text, behind in pairs:
            if text.startswith("#") and behind.startswith("#") and contrast(text, behind) < MIN_CONTRAST:
                yield f"{name} ({scheme}): contrast {contrast(text, behind):.1f} of {text} on {behind}"


def style_problems(path: Path) -> Iterator[str]:
    """What is wrong with a style sheet."""
    css = path.read_text(encoding="utf-8", errors="replace")
    if any(mark in css for mark in ("url(http", 'url("http', "url(//")):
        yield "fetches from another machine"
    if re.search(r":focus[^{]*{[^}]*outline:\s*(?:none|0)\b", css) and ":focus-visible" not in css:
        yield "hides the keyboard focus"
    yield from pale_text(css)


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
        found += [f"{name}: {problem}" for problem in readability(page)]
    found += [
        f"{path.relative_to(folder).as_posix()}: {problem}"
        for path in sorted(folder.rglob("*.css"))
        for problem in style_problems(path)
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
