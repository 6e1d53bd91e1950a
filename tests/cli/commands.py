"""Commands run on a file of lots, and their corrections."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from otprop.cli import main
from otprop.files import read_table

pytest.importorskip("pandas")


FAST = ["--set", "evidence=None"]


def run(command: str, path: Path, *more: str, target: str = "kind") -> int:
    return main([command, str(path), "--target", target, *more])


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def kind_of(number: str) -> str:
    """The true kind of a row of the file, counted from 1."""
    return "abc"[(int(number) - 1) % 3]


def corrections(path: Path, lots: Path, labels: dict[int, str], digest: str | None = None) -> Path:
    """Corrections as a page downloads them."""
    digest = read_table(lots).digest if digest is None else digest
    return write_rows(
        path, [{"row": row, "label": label, "was": "", "file_digest": digest} for row, label in labels.items()]
    )


def label(lots: Path, out: Path, *more: str) -> int:
    return run("label", lots, *FAST, "-o", str(out), "--force", *more)
