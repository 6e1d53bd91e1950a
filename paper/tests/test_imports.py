"""The experiment uses otprop as a user does; `PRIVATE` is all that it takes beside public names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import otprop
import otprop_paper

PUBLIC = {"otprop", "otprop.files", "otprop.model_selection"}
PRIVATE = {
    "otprop._base": {"Propagator"},
    "otprop._labels": {"UNLABELED", "Labels"},
    "otprop._progress": {"ProgressCallback", "no_progress"},
    "otprop._validation": {"ParameterError", "check_choice", "check_count", "check_number", "did_you_mean"},
    "otprop.cli._streams": {"bar"},
    "otprop.geometry.parallel": {"row_blocks"},
    "otprop.report.charts": {"Chart", "Element", "Point", "line", "marker", "polyline", "text", "ticks"},
    "otprop.report.page": {"render_page"},
}


def imported(package: Path) -> Iterator[tuple[str, str]]:
    """The modules and names that the files of a package, or a file, import."""
    for path in package.rglob("*.py") if package.is_dir() else [package]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)


def test_experiment_imports_public_names_and_few_others() -> None:
    found: dict[str, set[str]] = {}
    for module, name in imported(Path(otprop_paper.__file__).parent):
        if module.split(".")[0] == "otprop" and module not in PUBLIC:
            found.setdefault(module, set()).add(name)
    assert found == PRIVATE


def test_otprop_does_not_import_the_experiment() -> None:
    modules = {module.split(".")[0] for module, _ in imported(Path(otprop.__file__).parent)}
    assert "otprop" in modules
    assert "otprop_paper" not in modules


def test_modules_of_the_data_sets_import_one_another_in_one_direction() -> None:
    folder = Path(otprop_paper.__file__).parent / "datasets"
    graph = {
        f"otprop_paper.datasets.{path.stem}": {
            module for module, _ in imported(path) if module.startswith("otprop_paper.datasets._")
        }
        for path in folder.glob("_[a-z]*.py")
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph) > 5
