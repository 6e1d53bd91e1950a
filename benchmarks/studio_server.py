"""`otprop studio` without a browser: how fast, how safe, how many labels.

    python benchmarks/studio_server.py speed           a key until it is saved, a label until the new labels are there
    python benchmarks/studio_server.py million         a million rows: time and memory until the map is there
    python benchmarks/studio_server.py kill            SIGKILL of server and worker at 140 random moments, in 20 parts
    python benchmarks/studio_server.py move            20 session files moved, copied or deleted while labels come
    python benchmarks/studio_server.py attack          all requests of tests/studio/attacks.py: how many were served
    python benchmarks/studio_server.py person          labels until 95 % of 3 000 rows are right, on three tables

The server is the real command in a process of its own, asked over HTTP as the page does. `person` plays somebody who
always answers with the truth, takes the first rows of the queue, and waits for the propagation after five labels;
nobody but this script sees the truth. Tables: the orchard of `examples`, mushroom and MNIST of the benchmark data
(OTPROP_DATA), 3 000 rows of each without one label. Writes benchmarks/results/studio_*.csv; `speed`, `kill`, `move`
and `person` go on where they stopped. CPU seconds are those of the worker: on a busy machine they say more than the
clock.
"""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from typing import Any

import numpy as np

from common import RESULTS, argument_parser, read_csv, tables_folder, write_csv

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.studio.attacks import attacks, served  # noqa: E402
from tests.studio.client import StudioClient  # noqa: E402

SIZES = (3_000, 20_000, 100_000)
GOALS = {3_000: 1.0, 20_000: 3.0, 100_000: 10.0}  # seconds until new labels are there
N_KEYS, N_REFITS = 40, 5
N_PARTS, N_KILLS = 20, 5
N_ROWS, ENOUGH, MOST_LABELS, AT_ONCE = 3_000, 0.95, 300, 5
WORDS = np.array(
    [
        *("crisp", "juicy", "sour", "sweet", "soft", "hard", "red", "green"),
        *("yellow", "striped", "small", "large", "late", "early", "mild", "mealy"),
    ]
)


class Server:
    """The command in a process of its own."""

    def __init__(self, path: Path, target: str, *more: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "otprop", "studio", str(path), "--target", target, "--no-browser"]
        self.started = perf_counter()
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--quiet", *more], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        self.opened = perf_counter() - self.started
        self.client = StudioClient(url)

    @property
    def worker(self) -> int:
        """The process id of the worker, the child that uses most memory; 0 where there is none yet."""
        pid = self.process.pid
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return max(children, key=megabytes, default=0)

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


@contextmanager
def server(path: Path, target: str, *more: str) -> Iterator[Server]:
    """A server that is ended in any case."""
    found = Server(path, target, *more)
    try:
        yield found
    finally:
        found.end()


def megabytes(pid: int) -> float:
    """Memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_table(path: Path, columns: dict[str, Any]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


def mixed_table(folder: Path, n_rows: int) -> tuple[Path, np.ndarray]:
    """Numbers, categories, dates and text of six classes, 30 rows labelled."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, n_rows)
    noise = (rng.random(n_rows) < 0.3) * rng.integers(0, 4, n_rows)
    picks = (rng.integers(0, 16, (n_rows, 6)) * (rng.random((n_rows, 6)) < 0.5) + kind[:, None]) % 16
    days = np.datetime64("2024-08-01") + rng.integers(0, 30, n_rows) + 5 * kind
    columns = {
        "weight": np.round(rng.normal(100 + 20 * kind, 15), 2),
        "size": np.round(rng.normal(5 + kind % 3, 1), 2),
        "colour": WORDS[6 + (kind + noise) % 4],
        "region": np.array(list("ABCDEFGH"))[rng.integers(0, 8, n_rows)],
        "picked": days.astype(str),
        "remark": [" ".join(WORDS[words]) for words in picks],
        "kind": first_labels(kind, rng),
    }
    return write_table(folder / f"mixed{n_rows}.csv", columns), kind


