"""Clusters of processes, some of which are killed: the same files come out, and none is left half-written.

The tests wait for what the cluster does, not for time. `benchmarks/dask_faults.py` kills more often.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from dask.distributed import Client

from otprop.dask._cluster import close_client, local_client
from otprop.dask._folder import FolderRequest, label_folder
from otprop.labelling.job import Request

LENGTHS = [150] * 8
REQUEST = Request("kind", ignore=["truth"], settings={"evidence": ["linear"]})
OPTIONS = ["--target", "kind", "--ignore", "truth", "--set", 'evidence=["linear"]', "--landmarks", "300"]


@pytest.fixture(scope="module")
def processes():
    client = local_client(2, default=False)
    yield client
    close_client(client)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


def run(source: Path, out: Path, client: Client, progress=lambda done, total, step: None):
    return label_folder(FolderRequest(str(source), str(out)), REQUEST, client, landmarks=300, progress=progress)


@pytest.mark.parametrize("step", ["landmarks", "labelled 1 of"])
def test_a_worker_that_is_killed_changes_no_byte(folder, tmp_path, client, processes, step):
    source = folder(LENGTHS)
    run(source, tmp_path / "whole", client)
    killed: list[int] = []

    def kill_once(done, total, text):
        if text.startswith(step) and not killed:
            busy = [address for address, keys in processes.processing().items() if keys]
            pids = processes.run(os.getpid, workers=busy[:1]) if busy else processes.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    result = run(source, tmp_path / "out", processes, kill_once)
    assert killed
    assert not result.failures
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(contents(tmp_path / "out")) == 8
    assert not list((tmp_path / "out").rglob("*.part"))


def test_a_client_that_is_killed_is_resumed_and_finished_files_are_not_touched(folder, tmp_path, client):
    source, out = folder(LENGTHS), tmp_path / "out"
    run(source, tmp_path / "whole", client)
    command = [sys.executable, "-m", "otprop.cli", "label", str(source), *OPTIONS, "-o", str(out), "--jobs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    done = out / "_otprop" / "done"
    while not (done.is_dir() and any(done.glob("*.json"))):
        assert process.poll() is None, process.communicate()[1]
        threading.Event().wait(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    psutil.wait_procs(workers)  # they end with their client
    finished = {path.stem: (out / path.stem).stat().st_mtime_ns for path in done.glob("*.json")}
    assert finished
    again = subprocess.run([*command, "--quiet"], stderr=subprocess.PIPE, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, "")
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == finished
    assert contents(out) == contents(tmp_path / "whole")
    assert not list(out.rglob("*.part"))
