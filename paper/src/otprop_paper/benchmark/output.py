"""The files of a run: CSV with all rows, Markdown with the tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otprop.files import write_atomic
from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.ranks import mean_ranks
from otprop_paper.benchmark.tables import NOT_RUN, ResultRow, ScoreEntry, ScoreTable, make_table

COLUMNS = (
    *("dataset", "method", "percent", "split", "labels", "tuning"),
    *("nmi_unlabelled", "ari_unlabelled", "accuracy_unlabelled", "nmi_all", "ari_all", "accuracy_all", "ece"),
    *("n_rows", "n_labelled", "params", "chosen_by", "hidden_score", "n_candidates", "thinned", "seconds"),
    *("version", "code", "data"),
)


@dataclass(frozen=True)
class Origin:
    """The command, version and commit of a run, for the head of every file.

    Attributes
    ----------
    command : str
    version : str
    commit : str, empty where unknown
    date : str
    work : str, the number of labelled tables and the time; empty where unknown
    """

    command: str
    version: str
    commit: str
    date: str
    work: str = ""

    def items(self) -> list[tuple[str, str]]:
        """Names and values, unknown ones left out."""
        pairs = [("command", self.command), ("version", self.version), ("commit", self.commit), ("date", self.date)]
        pairs.append(("work", self.work))
        return [(name, " ".join(value.split())) for name, value in pairs if value]


def csv_text(rows: Sequence[ResultRow], origin: Origin) -> str:
    """All rows as CSV, after '#' lines with their origin."""
    out = io.StringIO()
    for name, value in origin.items():
        out.write(f"# {name}: {value}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_field(name, row[name]) for name in COLUMNS])
    return out.getvalue()


def _field(name: str, value: Any) -> Any:
    if name == "params":
        return json.dumps(value, sort_keys=True)
    if name == "seconds":
        return f"{value:.4g}"
    if isinstance(value, float):
        return "" if value != value else f"{value:.10g}"
    return value


def read_csv(path: Path) -> list[ResultRow]:
    """The rows that `csv_text` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [{name: _value(name, text) for name, text in row.items()} for row in rows]


_TEXTS = ("dataset", "method", "labels", "tuning", "chosen_by", "thinned", "version", "code", "data")
_COUNTS = ("split", "n_rows", "n_labelled", "n_candidates")


def _value(name: str, text: str) -> Any:
    if name == "params":
        return json.loads(text)
    if name in _COUNTS:
        return int(text)
    return text if name in _TEXTS else float(text or "nan")


def markdown_text(rows: Sequence[ResultRow], origin: Origin, heading: str) -> str:
    """The tables in Markdown."""
    blocks = [f"# {_plain(heading)}", "\n".join(f"- {name}: `{_plain(value)}`" for name, value in origin.items())]
    for where in ("unlabelled", "all"):
        for score in ("nmi", "ari", "accuracy"):
            table = make_table(rows, score, where)
            blocks += [f"## {table.title}", _markdown_table(table)]
            if where == "unlabelled":
                blocks.append(_rank_sentence(table))
            blocks += ["\n".join(f"† {_plain(note)}." for note in table.notes)] if table.notes else []
    return "\n\n".join(block for block in blocks if block) + "\n"


def _plain(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;").replace("\n", " ")


def _markdown_table(table: ScoreTable) -> str:
    """Ours, in brackets the difference to the paper's printed figure; the best in bold."""
    head = ["data set", "labelled", *(METHODS[method].title for method in table.methods)]
    body = [["---", "---:", *("---:" for _ in table.methods)]]
    for dataset, percent in table.cells:
        entries = [table.entries.get((dataset, percent, method)) for method in table.methods]
        body.append([_plain(dataset), f"{percent:g} %", *(_cell(entry) for entry in entries)])
        if any(entry is not None and entry.paper is not None for entry in entries):
            body.append(["", "paper", *("" if e is None or e.paper is None else f"{e.paper:.4f}" for e in entries)])
            body.append(
                [
                    "",
                    "difference",
                    *("" if e is None or e.difference is None else f"{e.difference:+.4f}" for e in entries),
                ]
            )
    body.append(["mean", "", *(table.mean_text(method) for method in table.methods)])
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, *body])


def _cell(entry: ScoreEntry | None) -> str:
    if entry is None:
        return NOT_RUN
    text = f"**{entry.ours:.4f}**" if entry.best else f"{entry.ours:.4f}"
    return text + ("†" if entry.thinned else "")


def _rank_sentence(table: ScoreTable) -> str:
    ranks = mean_ranks(table)
    listed = ", ".join(f"{METHODS[m].title} {mean:.2f}" for m, mean in zip(ranks.methods, ranks.means, strict=True))
    where = f"{ranks.n_cells} cells" + (" that have all methods" if ranks.n_cells < len(table.cells) else "")
    text = f"Mean ranks over {where}, 1 is best: {listed}."
    if ranks.critical == ranks.critical:
        friedman = f"; Friedman p = {ranks.p_value:.2g}" if ranks.p_value == ranks.p_value else ""
        text += (
            f" Critical difference (Nemenyi, 5 %): {ranks.critical:.2f}{friedman}; the percentages of one data set are"
        )
        text += " not independent."
    return text


def write_files(folder: Path, stem: str, texts: dict[str, str]) -> list[Path]:
    """Write `<stem>.<suffix>` for each suffix, each whole or not at all."""
    paths = []
    for suffix, text in texts.items():
        path = folder / f"{stem}.{suffix}"
        write_atomic(path, text, force=True)
        paths.append(path)
    return paths
