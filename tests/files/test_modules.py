"""The modules below the command line: no import cycles, no option of the command in a message."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import otprop

ROOT = Path(otprop.__file__).parent


def test_the_modules_import_one_another_in_one_direction():
    graph = {}
    for path in (ROOT / "files").glob("_[a-z]*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        graph[f"otprop.files.{path.stem}"] = {name for name in found if name.startswith("otprop.files._")}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph) > 5


@pytest.mark.parametrize("path", sorted((ROOT / "files").glob("*.py")), ids=lambda path: path.stem)
def test_no_message_names_an_option_of_the_command(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if re.search(r"(^|\s)--[a-z]", text)] == []
