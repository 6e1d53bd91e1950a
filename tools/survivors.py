"""Write the mutants that no test noticed, with what each changed, to mutants/survivors.txt.

python tools/survivors.py        (after `mutmut run`, in the same environment)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MUTMUT = str(Path(sys.executable).parent / "mutmut")
SURVIVORS = Path("mutants") / "survivors.txt"
FOUND = ("survived", "no tests", "suspicious")


def ask(*arguments: str) -> str:
    """What mutmut prints."""
    return subprocess.run([MUTMUT, *arguments], check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Write the file and say how many there are."""
    states = [line.strip().rsplit(": ", 1) for line in ask("results").splitlines() if ": " in line]
    survivors = [(name, state) for name, state in states if state in FOUND]
    left = sum(state == "not checked" for _, state in states)
    with SURVIVORS.open("w", encoding="utf-8") as file:
        for name, state in survivors:
            changed = [
                line for line in ask("show", name).splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
            ]
            file.write(f"{name}: {state}\n" + "".join(f"    {line}\n" for line in changed))
    print(f"{len(survivors)} survivors in {SURVIVORS}, {left} mutants not yet checked")


if __name__ == "__main__":
    main()
