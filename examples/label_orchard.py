"""Label the lots of an orchard from 40 known varieties by `otprop label`, then compare with the truth.

Run with `python examples/label_orchard.py [folder]`; the labelled table and the page go to the folder, `demo` by
default. The table is made by `examples/make_orchard.py`.
"""

import csv
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from otprop.cli import main

here = Path(__file__).parent
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(parents=True, exist_ok=True)
output, page, model = folder / "orchard.csv", folder / "orchard.html", folder / "orchard.model"
console = Console(highlight=False)

source = here / "orchard.csv"
shown = source.relative_to(Path.cwd()) if source.is_relative_to(Path.cwd()) else source
command = ["label", str(shown), "--target", "variety", "-o", str(output)]
command += ["--report", str(page), "--save", str(model), "--force"]
console.print(f"$ otprop {shlex.join(command)}", style="bold", soft_wrap=True)
status = main(command)
if status:
    sys.exit(status)

with (here / "orchard_truth.csv").open(encoding="utf-8", newline="") as file:
    truth = {row["lot"]: row["variety"] for row in csv.DictReader(file)}
with output.open(encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["variety_source"] != "given"]

table = Table(title="Beside the truth, which the command did not see", title_justify="left")
for column in ("confidence", "rows", "expected right", "right"):
    table.add_column(column, justify="right")


def add(words: str, some: list[dict[str, str]]) -> None:
    """One line: what was expected of these rows, and what came."""
    if some:
        expected = sum(float(row["variety_confidence"]) for row in some) / len(some)
        right = sum(row["variety_label"] == truth[row["lot"]] for row in some) / len(some)
        table.add_row(words, str(len(some)), f"{expected:.1%}", f"{right:.1%}")


for low, high in ((0.95, 1.01), (0.8, 0.95), (0.0, 0.8)):
    add(f"{low:.2f} to {min(high, 1):.2f}", [row for row in rows if low <= float(row["variety_confidence"]) < high])
add("all", rows)
console.print()
console.print(table)
console.print(
    f"\nOpen {page} in a browser: the map of the lots, the rounds, the rows to look at first.", soft_wrap=True
)
