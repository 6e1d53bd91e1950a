"""What a folder run reads back from its output folder, changed: results or a refusal in one line, nothing else touched.

Manifests, records, models and landmarks are damaged, files are replaced by links and pipes, outputs are edited.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from distributed import Client

from harness import Run, check, check_sentence
from models import JUNK, places
from otprop.cli import folder as command
from otprop.cli import main as otprop
from otprop.dask._manifest import digest_of

STATE = ("manifest.json", "model", "landmarks.npy", "lock", "mode", "done/a.csv.json", "done/b.csv.json")
MINE = "mine\n"
Rng = np.random.Generator


def make_folder(folder: Path) -> None:
    """Two files of few rows."""
    rng = np.random.default_rng(0)
    (folder / "in").mkdir()
    for name, n_rows in (("a.csv", 40), ("b.csv", 30)):
        kinds = np.arange(n_rows) % 2
        cells = [f"{rng.normal(3 * kind):.3f},{'xy'[kind] if rng.random() < 0.3 else ''}" for kind in kinds]
        (folder / "in" / name).write_text("\n".join(["size,kind", *cells]) + "\n")


def label(folder: Path, *more: str) -> tuple[int, str]:
    """The status and the messages of the command."""
    arguments = ["label", str(folder / "in"), "-o", str(folder / "out"), "--target", "kind", *more]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = otprop([*arguments, "--set", "evidence=['linear']", "--quiet"])
    return status, said.getvalue()


def changed_json(path: Path, rng: Rng) -> None:
    text = json.loads(path.read_text())
    found = list(places(text))
    if not found or rng.random() < 0.1:
        text = JUNK[rng.integers(len(JUNK))]
    else:
        container, key = found[rng.integers(len(found))]
        other, other_key = found[rng.integers(len(found))]
        if rng.random() < 0.2 and isinstance(container, dict):
            del container[key]
        else:
            copied = json.loads(json.dumps(other[other_key]))
            container[key] = copied if rng.random() < 0.3 else JUNK[rng.integers(len(JUNK))]
    path.write_text(json.dumps(text))


def changed_bytes(path: Path, rng: Rng) -> None:
    data = bytearray(path.read_bytes())
    at = int(rng.integers(len(data) + 1))
    data[at : at + int(rng.choice([0, 1, 4, 100]))] = rng.bytes(int(rng.choice([0, 1, 4])))
    path.write_bytes(bytes([0x5B]) * 10**5 if rng.random() < 0.05 else data)


def changed_landmarks(state: Path, rng: Rng) -> None:
    """Other numbers of rows, with the digest that they need."""
    numbers = np.load(state / "landmarks.npy")
    ways: list[Any] = [numbers[::-1], numbers + 5, numbers[:-1], numbers.astype(float), numbers[None], numbers * 0]
    np.save(state / "landmarks.npy", ways[rng.integers(len(ways))])
    found = json.loads((state / "manifest.json").read_text())
    found["landmarks_digest"] = digest_of(state / "landmarks.npy")
    (state / "manifest.json").write_text(json.dumps(found))


def replaced(path: Path, mine: Path, rng: Rng) -> None:
    """A link, a pipe or a folder in the place of a file, or nothing."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    way = rng.integers(6)
    if way < 3:
        path.symlink_to([mine, mine / "settings.json", path.name][way])
    elif way == 3:
        os.mkfifo(path)
    elif way == 4:
        path.mkdir()


def change(folder: Path, rng: Rng) -> str | None:
    """Change something in the output folder; returns the text of an output that was edited."""
    out = folder / "out"
    state, way = out / "_otprop", rng.integers(8)
    if way < 3:
        changed_json(state / ("manifest.json", "manifest.json", "done/a.csv.json")[way], rng)
    elif way == 3:
        changed_bytes(state / STATE[rng.integers(len(STATE))], rng)
    elif way == 4:
        changed_landmarks(state, rng)
    elif way == 5:
        replaced(state / (*STATE, "done", "")[rng.integers(len(STATE) + 2)], folder / "mine", rng)
    elif way == 6:
        replaced(out / "a.csv", folder / "mine", rng)
    else:
        (out / "b.csv").write_text(edited := (out / "b.csv").read_text() + "edited\n")
        return edited
    return None


def example(whole: Path, rng: Rng) -> str:
    """Change the results of a run and run again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        shutil.copytree(whole, folder)  # with the times of change
        before = {path.name: path.read_bytes() for path in (folder / "in").iterdir()}
        retarget(folder, whole)
        edited = change(folder, rng)
        if rng.random() < 0.5 and (folder / "out" / "a.csv").is_file() and not (folder / "out" / "a.csv").is_symlink():
            (folder / "out" / "a.csv").unlink()
        forced = ["--force"] if rng.random() < 0.2 else []
        status, said = label(folder, *forced)
        check(status in (0, 1, 2), f"status {status}: {said}")
        for line in said.splitlines():
            check_sentence(line)
        check(status == 0 or said, "a refusal without a word")
        check({path.name: path.read_bytes() for path in (folder / "in").iterdir()} == before, "an input was changed")
        check([path.read_text() for path in (folder / "mine").iterdir()] == [MINE], "a file behind a link was changed")
        if edited is not None and not forced:
            check((folder / "out" / "b.csv").read_text() == edited, "an edited output was overwritten")
        return "labelled" if status == 0 else "refused"


def retarget(folder: Path, whole: Path) -> None:
    """Make the copy the results of its own inputs: their times of change are copied, too."""
    for path in (folder / "in").iterdir():
        times = (whole / "in" / path.name).stat()
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@contextmanager
def in_this_process() -> Iterator[None]:
    """Label folders in threads of this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=60) as client:

        @contextmanager
        def found(options: Any) -> Iterator[Client]:
            yield client

        with mock.patch.object(command, "_client", found):
            yield


def run(options: Run) -> None:
    with tempfile.TemporaryDirectory() as name, in_this_process():
        whole = Path(name)
        make_folder(whole)
        (whole / "mine").mkdir()
        (whole / "mine" / "settings.json").write_text(MINE)
        status, said = label(whole)
        check(status == 0, said)
        options.each(lambda rng: example(whole, rng))
