"""The reference has every public name and command, each with an example."""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.util import find_spec

import pytest

import otprop.files
from otprop.cli._command import COMMANDS
from tests.docs.pages import DOCS, ROOT, blocks
from tests.test_public_face import PUBLIC_PACKAGES

PAGES = sorted((DOCS / "reference").glob("*.md"))
MODULE = re.compile(r"\.\. currentmodule:: (\S+)(.*?)```", re.DOTALL)


def listed() -> dict[str, object]:
    """What the reference lists, by its full name."""
    found = {}
    for module, text in (match for page in PAGES for match in MODULE.findall(page.read_text(encoding="utf-8"))):
        if find_spec(module) is None:
            continue
        for entry in re.findall(r"^   ([A-Za-z_][\w.]*)$", text, re.MULTILINE):
            path, _, name = f"{module}.{entry}".rpartition(".")
            found[f"{module}.{entry}"] = getattr(importlib.import_module(path), name)
    return found


LISTED = listed()


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    for name in importlib.import_module(package).__all__:
        constant = name == "__version__" or f"`{package}.{name}`" in text
        own_use = package == "otprop.files" and inspect.isfunction(getattr(otprop.files, name))
        assert f"{package}.{name}" in LISTED or constant or own_use, f"docs/reference does not list {package}.{name}"


@pytest.mark.parametrize("name", LISTED)
def test_everything_in_the_reference_has_an_example(name: str) -> None:
    text = inspect.getdoc(LISTED[name]) or ""
    assert re.search(r"^Examples\n-{8}$", text, re.MULTILINE)
    assert ">>> " in text


def test_every_command_has_its_help_and_an_example() -> None:
    page = DOCS / "reference" / "commands.md"
    sections = re.split(r"^## otprop ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    known = set(COMMANDS)
    assert {section.split("\n", 1)[0] for section in sections} == known
    assert {block.text.split()[1] for block in blocks(page) if block.language == "sh"} == known
    assert all(f"```{{command-help}} {section.split(chr(10), 1)[0]}\n" in section for section in sections)


def test_the_gallery_has_scripts_with_a_title_and_a_picture() -> None:
    scripts = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(scripts) >= 16
    titles = set()
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        compile(text, str(script), "exec")
        match = re.match(r'"""\n(.+)\n(=+)\n\n', text)
        assert match, script
        assert len(match[1]) == len(match[2]), script
        assert "plt.show()" in text, script
        titles.add(match[1])
    assert len(titles) == len(scripts)
