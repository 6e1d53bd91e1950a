"""Stored results are used as long as the code that determines them is unchanged."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from otprop_paper._methods import METHODS as REGISTRY
from otprop_paper.benchmark.methods import METHODS

ALWAYS = {"otprop._base", "otprop._labels"}  # in the fingerprint of every method
WITHOUT_INFLUENCE = {
    "otprop._validation": "refuses parameters, changes none",
    "otprop._deciding": "decides by another objective than accuracy, and reads what the fit found",
    "otprop._progress": "shows the rounds",
    "otprop._saving": "names classes for model files",
    "otprop._errors": "warns and refuses",
    "otprop.loop.label_issues": "reads what the fit found",
    "otprop.loop.labels_needed": "reads what the fit found",
    "otprop.loop.suggestions": "reads what the fit found",
}


def _file(module: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _imports(module: str) -> set[str]:
    """The modules of the package that a module imports, at its top or inside a function."""
    path = _file(module)
    assert path is not None
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "otprop":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = (path_of := _file(node.module)) is not None and path_of.name == "__init__.py"
                found.add(inner if is_module and _exists(inner) else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "otprop"}
    return found


def _exists(module: str) -> bool:
    try:
        return _file(module) is not None
    except ModuleNotFoundError:
        return False


def _reached(start: str, not_through: set[str]) -> set[str]:
    seen, todo = set(), {start}
    while todo:
        module = todo.pop()
        seen.add(module)
        if module not in not_through:
            todo |= _imports(module) - seen
    return seen


@pytest.mark.parametrize("name", METHODS)
def test_every_module_in_the_fingerprint_exists(name: str) -> None:
    assert [module for module in METHODS[name].code_modules if not _exists(module)] == []


@pytest.mark.parametrize("name", ["otp", "otp-paper"])
def test_the_fingerprint_covers_every_module_that_otp_imports(name: str) -> None:
    listed = METHODS[name].code_modules
    reached = _reached("otprop._otp", ALWAYS | set(WITHOUT_INFLUENCE)) - ALWAYS - set(WITHOUT_INFLUENCE)
    covered = {module for module in reached if module in listed or module.rpartition(".")[0] in listed}
    assert reached - covered == set(), "add to its code_modules, or state in WITHOUT_INFLUENCE why not"
    assert {module for module in listed if not any(f"{r}.".startswith(f"{module}.") for r in reached)} == set()


def test_a_method_takes_name_and_title_from_the_registry() -> None:
    for name, method in REGISTRY.items():
        assert (METHODS[name].name, METHODS[name].title) == (name, method.title)