def embeddings(folder: Path, n_rows: int) -> tuple[Path, np.ndarray]:
    """Vectors of 64 numbers of six classes, 30 rows labelled."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, n_rows)
    X = rng.normal(size=(6, 64))[kind] + rng.normal(size=(n_rows, 64)) * 1.5
    np.savez(folder / f"vectors{n_rows}.npz", X=X.astype(np.float32), kind=first_labels(kind, rng).astype(str))
    return folder / f"vectors{n_rows}.npz", kind


def first_labels(kind: np.ndarray, rng: np.random.Generator, n: int = 30) -> np.ndarray:
    labels = np.full(len(kind), "", dtype=object)
    rows = rng.choice(len(kind), n, replace=False)
    labels[rows] = [f"class {code}" for code in kind[rows]]
    return labels


def speed_of(path: Path, kind: np.ndarray) -> dict[str, object]:
    """Keys and refits on one table."""
    with server(path, "kind") as found:
        client = found.client
        client.wait_for_result()
        first = perf_counter() - found.started
        keys, rows = [], []
        for _ in range(N_KEYS):  # faster than any propagation: each one cancels the run of the one before
            row = client.get("/api/queue?order=suggest&n=2")["rows"][0]["id"]
            start = perf_counter()
            client.label(row, int(kind[row]))
            saved = perf_counter()
            following = client.get("/api/queue?order=suggest&n=2")["rows"][0]["id"]
            client.get(f"/api/row/{following}")
            keys.append(1000 * (saved - start))
            rows.append(1000 * (perf_counter() - start))
        client.wait_for_result()
        refits, cpu, fits = [], [], []
        for _ in range(N_REFITS):
            row = client.get("/api/queue?order=suggest&n=2")["rows"][0]["id"]
            before, start = cpu_seconds(found.worker), perf_counter()
            state = client.wait_for_result(client.label(row, int(kind[row]))["revision"])
            client.get("/api/labels")
            refits.append(perf_counter() - start)
            cpu.append(cpu_seconds(found.worker) - before)
            fits.append(state["propagation"]["seconds"])
        return {
            "opened_s": round(found.opened, 2),
            "first_labels_s": round(first, 2),
            "key_saved_ms_median": round(float(np.median(keys)), 1),
            "key_saved_ms_max": round(max(keys), 1),
            "key_next_row_ms_median": round(float(np.median(rows)), 1),
            "key_next_row_ms_max": round(max(rows), 1),
            "new_labels_s_median": round(float(np.median(refits)), 2),
            "new_labels_s_max": round(max(refits), 2),
            "fit_s_median": round(float(np.median(fits)), 2),
            "worker_cpu_s_median": round(float(np.median(cpu)), 2),
            "load": round(os.getloadavg()[0], 1),
        }


def speed(folder: Path) -> None:
    rows: list[dict[str, Any]] = list(read_csv("studio_speed.csv"))
    for n_rows in SIZES:
        for name, make in (("mixed", mixed_table), ("embeddings", embeddings)):
            if any((row["table"], int(row["rows"])) == (name, n_rows) for row in rows):
                continue
            figures = speed_of(*make(folder, n_rows))
            rows.append({"table": name, "rows": n_rows, "goal_s": GOALS[n_rows], **figures})
            write_csv("studio_speed.csv", rows)
            print(rows[-1], flush=True)


def million(folder: Path, n_rows: int = 1_000_000) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, n_rows)
    numbers = np.round(rng.normal(size=(6, 8))[kind] * 2 + rng.normal(size=(n_rows, 8)), 4)
    labels = first_labels(kind, rng)
    path = write_table(folder / "million.csv", {**{f"x{j}": numbers[:, j] for j in range(8)}, "kind": labels})
    del numbers
    with server(path, "kind") as found:
        client = found.client
        maps = client.wait_for(lambda state: client.send("GET", "/api/map", {"Cookie": client.cookie})[0] == 200)
        shown = perf_counter() - found.started
        keys = []
        for row in range(20):
            start = perf_counter()
            client.label(row, int(kind[row]))
            client.get(f"/api/row/{row + 1}")
            keys.append(1000 * (perf_counter() - start))
        client.wait_for_result()
        write_csv(
            "studio_million.csv",
            [
                {
                    "rows": maps["n_rows"],
                    "opened_s": round(found.opened, 1),
                    "map_s": round(shown, 1),
                    "first_labels_s": round(perf_counter() - found.started, 1),
                    "key_next_row_ms_median": round(float(np.median(keys)), 1),
                    "key_next_row_ms_max": round(max(keys), 1),
                    "server_mb": round(megabytes(found.process.pid)),
                    "worker_mb": round(megabytes(found.worker)),
                    "load": round(os.getloadavg()[0], 1),
                }
            ],
        )
        print((RESULTS / "studio_million.csv").read_text(), flush=True)


def kill(folder: Path, parts: int = N_PARTS) -> None:
    rows: list[dict[str, Any]] = list(read_csv("studio_kill.csv"))
    for seed in range(N_PARTS):
        if parts and not any(int(row["seed"]) == seed for row in rows):
            parts -= 1
            (folder / str(seed)).mkdir()
            rows.append(kill_often(folder / str(seed), seed))
            write_csv("studio_kill.csv", rows)


def kill_often(folder: Path, seed: int) -> dict[str, object]:
    """Label without pause, kill at a random moment, start again, and look whether everything saved is there."""
    rng = np.random.default_rng(seed)
    path, _ = mixed_table(folder, 300)
    saved: dict[int, int] = {}
    lost = opened = n_workers = 0
    for number in range(N_KILLS):
        found = Server(path, "kind")
        opened += 1
        labels, sources = found.client.array("labels"), found.client.array("sources")
        lost += sum(labels[row] != code or sources[row] != 2 for row, code in saved.items())
        answered = Thread(target=label_until_gone, args=(found.client, saved, rng.integers(2**31)))
        answered.start()
        if number % 2:
            sleep(rng.uniform(0, 2))
            if worker := found.worker:
                os.kill(worker, signal.SIGKILL)
                n_workers += 1
        sleep(rng.uniform(0, 2))
        found.process.send_signal(signal.SIGKILL)
        found.process.wait()
        answered.join()
        print(f"{number + 1} kills, {len(saved)} rows, {lost} labels lost", flush=True)
    with server(path, "kind") as found:
        labels = found.client.array("labels")
        lost += sum(labels[row] != code for row, code in saved.items())
        events = found.client.get("/api/state")["revision"]
    return {
        "seed": seed,
        "kills_of_the_server": N_KILLS,
        "kills_of_the_worker": n_workers,
        "times_opened": opened + 1,
        "events_saved": events,
        "saved_labels_lost": lost,
    }


def label_until_gone(client: StudioClient, saved: dict[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    try:
        while True:
            row, code = int(rng.integers(300)), int(rng.integers(6))
            pending = saved.pop(row, None)  # until it is answered, both the old and the new label are right
            client.label(row, code)
            saved[row] = code
            del pending
    except (OSError, AssertionError, ValueError):
        pass
    except Exception as error:  # http.client: the answer was cut short
        if type(error).__module__ != "http.client":
            raise


def move(folder: Path) -> None:
    rows: list[dict[str, Any]] = list(read_csv("studio_move.csv"))
    for seed in range(N_PARTS):
        if not any(int(row["seed"]) == seed for row in rows):
            (folder / str(seed)).mkdir()
            rows.append(take_session(folder / str(seed), seed, ("move", "copy", "delete")[seed % 3]))
            write_csv("studio_move.csv", rows)
            print(rows[-1], flush=True)


def take_session(folder: Path, seed: int, way: str) -> dict[str, object]:
    """Label without pause, take the session file away, label on, and look for each label that was said to be saved."""
    rng = np.random.default_rng(seed)
    path, _ = mixed_table(folder, 300)
    session, taken = folder / f"{path.name}.otprop", folder / "taken.otprop"
    saved: dict[int, int] = {}
    with server(path, "kind") as found:
        thread = Thread(target=label_until_gone, args=(found.client, saved, seed))
        thread.start()
        sleep(rng.uniform(0.5, 2))
        before = dict(saved)
        if way == "copy":
            shutil.copy(session, taken)
            before = {row: code for row, code in before.items() if saved.get(row) == code}
            sleep(0.5)
        else:
            session.rename(taken)
            if way == "delete":
                taken.unlink()
            thread.join(30)  # the first label that is refused ends it
        refused = 0 if way == "copy" else sum(not accepts(found.client, row) for row in range(5))
    thread.join()
    lost = missing(path, session, saved) if way == "copy" else 0
    lost += missing(path, taken, before if way == "copy" else saved) if way != "delete" else 0
    return {
        "seed": seed,
        "session_file": way,
        "saved_before": len(before),
        "saved": len(saved),
        "of_five_labels_refused_after": refused,
        "saved_labels_lost": int(lost),
    }


def accepts(client: StudioClient, row: int) -> bool:
    """Whether another label of a row is said to be saved."""
    try:
        client.label(row, (int(client.array("labels")[row]) + 1) % 6)
    except AssertionError:
        return False
    return True


def missing(path: Path, session: Path, saved: dict[int, int]) -> int:
    """How many labels are not in a session file."""
    with server(path, "kind", "--session", str(session)) as found:
        labels = found.client.array("labels")
        return sum(labels[row] != code for row, code in saved.items())


def attack(folder: Path) -> None:
    path, _ = mixed_table(folder, 300)
    with server(path, "kind") as found:
        before = found.client.get("/api/state")["revision"]
        bad = served(found.client)
        n = sum(1 for _ in attacks(found.client))
        changed = found.client.get("/api/state")["revision"] - before
    write_csv("studio_attack.csv", [{"attacks": n, "served": len(bad), "events_made": changed}])
    print(n, "attacks;", len(bad), "served:", bad)


def person_tables(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Three tables of 3 000 rows without a label, and the truth."""
    rng = np.random.default_rng(0)
    with (ROOT / "examples" / "orchard.csv").open(encoding="utf-8", newline="") as file:
        orchard = list(csv.DictReader(file))
    with (ROOT / "examples" / "orchard_truth.csv").open(encoding="utf-8", newline="") as file:
        variety = {row["lot"]: row["variety"] for row in csv.DictReader(file)}
    columns = {name: [row[name] for row in orchard] for name in orchard[0] if name != "variety"}
    yield "orchard", write_table(folder / "orchard.csv", columns), [variety[row["lot"]] for row in orchard]

    from otprop.files import read_table

    table = read_table(tables_folder() / "mushroom.csv.gz")
    rows = np.sort(rng.choice(table.n_rows, N_ROWS, replace=False))
    columns = {name: table.cells(name)[rows] for name in table.names if name != "class"}
    yield "mushroom", write_table(folder / "mushroom.csv", columns), [str(one) for one in table.cells("class")[rows]]

    with np.load(tables_folder().parent / "mnist10k.npz") as arrays:
        rows = np.sort(rng.choice(len(arrays["y"]), N_ROWS, replace=False))
        np.savez(folder / "mnist.npz", X=arrays["X"][rows])
        truth = [str(one) for one in arrays["y"][rows]]
    yield "mnist", folder / "mnist.npz", truth


