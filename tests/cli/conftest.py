"""Files to label."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
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


STOPPED = """
import contextlib, importlib, json, os, signal, sys, time
from pathlib import Path
from otprop.cli import main

def start(after=lambda: None):
    child = os.fork()
    if child == 0:
        status = main(sys.argv[3:])
        after()
        os._exit(status)
    return child

reading, writing = os.pipe()
first = start(lambda: os.write(writing, "\\n".join(sys.modules).encode()))
os.close(writing)
with open(reading) as names:  # what a run imports is imported once, here
    imported = names.read().split("\\n")
assert os.waitpid(first, 0)[1] == 0
for name in imported:
    with contextlib.suppress(Exception):
        importlib.import_module(name)

number, out, found = getattr(signal, sys.argv[1]), Path(sys.argv[2]), []
begin = time.monotonic()
assert os.waitpid(start(), 0)[1] == 0
whole, new = time.monotonic() - begin, out.read_bytes()
for moment in range(8):
    out.write_bytes(b"old")
    child = start()
    time.sleep(whole * (moment + 0.5) / 7)
    os.kill(child, number)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    content = {b"old": "old", new: "new"}.get(out.read_bytes(), "broken")
    found.append([status, content, sorted(os.listdir(out.parent))])
print(json.dumps(found))
"""


def stopped_at_many_moments(number: str, out: Path, arguments: list[str]) -> list[tuple[int, str, list[str]]]:
    """Run a command eight times and stop it by a signal, each time later; it replaces a file `out` that holds "old".

    Returns of each time the exit status, whether `out` is "old", "new" or "broken", and the names of the files there.
    """
    command = [sys.executable, "-c", STOPPED, number, str(out), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return [(status, content, names) for status, content, names in json.loads(done.stdout)]


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


@pytest.fixture
def out(lots: Path) -> Path:
    return lots.with_name("out.csv")
