"""The packages import one another in one direction only; `ALLOWED` is the whole graph."""

from __future__ import annotations

import ast
import graphlib
from functools import cache
from pathlib import Path

import pytest

import otprop

ROOT = Path(otprop.__file__).parent

# package or root module: what it may import, beside itself
ALLOWED: dict[str, set[str]] = {
    "_errors": set(),
    "_optional": {"_errors"},
    "_validation": {"_errors"},
    "_saving": set(),
    "_progress": {"_errors", "_validation"},
    "_labels": {"_errors", "_validation"},
    "_votes": {"_labels", "_saving", "_validation"},
    "geometry": {"_saving", "_validation"},
    "transport": {"_saving", "_validation", "geometry"},
    "evidence": {"_saving", "_validation", "_votes", "geometry"},
    "propagation": {"_labels", "_progress", "_saving", "_validation", "_votes", "evidence", "geometry", "transport"},
    "loop": {"_saving"},
    "_base": {"_labels", "_validation", "geometry"},
    "_transport_base": {"_base", "_errors", "_labels", "_progress", "_validation", "geometry", "propagation"},
    "_parameters": {"_validation", "evidence", "geometry", "propagation"},
    "_paper_otp": {"_labels", "_parameters", "_saving", "_transport_base", "_validation", "propagation"},
    "_deciding": {"_errors", "_labels", "_transport_base", "_validation", "geometry", "loop", "propagation"},
    "_otp": {
        *("_deciding", "_errors", "_labels", "_paper_otp", "_parameters", "_progress", "_saving", "_validation"),
        *("_votes", "evidence", "geometry", "loop", "propagation"),
    },
    "model_selection": {"_labels", "_validation"},
    "plotting": {"_errors", "_otp", "_paper_otp", "_validation"},
    "files": {"_errors", "_optional", "_validation"},
    "table": {"_errors", "_progress", "_saving", "_validation", "files"},
    "labelling": {
        "_errors",
        "_otp",
        "_paper_otp",
        "_progress",
        "_saving",
        "_validation",
        "_votes",
        "evidence",
        "files",
        "geometry",
        "loop",
        "propagation",
        "table",
    },
    "deep": {
        "_errors",
        "_labels",
        "_optional",
        "_otp",
        "_paper_otp",
        "_progress",
        "_validation",
        "files",
        "propagation",
    },
    "report": {"_errors", "_validation", "labelling", "propagation", "table"},
    "_predict": {"_validation", "files", "labelling", "table"},
    "_label_result": {
        *("_predict", "_progress", "_validation", "files", "labelling", "loop", "propagation", "report", "table"),
    },
    "_label": {"_label_result", "_progress", "_validation", "files", "labelling", "table"},
    "dask": {
        *("_errors", "_label_result", "_labels", "_otp", "_progress", "_validation"),
        *("files", "geometry", "labelling", "propagation", "table"),
    },
    "studio": {
        *("__init__", "_errors", "_label_result", "_progress", "_validation", "_votes"),
        *("files", "labelling", "loop", "report", "table"),
    },
    "cli": {
        *("__init__", "_errors", "_label_result", "_predict", "_progress", "_validation", "_votes"),
        *("dask", "files", "labelling", "loop", "propagation", "report", "studio", "table"),
    },
    "__main__": {"cli"},
    # imported when they are asked for
    "__init__": {
        *("_errors", "_label", "_label_result", "_otp", "_paper_otp", "_predict", "_progress", "propagation"),
    },
}


def part_of(module: str) -> str:
    """The package below otprop, or the root module, that a module belongs to."""
    parts = module.split(".")
    return (
        parts[1]
        if (len(parts) > 1 and (ROOT / parts[1]).is_dir()) or (ROOT / f"{parts[-1]}.py").is_file()
        else "__init__"
    )


@cache
def imports() -> dict[str, set[str]]:
    """For every package and root module, the others it imports, anywhere in its files."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        here = parts[0]
        edges = found.setdefault(here, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "otprop":
                modules = [node.module] if node.module != "otprop" else [f"otprop.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names if alias.name.startswith("otprop.")]
            else:
                continue
            edges |= {part_of(module) for module in modules} - {here}
    return found


def mermaid() -> str:
    """The graph of the packages as CONTRIBUTING.md draws it: an edge from a package to one that it imports."""
    edges = imports()
    also = ("_otp", "_paper_otp", "_label", "_label_result", "_predict")
    shown = [name for name in ALLOWED if not name.startswith("_") or name in also]
    lines = [f"  {here} --> {there}" for here in shown for there in shown if there in edges.get(here, ())]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


@pytest.mark.parametrize("here", sorted(imports()))
def test_a_package_imports_only_what_it_may(here):
    assert imports()[here] <= ALLOWED[here], "a new edge: is it worth it? Then add it to ALLOWED."


def test_every_allowed_edge_is_used():
    assert {here: ALLOWED[here] - found for here, found in imports().items() if ALLOWED[here] - found} == {}


def test_the_allowed_edges_have_no_cycle():
    order = graphlib.TopologicalSorter({here: there - {"__init__"} for here, there in ALLOWED.items()})
    assert list(order.static_order())


def test_contributing_draws_this_graph():
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text.partition("<!-- graph -->\n")[2].partition("\n<!-- /graph -->")[0]
    assert drawn == mermaid(), "run: python -m tests.test_import_graph"


if __name__ == "__main__":  # draw the graph anew
    page = ROOT.parents[1] / "CONTRIBUTING.md"
    head, _, rest = page.read_text(encoding="utf-8").partition("<!-- graph -->\n")
    page.write_text(
        f"{head}<!-- graph -->\n{mermaid()}\n<!-- /graph -->{rest.partition('<!-- /graph -->')[2]}", encoding="utf-8"
    )
