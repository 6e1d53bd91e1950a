"""The tables of the benchmark on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.tables import NOT_RUN, ResultRow, ScoreEntry, ScoreTable, make_table

WIDE = 160  # columns where the output goes to a file


def print_tables(rows: Sequence[ResultRow]) -> None:
    """Print the paper's two tables: ours, the paper's figure, the difference; the best in bold."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE, highlight=False)
    for score in ("nmi", "ari"):
        table = make_table(rows, score)
        per_table = max(3, (console.width - 34) // 10)
        for start in range(0, len(table.methods), per_table):
            console.print(_rich_table(table, table.methods[start : start + per_table]))
        for note in table.notes:
            console.print(Text(f"† {note}."))


def _rich_table(table: ScoreTable, methods: tuple[str, ...]) -> RichTable:
    out = RichTable(title=Text(table.title), title_justify="left", box=None, pad_edge=False)
    out.add_column("data set", no_wrap=True, max_width=14)
    out.add_column("", justify="right", no_wrap=True)
    for method in methods:
        out.add_column(Text(METHODS[method].title), justify="right", max_width=9)
    for dataset, percent in table.cells:
        entries = [table.entries.get((dataset, percent, method)) for method in methods]
        out.add_row(Text(_short(dataset)), f"{percent:g} %", *_ours(entries))
        if any(entry is not None and entry.paper is not None for entry in entries):
            papers = [Text("" if e is None or e.paper is None else f"{e.paper:.4f}", style="dim") for e in entries]
            gaps = [Text("" if e is None or e.difference is None else f"{e.difference:+.4f}") for e in entries]
            out.add_row("", "paper", *papers)
            out.add_row("", "diff", *gaps)
    out.add_row("mean", "", *(table.mean_text(method) for method in methods))
    return out


def _short(dataset: str) -> str:
    """The end of a long name."""
    return dataset if len(dataset) <= 14 else f"…{dataset[-13:]}"


def _ours(entries: list[ScoreEntry | None]) -> Iterator[Text]:
    for entry in entries:
        if entry is None:
            yield Text(NOT_RUN, style="dim")
        else:
            text = f"{entry.ours:.4f}" + ("†" if entry.thinned else "")
            yield Text(text, style="bold" if entry.best else "")
