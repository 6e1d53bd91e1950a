"""Time and peak memory of `otprop label` on a mixed table of a million rows and 20 columns, one label in a thousand.

    python benchmarks/label_file.py                  a million rows, Parquet to Parquet
    python benchmarks/label_file.py --rows 100000    fewer
    python benchmarks/label_file.py --format csv     text instead

The table is made in a process of its own; the command runs in another, whose time and peak memory are told. A line a
run goes to benchmarks/results/label_file.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import argument_parser, commit, read_csv, write_csv

FILE = "label_file.csv"
CLASSES = ("north", "south", "east", "west", "centre")
N_NUMBERS, SHARE, GAPS = 11, 0.001, 0.03
WORDS = ("clear", "dry", "wet", "cold", "mild", "windy", "calm", "steep", "flat", "sandy", "stony", "shaded", "open")


def make(n_rows: int, path: Path) -> None:
    """Numbers, categories, booleans, dates, text, an identifier and the target, with gaps; the truth goes beside it."""
    import pandas as pd

    random = np.random.default_rng(0)
    classes = random.choice(len(CLASSES), n_rows, p=(0.35, 0.25, 0.2, 0.15, 0.05))
    group = classes * 3 + random.integers(0, 3, n_rows)  # three clusters a class
    centres = random.normal(0, 1.3, (3 * len(CLASSES), N_NUMBERS))
    columns: dict[str, object] = {"id": [f"R{number:07d}" for number in range(n_rows)]}
    for place in range(N_NUMBERS):
        values = centres[group, place] + random.normal(size=n_rows)
        columns[f"number_{place}"] = np.where(random.random(n_rows) < GAPS, np.nan, values).round(4)
    for name, n_categories in (("soil", 6), ("owner", 40), ("grade", 4)):
        shares = random.dirichlet(np.ones(n_categories), len(CLASSES))
        names = np.array([f"{name} {number}" for number in range(n_categories)], dtype=object)
        drawn = (random.random((n_rows, 1)) > shares.cumsum(axis=1)[classes]).sum(axis=1).clip(max=n_categories - 1)
        columns[name] = np.where(random.random(n_rows) < GAPS, None, names[drawn])
    columns["irrigated"] = random.random(n_rows) < np.array([0.1, 0.3, 0.5, 0.7, 0.9])[classes]
    days = random.integers(0, 365, n_rows) + 20 * classes
    columns["seen"] = np.datetime64("2023-01-01") + days.astype("timedelta64[D]")
    first, second, third = (np.array(WORDS, dtype=object)[random.integers(0, len(WORDS), n_rows)] for _ in range(3))
    columns["remark"] = first + " and " + second + ", " + third
    columns["constant"] = "1"
    known = random.random(n_rows) < SHARE
    known[[int(np.flatnonzero(classes == code)[0]) for code in range(len(CLASSES))]] = True
    columns["region"] = np.where(known, np.array(CLASSES, dtype=object)[classes], None)
    frame = pd.DataFrame(columns)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    np.save(path.with_suffix(".npy"), classes)


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds and gigabytes at the peak of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, used.ru_maxrss / 2**20


def accuracy(path: Path, truth: np.ndarray) -> float:
    """Of the rows that the command labelled."""
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    new = (frame["region_source"] == "propagated").to_numpy()
    return float((frame["region_label"].to_numpy() == np.array(CLASSES, dtype=object)[truth])[new].mean())


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.rows, options.make)
        return
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / f"table.{options.format}"
        out, page = source.with_stem("labelled"), Path(scratch) / "page.html"
        subprocess.run([sys.executable, __file__, "--rows", str(options.rows), "--make", str(source)], check=True)
        command = [sys.executable, "-m", "otprop", "label", str(source), "--target", "region", "-o", str(out)]
        seconds, gigabytes = measured([*command, "--report", str(page)])
        line = {
            "rows": options.rows,
            "columns": 20,
            "format": options.format,
            "labels": "0.1 %",
            "seconds": f"{seconds:.0f}",
            "gigabytes": f"{gigabytes:.2f}",
            "accuracy": f"{accuracy(out, np.load(source.with_suffix('.npy'))):.4f}",
            "page_megabytes": f"{page.stat().st_size / 2**20:.1f}",
            "commit": commit(),
        }
    print(json.dumps(line))
    key = ("rows", "format")
    kept = [old for old in read_csv(FILE) if any(str(line[name]) != old[name] for name in key)]
    write_csv(FILE, [*kept, line])


if __name__ == "__main__":
    main()
