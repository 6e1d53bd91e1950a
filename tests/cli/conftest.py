"""Files to label."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def lots(tmp_path: Path) -> Path:
    """120 lots of three kinds in a CSV file, 12 of them labelled."""
    random = np.random.default_rng(0)
    path = tmp_path / "lots.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["lot", "weight", "colour", "kind"])
        for number in range(120):
            kind = number % 3
            weight = f"{random.normal(100 + 40 * kind, 4):.1f}"
            colour = ("green", "red", "yellow")[kind if random.random() < 0.8 else 0]
            out.writerow([f"{number:03d}", weight, colour, ("a", "b", "c")[kind] if number < 12 else ""])
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by an independent reader."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
