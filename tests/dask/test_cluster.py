"""Clusters of processes, some of which are killed: the same files come out, and none is left half-written.

The tests wait for what the cluster does, not for time. `benchmarks/dask_faults.py` kills more often.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import dask
import distributed
import psutil
import pytest
from dask.distributed import Client
from distributed.security import Security

from otprop.dask._cluster import ClusterError, _private_folder, close_client, local_client
from otprop.dask._folder import FolderRequest, label_folder
from otprop.labelling.job import Request
from tests.dask.conftest import write_folder

ALL_TREES = True  # processes have them
LENGTHS = [150] * 8
REQUEST = Request("kind", ignore=["truth"], settings={"evidence": ["linear"]})
OPTIONS = ["--target", "kind", "--ignore", "truth", "--set", 'evidence=["linear"]', "--landmarks", "300"]


@pytest.fixture(scope="module")
def others(client):
    """What the other cluster of the tests listens at."""
    return listening(psutil.Process())


@pytest.fixture(scope="module")
def processes(others):
    client = local_client(2, default=False)
    yield client
    close_client(client)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """The addresses at which a process and its children wait for connections."""
    found = set()
    for one in (process, *process.children(recursive=True)):
        try:
            found |= {tuple(each.laddr) for each in one.net_connections("inet") if each.status == psutil.CONN_LISTEN}
        except psutil.Error:  # it has ended
            continue
    return found


def answer(address: tuple[str, int]) -> bytes:
    """What a web server at an address would say; nothing where it is none."""
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(100)
        except ConnectionResetError:
            return b""


def run(source: Path, out: Path, client: Client, progress=lambda done, total, step: None):
    return label_folder(FolderRequest(str(source), str(out)), REQUEST, client, landmarks=300, progress=progress)


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory, client):
    """The outputs of a run that nothing disturbs."""
    home = tmp_path_factory.mktemp("whole")
    run(write_folder(home / "in", table, LENGTHS), home / "out", client)
    return contents(home / "out")


@pytest.mark.parametrize("step", ["landmarks", "labelled 1 of"])
def test_a_worker_that_is_killed_changes_no_byte(folder, tmp_path, whole, processes, step):
    source = folder(LENGTHS)
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
    assert contents(tmp_path / "out") == whole
    assert len(whole) == 8
    assert not list((tmp_path / "out").rglob("*.part"))


def test_a_client_that_is_killed_is_resumed_and_finished_files_are_not_touched(folder, tmp_path, whole):
    source, out = folder(LENGTHS), tmp_path / "out"
    command = [sys.executable, "-m", "otprop", "label", str(source), *OPTIONS, "-o", str(out), "--jobs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    done = out / "_otprop" / "done"

    def finished_files() -> dict[str, int]:
        """When the outputs were written whose records say that they are finished and not only begun."""
        records = [path for path in done.glob("*.json") if "bytes" in json.loads(path.read_text())]
        return {path.stem: (out / path.stem).stat().st_mtime_ns for path in records}

    while not finished_files():
        assert process.poll() is None, process.communicate()[1]
        threading.Event().wait(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    psutil.wait_procs(workers)  # they end with their client
    finished = finished_files()
    assert finished
    again = subprocess.run([*command, "--quiet"], stderr=subprocess.PIPE, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, "")
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == finished
    assert contents(out) == whole
    assert not list(out.rglob("*.part"))


def test_a_folder_run_listens_on_the_loopback_interface_only(folder, tmp_path):
    command = [
        sys.executable,
        "-m",
        "otprop",
        "label",
        str(folder([200, 100])),
        *OPTIONS,
        "-o",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen([*command, "--jobs", "2", "--quiet"], stderr=subprocess.PIPE, text=True)
    seen: set[tuple[str, int]] = set()
    while process.poll() is None:
        seen |= listening(psutil.Process(process.pid))
        threading.Event().wait(0.02)
    assert (process.returncode, process.communicate()[1]) == (0, "")
    assert len(seen) >= 5  # a scheduler, two workers and what restarts each
    assert {host for host, _ in seen} == {"127.0.0.1"}


def test_a_local_cluster_talks_only_to_who_has_its_certificate(processes, others):
    address = processes.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    for security in (None, Security(require_encryption=True), Security.temporary()):
        scheme = "tcp" if security is None else "tls"
        with pytest.raises((OSError, TypeError)):
            Client(address.replace("tls", scheme), security=security, timeout=2, set_as_default=False)
    ours = {int(one.rpartition(":")[2]) for one in (address, *processes.scheduler_info(n_workers=-1)["workers"])}
    found = listening(psutil.Process()) - others
    assert ours <= {port for _, port in found}
    assert not any(answer(one).startswith(b"HTTP") for one in found)


def test_a_worker_that_starts_later_has_no_web_server_either(processes, others):
    processes.restart()
    found = listening(psutil.Process()) - others
    assert len(found) >= 5
    assert not any(answer(one).startswith(b"HTTP") for one in found)


def test_a_local_cluster_imports_from_no_folder_that_others_can_write_to(processes):
    for folder in {os.path.dirname(path) for path in processes.run(lambda: sys.path[0]).values()}:
        private = Path(folder).parent
        assert private.stat().st_uid == os.getuid()
        assert private.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("taken", ["not", "open to all", "by a link"])
def test_a_folder_for_spilling_that_others_prepared_is_not_used(tmp_path, monkeypatch, taken):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = tmp_path / f"otprop-dask-{os.getuid()}"
    if taken == "open to all":
        usual.mkdir()
        usual.chmod(0o777)
    elif taken == "by a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        usual.symlink_to(tmp_path / "theirs")
    found = Path(_private_folder())
    assert (found == usual) == (taken == "not")
    assert found.is_dir()
    assert not found.is_symlink()
    assert found.stat().st_mode & 0o077 == 0


gives_up = pytest.mark.skipif(
    tuple(map(int, distributed.__version__.split(".")[:2])) < (2026, 2),
    reason="with the lowest versions of Dask and what it needs, a process that does not start blocks forever",
)


@gives_up
def test_a_process_that_dies_while_the_cluster_starts_is_told_from_a_script_without_a_guard():
    with (
        dask.config.set({"distributed.worker.preload": ["import os; os._exit(1)"]}),
        pytest.raises(ClusterError, match=r"ended while it started .*: use fewer processes, or free memory") as caught,
    ):
        local_client(1, default=False)
    assert "__main__" not in str(caught.value)


@gives_up
def test_a_process_that_hangs_while_the_cluster_starts_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("otprop.dask._cluster.PROCESS_TIMEOUT", "2s")
    with (
        dask.config.set({"distributed.worker.preload": ["import time; time.sleep(1000)"]}),
        pytest.raises(ClusterError, match=r"did not start within 2s: use fewer processes, or free memory"),
    ):
        local_client(1, default=False)
