"""Command, file, and DataFrames of any types give the same labels and announce the same error, on real tables."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop.cli import main

pd = pytest.importorskip("pandas")

TABLES = Path(os.environ.get("OTPROP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "tables"
N_ROWS, N_LABELS = 60, 30
QUICK = {"evidence": None}  # the geometry alone: the features decide whether a frame is read as a file is


def tables() -> list[tuple[str, str]]:
    """Name and target of every other table; one that is skipped where there is no data."""
    if not (TABLES / "tables.csv").exists():
        return [("no data", "")]
    with (TABLES / "tables.csv").open(encoding="utf-8", newline="") as file:
        return [(row["name"], row["target"]) for row in csv.DictReader(file)][::2]


def cut(name: str, target: str, path: Path) -> None:
    """A sample of the rows, half of them without their label."""
    with gzip.open(TABLES / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    chosen = np.random.default_rng(0).choice(len(rows), min(N_ROWS, len(rows)), replace=False)
    kept, place = [rows[number] for number in chosen], head.index(target)
    for row in kept[N_LABELS:]:
        row[place] = ""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *kept])


def frames(path: Path) -> dict[str, Any]:
    """The file as a user may have read it."""
    found = {"text": pd.read_csv(path, dtype=str), "inferred": pd.read_csv(path)}
    dates = [column for column in found["inferred"] if "date" in column.lower()]
    if dates:
        found["dates"] = pd.read_csv(path, parse_dates=dates)
    polars = pytest.importorskip("polars")
    found["polars"] = polars.read_csv(path, try_parse_dates=True, infer_schema_length=None)
    return found


@pytest.mark.parametrize(("name", "target"), tables())
def test_every_way_in_gives_the_same_labels(name: str, target: str, tmp_path: Path, capsys: Any) -> None:
    if name == "no data":
        pytest.skip("no tables: set OTPROP_DATA")
    path, out = tmp_path / "table.csv", tmp_path / "out.csv"
    cut(name, target, path)
    command = ["label", str(path), "--target", target, "--set", "evidence=None", "--json", "--quiet", "-o", str(out)]
    assert main(command) == 0
    announced = json.loads(capsys.readouterr().out)
    with out.open(encoding="utf-8", newline="") as file:
        expected = [row[f"{target}_label"] for row in csv.DictReader(file)]
    for way, data in {"file": path, **frames(path)}.items():
        result = otprop.label(data, target, settings=QUICK)
        labels = result.table[f"{target}_label"].to_list()
        assert [_text(label) for label in labels] == expected, way
        assert result.expected_error == announced["expected_error"], way
        assert list(result.error_range) == announced["expected_error_range"], way


def _text(label: Any) -> str:
    """A label as the file has it: 1 and 1.0 are the same number, of types that pandas chose."""
    return f"{label:g}" if isinstance(label, float) else str(label)
