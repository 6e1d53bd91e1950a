"""The packages import one another in one direction only; `ALLOWED` is the whole graph."""

from __future__ import annotations

import ast
from pathlib import Path

import otprop

ROOT = Path(otprop.__file__).parent

# package or root module: what it may import, beside itself
ALLOWED: dict[str, set[str]] = {
    "_warnings": set(),
    "_validation": set(),
    "_labels": {"_warnings"},
    "geometry": {"_validation"},
    "transport": {"_validation", "geometry"},
    "evidence": {"geometry"},
    "propagation": {"_labels", "_progress", "_validation", "evidence", "geometry", "transport"},
    "_progress": {"propagation"},
    "_parameters": {"_otp", "_validation", "geometry", "propagation"},
    "_base": {"_labels", "_validation"},
    "_otp": {"_base", "_labels", "_parameters", "_progress", "_warnings", "geometry", "propagation"},
}


def part_of(module: str) -> str:
    """The package below otprop, or the root module, that a module belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


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
