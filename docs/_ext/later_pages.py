"""Links and table-of-contents entries of pages that are not written yet are left out, without a warning."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

LATER = ("studio", "many-rows", "networks")


def drop_missing(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave out what would lead nowhere."""
    for page in LATER:
        if not (Path(app.srcdir) / f"{page}.md").exists():
            source[0] = re.sub(rf"(?m)^{page}\n", "", source[0])
            source[0] = re.sub(rf"\[([^\]]+)\]\({page}\.md(#[\w-]+)?\)", r"\1", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every page as it is read."""
    app.connect("source-read", drop_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
