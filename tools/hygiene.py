"""Check text files: no blanks at the end of a line, one newline at the end, no conflict marks, none too large.

python tools/hygiene.py FILE ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LARGEST = 1_000_000  # bytes
MARKS = (b"<<<<<<< ", b">>>>>>> ")


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a file, each with its line where it has one."""
    data = path.read_bytes()
    if len(data) > LARGEST:
        yield f"{path}: {len(data)} bytes, more than {LARGEST}"
    if data and (not data.endswith(b"\n") or data.endswith(b"\n\n")):
        yield f"{path}: must end with one newline"
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line != line.rstrip(b" \t\r"):
            yield f"{path}:{number}: blanks or a carriage return at the end of the line"
        if line.startswith(MARKS):
            yield f"{path}:{number}: a conflict mark"


def main() -> int:
    """Print the problems of the files named on the command line."""
    found = [problem for name in sys.argv[1:] for problem in problems(Path(name))]
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
