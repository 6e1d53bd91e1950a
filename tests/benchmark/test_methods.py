"""Results are kept as long as the code that decides them is the same, and no longer."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from otprop.benchmark.methods import METHODS

ALWAYS = {"otprop._base", "otprop._labels"}  # in the fingerprint of every method
NO_SAY_IN_ALGORITHM_1 = {
    "otprop._validation": "refuses parameters, changes none",
    "otprop._progress": "shows the rounds",
    "otprop.propagation.row_predictor": "answers for new rows; the benchmark has none",
    "otprop.propagation.class_level": "the other way, marginals='class'",
    "otprop.propagation.calibration": "with marginals='class' alone",
    "otprop.geometry.row_matching": "for the automatic epsilon and for new rows; the benchmark gives epsilon",
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
def test_every_module_that_decides_a_method_is_there(name: str) -> None:
    assert [module for module in METHODS[name].sources if not _exists(module)] == []


def test_the_paper_method_counts_all_it_goes_through_and_nothing_else() -> None:
    listed = set(METHODS["otp-paper"].sources) | ALWAYS
    reached = _reached("otprop._otp", ALWAYS | set(NO_SAY_IN_ALGORITHM_1))
    assert reached - set(NO_SAY_IN_ALGORITHM_1) - listed == set(), "add to its sources, or say here why not"
    assert listed - reached - ALWAYS == set(), "not used any more"


def test_work_on_the_default_leaves_the_results_of_the_paper_method_valid() -> None:
    assert not any("evidence" in module or "diffusion" in module for module in METHODS["otp-paper"].sources)
    assert METHODS["otp-paper"].code() != METHODS["otp"].code()
