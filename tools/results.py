"""Run the benchmarks whose results are not of the present code, or name them.

    python tools/results.py --check               name the results that are out of date, and what has changed since
    python tools/results.py                       run these, short ones first; hours or days in all
    python tools/results.py tables refit          only these, where they are out of date
    python tools/results.py trust --force -- --draws 1 --jobs 2
    python tools/results.py tables --accept "the same probabilities on 12 tables, bit by bit"

benchmarks/provenance.py has the list of benchmarks and says what a result depends on. A benchmark writes to
benchmarks/results/new/NAME, and its results replace the earlier ones once all of it is done. One that was interrupted
goes on where it stopped, unless the code has changed since. `--accept` marks results as those of the present code
without running anything: for a change that has been shown not to change them. Arguments after `--` are added to the
commands of one benchmark. Then `make figures` writes the documents.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import provenance  # noqa: E402
from provenance import Benchmark  # noqa: E402

STARTED = "started.txt"  # the code with which a benchmark was begun
STORE = "cells.jsonl"
KEPT = (".csv", ".png", ".md", ".jsonl")


def check(names: list[str], folder: Path) -> list[str]:
    """Print what is out of date; the names of its benchmarks."""
    stale = []
    for name in names:
        for file in provenance.BENCHMARKS[name].files:
            changed = provenance.changes(file, folder) if file.endswith(".csv") else []
            made = provenance.origin(folder / file) if (folder / file).exists() else None
            if made and file.endswith(".csv") and not changed and not made.complete:
                changed = [f"of the present code, but perhaps not all of it: {made.command}"]
            if changed:
                when = f" (version {made.version}, {made.day})" if made and made.version else ""
                print(f"{name}: {file}{when}: {'; '.join(changed)}")
                stale.append(name)
    return list(dict.fromkeys(stale))


def missing_packages(benchmark: Benchmark) -> list[str]:
    """The packages that a benchmark needs and that are not installed."""
    installed = {found.metadata["Name"].lower().replace("_", "-") for found in importlib.metadata.distributions()}
    return [package for package in benchmark.needs if package.lower() not in installed]


def prepared(name: str, folder: Path, *, fresh: bool = False) -> Path:
    """The folder in which a benchmark works, with the rows that hold unless `fresh`; new if the code has changed."""
    new, now = folder / "new" / name, "\n".join(provenance.stamp(name)) + "\n"
    started = new / STARTED
    if not fresh and started.exists() and started.read_text(encoding="utf-8") == now:
        return new
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    benchmark = provenance.BENCHMARKS[name]
    if not fresh and benchmark.store and (folder / benchmark.store / STORE).exists():
        (new / benchmark.store).mkdir()
        shutil.copy(folder / benchmark.store / STORE, new / benchmark.store / STORE)
    for file in () if fresh else benchmark.files:
        if (folder / file).exists() and not provenance.changes(file, folder):
            (new / file).parent.mkdir(exist_ok=True)
            shutil.copy(folder / file, new / file)
        elif provenance.peers_hold(file, folder) and (rows := provenance.peer_rows(name, folder / file)):
            with (new / file).open("w", encoding="utf-8", newline="") as out:
                out.write(now)
                writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    started.write_text(now, encoding="utf-8")
    return new


def marked(path: Path, lines: list[str]) -> None:
    """Put comment lines on top of a result, in the place of earlier ones that say the same thing."""
    if path.suffix == ".csv":
        starts = tuple(line.split(":")[0] + ":" for line in lines)
        kept = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(starts)]
        path.write_text("\n".join([*lines, *kept]) + "\n", encoding="utf-8")


def run(name: str, folder: Path, more: list[str], *, fresh: bool = False) -> bool:
    """Run a benchmark; whether its results are in the folder now."""
    benchmark = provenance.BENCHMARKS[name]
    if missing := missing_packages(benchmark):
        print(f"{name}: skipped, not installed: {', '.join(missing)}", flush=True)
        return False
    new = prepared(name, folder, fresh=fresh)
    environment: Mapping[str, str] = os.environ | {"OTPROP_RESULTS": str(new)}
    if benchmark.one_thread:
        environment |= {"OMP_NUM_THREADS": "1"}
    for command in benchmark.commands:
        first, *rest = command.replace("{results}", str(new)).split()
        arguments = [first, *rest] if first == "-m" else [str(ROOT / "benchmarks" / first), *rest]
        print(f"{name}: {' '.join([command, *more])}", flush=True)
        if subprocess.run([sys.executable, *arguments, *more], env=environment, check=False).returncode:
            print(f"{name}: failed; the earlier results stay, and what is done is in {new}", flush=True)
            return False
    for file in benchmark.files:
        if not (new / file).exists():
            print(f"{name}: failed, {file} was not written", flush=True)
            return False
        if not provenance.origin(new / file).code:
            marked(new / file, provenance.stamp(name))
        if file.endswith(".csv") and (changed := provenance.changes(file, new)):
            print(f"{name}: failed, the code or the data changed while it ran: {'; '.join(changed)}", flush=True)
            return False
        if not more:
            marked(new / file, [provenance.COMPLETE])
    for file in (path for path in new.rglob("*") if path.is_file() and path.suffix in KEPT):
        target = folder / file.relative_to(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    shutil.rmtree(new)
    print(f"{name}: written", flush=True)
    return True


def accept(name: str, folder: Path, reason: str) -> None:
    """Mark the results of a benchmark as those of the present code."""
    for file in provenance.BENCHMARKS[name].files:
        marked(folder / file, [*provenance.stamp(name), provenance.COMPLETE, f"# accepted: {reason}"])


def main(arguments: list[str] | None = None, folder: Path = provenance.RESULTS) -> int:
    """Run or check; 1 where something is out of date afterwards."""
    given = sys.argv[1:] if arguments is None else arguments
    given, more = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(provenance.BENCHMARKS))
    parser.add_argument("--check", action="store_true", help="run nothing")
    parser.add_argument("--force", action="store_true", help="run all of it, also what is up to date")
    parser.add_argument("--accept", metavar="REASON", help="mark the results of NAME as those of the present code")
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in provenance.BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(provenance.BENCHMARKS)}")
    if (options.accept or more) and len(options.names) != 1:
        parser.error("--accept and arguments after -- are for one NAME")
    names = options.names or list(provenance.BENCHMARKS)
    if options.accept:
        if missing := [file for file in provenance.BENCHMARKS[names[0]].files if not (folder / file).exists()]:
            parser.error(f"--accept: there is no result {missing[0]} to accept; run `tools/results.py {names[0]}`")
        accept(names[0], folder, options.accept)
        return 0
    stale = check(names, folder)
    if options.check:
        print(f"{len(stale)} of {len(names)} benchmarks are out of date.")
        return int(bool(stale))
    done = [run(name, folder, more, fresh=options.force) for name in (names if options.force else stale)]
    return int(not all(done))


if __name__ == "__main__":
    sys.exit(main())
