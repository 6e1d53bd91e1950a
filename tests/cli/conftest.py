"""Files to label."""

from __future__ import annotations

import csv
import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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


@contextmanager
def sigint_reaches_children() -> Iterator[None]:
    """Have processes that are started here answer SIGINT also where the tests are a job in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def open_to_reader(pipe: Path, process: subprocess.Popen[str]) -> BinaryIO:
    """Open a named pipe once the process has opened it to read; fail if the process ends first."""
    while process.poll() is None:
        try:
            handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails as long as nobody reads
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.01)
            continue
        os.set_blocking(handle, True)
        return os.fdopen(handle, "wb")
    raise AssertionError(f"the process ended: {process.communicate()[1]}")


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by an independent reader."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
