"""Pages and sections on parts that are not installed, or not there, are left out: entries of tables of contents, links
and what stands between `<!-- needs: MODULE -->` and `<!-- /needs -->`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

PAGES = {
    "studio": "otprop.studio",
    "many-rows": "otprop.dask",
    "networks": "otprop.deep",
    "reference/dask": "otprop.dask",
    "reference/networks": "otprop.deep",
}
NEEDS = re.compile(r"<!-- needs: ([\w.]+) -->\n(.*?)<!-- /needs -->\n", re.DOTALL)


def missing_pages(folder: Path) -> list[str]:
    """The pages to leave out."""
    return [page for page, module in PAGES.items() if not (folder / f"{page}.md").exists() or not find_spec(module)]


def leave_out(app: Sphinx, config: Config) -> None:
    """Leave out the pages themselves."""
    config.exclude_patterns += [f"{page}.md" for page in missing_pages(Path(app.srcdir))]


def without_missing(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave out what would lead to them."""
    text = NEEDS.sub(lambda match: match[2] if find_spec(match[1]) else "", source[0])
    for page in missing_pages(Path(app.srcdir)):
        name = page.rpartition("/")[2]
        if docname.rpartition("/")[0] == page.rpartition("/")[0]:
            text = re.sub(rf"(?m)^{name}\n", "", text)
        text = re.sub(rf"\[([^\]]+)\]\((?:[\w/.]*/)?{name}\.md(?:#[\w-]+)?\)", r"\1", text)
    source[0] = text


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at the settings, and at every page as it is read."""
    app.connect("config-inited", leave_out)
    app.connect("source-read", without_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
