"""Run a tool of the project's own environment: ``python tools/in_venv.py ruff check .``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"


def main() -> int:
    """Run ``python -m TOOL ARGUMENTS`` with the Python of .venv."""
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"{python} is missing: run `make lint` once, which creates it", file=sys.stderr)
        return 1
    return subprocess.call([str(python), "-m", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