def person(folder: Path) -> None:
    rows: list[dict[str, Any]] = list(read_csv("studio_person.csv"))
    for name, path, truth in person_tables(folder):
        if any(row["table"] == name for row in rows):
            continue
        with server(path, "label") as found:
            rows.append({"table": name, "rows": len(truth), **play(found, truth)})
        write_csv("studio_person.csv", rows)
        print(rows[-1], flush=True)


def suggestions_of(revision: int) -> Callable[[dict[str, Any]], bool]:
    """Whether the propagation of these labels is done, and the next rows are named."""
    return lambda state: state["propagation"]["state"] == "done" and state["suggested_for"] >= revision


def play(found: Server, truth: list[str]) -> dict[str, object]:
    """Label the first rows of the queue with the truth until enough rows are right."""
    client, ids = found.client, dict[str, int]()
    client.wait_for(lambda state: "two classes" in state["propagation"]["message"])
    reached: dict[float, int] = {}
    right, state, labels = 0.0, client.get("/api/state"), 0
    while labels < MOST_LABELS and right < ENOUGH:
        for _ in range(AT_ONCE):
            first = client.get("/api/queue?order=suggest&n=1")["rows"][0]
            row = first["id"]
            if truth[row] not in ids:
                ids[truth[row]] = client.post("/api/classes", {"name": truth[row]})["id"]
            revision, labels = client.label(row, ids[truth[row]], reason=first["reason"])["revision"], labels + 1
        if len(ids) > 1:
            state = client.wait_for(suggestions_of(revision))
            names = np.array([one["name"] for one in state["classes"]] + [""] * 256, dtype=object)
            right = float((names[client.array("labels")] == np.array(truth, dtype=object)).mean())
        for share in (0.8, 0.9, 0.95):
            if right >= share:
                reached.setdefault(share, labels)
        print(found.client.port, labels, round(right, 4), flush=True)
    error = state["error"] or {"value": float("nan"), "low": 0.0, "high": 1.0}
    return {
        "classes": len(set(truth)),
        "labels_to_80": reached.get(0.8, ""),
        "labels_to_90": reached.get(0.9, ""),
        "labels_to_95": reached.get(0.95, ""),
        "labels": labels,
        "right": round(right, 4),
        "expected_error": round(error["value"], 4),
        "low": round(error["low"], 4),
        "high": round(error["high"], 4),
        "seconds": round(perf_counter() - found.started),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parts: dict[str, Any] = {
        **{"speed": speed, "million": million, "kill": kill, "move": move},
        **{"attack": attack, "person": person},
    }
    parser = argument_parser(__doc__)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--parts", type=int, default=N_PARTS, help="of the kills, to be run now")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.part == "kill":
            kill(Path(folder), options.parts)
        else:
            parts[options.part](Path(folder))


if __name__ == "__main__":
    main()
