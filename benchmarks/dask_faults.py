"""Kills processes of a cluster again and again while it labels a folder, and compares every byte of the outputs.

    python benchmarks/dask_faults.py                 each fault three times
    python benchmarks/dask_faults.py --times 20

Faults: SIGKILL of the worker that samples, fits or labels; SIGKILL of the client, once for each file that is done, and
the same command again; a file that is too large for the memory of the workers. A line each goes to dask_faults.csv.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from dask.distributed import Client, LocalCluster

from common import argument_parser, commit, write_csv
from dask_scale import write_files
from otprop.dask._folder import FolderRequest, label_folder
from otprop.labelling.job import Request

N_ROWS, LANDMARKS = 200_000, 3000
TASKS = {"pass 1": "sample_file", "fit": "fit_folder", "pass 2": "label_file"}


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


def cluster_of(n_workers: int = 2, memory: str = "4GB") -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit=memory, dashboard_address=":0", silence_logs=50
    )


def label(source: Path, out: Path, client: Client) -> Any:
    request = Request("kind", ignore=["truth"])
    return label_folder(FolderRequest(str(source), str(out)), request, client, landmarks=LANDMARKS)


def kill_when_running(scheduler: str, pids: dict[str, int], task: str, times: int) -> None:
    """Wait until a worker runs a task of this name, and kill that worker; `times` times."""
    with Client(scheduler, set_as_default=False) as client:
        for _ in range(times):
            while True:
                busy = client.run_on_scheduler(
                    lambda dask_scheduler, task=task: [
                        (ws.nanny, ws.pid if hasattr(ws, "pid") else 0, ws.address)
                        for ws in dask_scheduler.workers.values()
                        if any(str(ts.key).startswith(task) for ts in ws.processing)
                    ]
                )
                if busy:
                    address = busy[0][2]
                    pid = pids.get(address) or client.run(os.getpid, workers=[address]).get(address)
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                        break
                time.sleep(0.005)


def worker_killed(source: Path, out: Path, task: str) -> bool:
    """Whether the run went on after the worker of a task was killed."""
    with cluster_of() as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        killer = threading.Thread(
            target=kill_when_running, args=(cluster.scheduler_address, pids, task, 1), daemon=True
        )
        killer.start()
        failures = label(source, out, client).failures
        killer.join()
    return not failures


def client_killed(source: Path, out: Path) -> bool:
    """Whether a run ends, whose client is killed after every few files, with finished files untouched."""
    command = [sys.executable, "-m", "otprop", "label", str(source), "--target", "kind", "--ignore", "truth"]
    command += ["--landmarks", str(LANDMARKS), "-o", str(out), "--quiet", "--jobs", "2"]
    done = out / "_otprop" / "done"
    finished: dict[str, int] = {}
    while True:
        n_before = len(finished)
        process = subprocess.Popen(command)
        while process.poll() is None and len(list(done.glob("*.json")) if done.is_dir() else []) < n_before + 8:
            time.sleep(0.005)
        ended = process.poll() is not None
        workers = [] if ended else psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        psutil.wait_procs(workers)
        for name, moment in finished.items():
            if (out / name).stat().st_mtime_ns != moment:
                return False
        records = [path for path in done.glob("*.json") if "bytes" in json.loads(path.read_text())]  # others are begun
        finished = {path.stem: (out / path.stem).stat().st_mtime_ns for path in records}
        if ended:
            return process.returncode == 0


def out_of_memory(source: Path, out: Path) -> bool:
    """Whether a file too large for the workers is named, and the others are labelled."""
    parts = [pd.read_parquet(path) for path in sorted(source.iterdir())]
    pd.concat(parts * 12, ignore_index=True).to_parquet(source / "large.parquet", index=False)
    with cluster_of(2, "700MB") as cluster, Client(cluster) as client:
        result = label(source, out, client)
    return list(result.failures) == ["large.parquet"] and len(contents(out)) == len(parts)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    lines: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        write_files(folder / "in", N_ROWS)
        with cluster_of() as cluster, Client(cluster) as client:
            label(folder / "in", folder / "whole", client)
        expected = contents(folder / "whole")
        faults: dict[str, Callable[[Path], bool]] = {
            f"worker killed in {step}": lambda out, task=task: worker_killed(folder / "in", out, task)  # type: ignore[misc]
            for step, task in TASKS.items()
        }
        faults["client killed"] = lambda out: client_killed(folder / "in", out)
        for fault, run in faults.items():
            right = same = clean = 0
            for number in range(options.times):
                out = folder / f"{fault} {number}"
                right += run(out)
                same += contents(out) == expected
                clean += not list(out.rglob("*.part"))
            line = {"fault": fault, "times": options.times, "went on": right, "same bytes": same, "no strays": clean}
            lines.append(line | {"files": len(expected), "commit": commit()})
            print(lines[-1], flush=True)
            write_csv("dask_faults.csv", lines)
        said = out_of_memory(folder / "in", folder / "small")
        lines.append({"fault": "workers out of memory", "times": 1, "went on": int(said)})
        print(lines[-1], flush=True)
    write_csv("dask_faults.csv", [{key: line.get(key, "") for key in lines[0]} for line in lines])


if __name__ == "__main__":
    main()
