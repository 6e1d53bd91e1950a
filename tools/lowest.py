"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Every requirement ``name>=x`` of the package and of the extras named on the command line becomes ``name==x``;
``otprop[a,b]`` inside an extra is followed. A requirement without a floor is an error, so that none is forgotten.

    python tools/lowest.py test > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[(?P<extras>[^\]]*)\])?\s*(?P<versions>[^;]*)(;.*)?")
FLOOR = re.compile(r"(?:>=|==)\s*(?P<version>[A-Za-z0-9.]+)")


def lowest(project: dict, extras: list[str]) -> dict[str, str]:
    """The lowest version of each requirement of the project with these extras."""
    floors: dict[str, str] = {}
    optional = project.get("optional-dependencies", {})
    pending, seen = list(project["dependencies"]), set()
    waiting = list(extras)
    while pending or waiting:
        while waiting:
            extra = waiting.pop()
            if extra not in seen:
                seen.add(extra)
                pending += optional[extra]
        if not pending:
            continue
        requirement = pending.pop()
        parts = REQUIREMENT.fullmatch(requirement.strip())
        if parts is None:
            raise SystemExit(f"pyproject.toml: cannot read the requirement {requirement!r}")
        if parts["name"] == project["name"]:
            waiting += [extra.strip() for extra in parts["extras"].split(",")]
            continue
        floor = FLOOR.search(parts["versions"])
        if floor is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lowest version; write {parts['name']}>=...")
        floors[parts["name"]] = floor["version"]
    return floors


def main() -> None:
    """Print the constraints."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    for name, version in sorted(lowest(project, sys.argv[1:]).items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
