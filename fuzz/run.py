"""Fuzzers: random tables, files, models, signals, folders, sessions and requests, for a given time from a given seed.

python fuzz/run.py --seconds 60 --seed 0                     all of them, 60 seconds each
python fuzz/run.py --only models --first 17 --examples 1     one example again
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmarks")]
FUZZERS = (
    "estimators",
    "files",
    "models",
    "kills",
    "manifests",
    "workbooks",
    "checkpoints",
    "corrections",
    "sessions",
    "studio_http",
    "pictures",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzers, print and write the counts; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="for each fuzzer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FUZZERS, default=FUZZERS, metavar="NAME", help=", ".join(FUZZERS))
    parser.add_argument("--first", type=int, default=0, help="number of the first example")
    parser.add_argument("--examples", type=int, help="at most so many examples each; no counts are written")
    options = parser.parse_args(arguments)
    from harness import Run

    rows: list[dict[str, object]] = []
    for name in options.only:
        run = Run(name, options.seed, options.seconds, options.first, options.examples)
        start = time.monotonic()
        importlib.import_module(name).run(run)
        run.count("failed", 0)
        seconds = round(time.monotonic() - start)
        for what, count in run.counts.items():
            rows.append({"fuzzer": name, "outcome": what, "count": count, "seed": run.seed, "seconds": seconds})
            print(f"{name:<12}{what:<44}{count:>8}", flush=True)
        if options.examples is None:
            _write(name, rows)
    return int(any(row["outcome"] == "failed" and row["count"] for row in rows))


def _write(name: str, rows: list[dict[str, object]]) -> None:
    """Put the counts of a fuzzer in the place of its earlier ones from the same seed."""
    from common import commit, read_csv, write_csv  # of benchmarks/

    made = {"commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    new = [{**row, **made} for row in rows if row["fuzzer"] == name]
    others = [row for row in read_csv("fuzz.csv") if (row["fuzzer"], row["seed"]) != (name, str(new[0]["seed"]))]
    write_csv("fuzz.csv", sorted([*others, *new], key=lambda row: FUZZERS.index(str(row["fuzzer"]))))


if __name__ == "__main__":
    sys.exit(main())
