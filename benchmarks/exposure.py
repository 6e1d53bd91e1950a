"""What other users of the machine can reach while each command runs: listening sockets, and modes of files.

    python benchmarks/exposure.py

The table, the folder and the session are made with mode 0600 in a folder of mode 0755, under the usual umask 022. A
thread looks every 20 ms at the sockets of the command and its children, and at all files below the folder, its TMPDIR
and its cache. A socket on the loopback interface is asked for a page without a token or certificate; "served" counts
those that answer with one. Writes benchmarks/results/exposure.csv, one row per command.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil

from common import argument_parser, write_csv

N_ROWS, N_FILES = 300, 4
LOOPBACK = ("127.0.0.1", "::1")
STUDIO_SECONDS = 20  # that the studio is watched


@dataclass
class Seen:
    """What a command showed while it ran."""

    sockets: set[tuple[str, int]] = field(default_factory=set)
    served: set[tuple[str, int]] = field(default_factory=set)
    modes: dict[str, int] = field(default_factory=dict)  # the widest of each file

    def look(self, process: psutil.Process, folder: Path) -> None:
        """Add what there is now."""
        for address in listening(process):
            if address not in self.sockets and address[0] in LOOPBACK and answers(address):
                self.served.add(address)
            self.sockets.add(address)
        for path in files(folder):
            try:
                mode = stat.S_IMODE(path.lstat().st_mode)
            except OSError:  # it is gone
                continue
            name = str(path.relative_to(folder))
            private = any(stat.S_IMODE(parent.lstat().st_mode) & 0o077 == 0 for parent in parents(path, folder))
            self.modes[name] = self.modes.get(name, 0) | (0 if private else mode)


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """Addresses at which a process and its children wait for connections."""
    found: set[tuple[str, int]] = set()
    try:
        processes = [process, *process.children(recursive=True)]
    except psutil.Error:
        return found
    for one in processes:
        try:
            connections = one.net_connections("inet")
        except psutil.Error:  # it has ended
            continue
        found |= {(str(each.laddr.ip), each.laddr.port) for each in connections if each.status == psutil.CONN_LISTEN}
    return found


def answers(address: tuple[str, int]) -> bool:
    """Whether a page is served to somebody without a token or certificate."""
    try:
        with socket.create_connection(address, timeout=5) as connection:
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode())
            return b" 200 " in connection.recv(100)
    except OSError:
        return False


def files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names)


def parents(path: Path, folder: Path) -> Iterator[Path]:
    """The folders between a file and the folder: none of them may keep others out."""
    for parent in path.parents:
        if parent == folder:
            return
        try:
            parent.lstat()
        except OSError:
            continue
        yield parent


def watch(command: list[str], folder: Path, seconds: float | None = None) -> Seen:
    """Run a command, ended by Ctrl-C after some seconds, and look at it all the while."""
    seen, done = Seen(), Event()
    places = {"TMPDIR": folder / "tmp", "XDG_CACHE_HOME": folder / "cache", "HOME": folder / "home"}
    for place in places.values():
        place.mkdir(exist_ok=True)
    environment = {**os.environ, **{name: str(place) for name, place in places.items()}}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        own = psutil.Process(process.pid)

        def look() -> None:
            while not done.wait(0.02):
                seen.look(own, folder)

        thread = Thread(target=look)
        thread.start()
        if seconds is not None:
            end = time.monotonic() + 120
            while not seen.sockets and process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
        status = process.wait()
        done.set()
        thread.join()
    if status != 0:
        raise RuntimeError(f"status {status}: {' '.join(command)}")
    seen.look(own, folder)
    return seen


def make_inputs(folder: Path) -> None:
    """A table and a folder of tables that nobody else may read."""
    rng = np.random.default_rng(0)
    (folder / "parts").mkdir()
    for number in range(N_FILES + 1):
        kind = rng.integers(2, size=N_ROWS)
        sizes = rng.normal(size=N_ROWS) + 3 * kind
        rows = [
            f"{size:.3f},{'ab'[code] if row < 20 else ''}"
            for row, (size, code) in enumerate(zip(sizes, kind, strict=True))
        ]
        path = folder / "table.csv" if number == N_FILES else folder / "parts" / f"{number}.csv"
        path.write_text("\n".join(["size,kind", *rows]) + "\n")
        path.chmod(0o600)


def main() -> None:
    argument_parser(__doc__).parse_args()
    os.umask(0o022)
    otprop = [sys.executable, "-m", "otprop"]
    label = [*otprop, "label", "table.csv", "--target", "kind", "--quiet"]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_inputs(folder)
        commands = {
            "label": [*label, "-o", "out.csv", "--save", "kind.model", "--report", "page.html"],
            "predict": [*otprop, "predict", "kind.model", "table.csv", "-o", "new.csv", "--quiet"],
            "suggest": [*otprop, "suggest", "table.csv", "--target", "kind", "-o", "rows.csv", "--quiet"],
            "check": [*otprop, "check", "table.csv", "--target", "kind", "-o", "issues.csv", "--quiet"],
            "doctor": [*otprop, "doctor"],
            "label FOLDER": [*otprop, "label", "parts", "--target", "kind", "-o", "labelled", "--jobs", "2", "--quiet"],
            "studio": [*otprop, "studio", "table.csv", "--target", "kind", "--no-browser", "--quiet"],
        }
        for command, words in commands.items():
            seen = watch(words, folder, STUDIO_SECONDS if command == "studio" else None)
            wide = sorted(path for path, mode in seen.modes.items() if mode & 0o077)
            rows.append(
                {
                    "command": command,
                    "sockets": len(seen.sockets),
                    "sockets_beyond_this_machine": sum(address[0] not in LOOPBACK for address in seen.sockets),
                    "served_without_a_secret": len(seen.served),
                    "files": len(seen.modes),
                    "files_that_others_can_read": len(wide),
                }
            )
            print(rows[-1], wide, flush=True)
    write_csv("exposure.csv", rows)


if __name__ == "__main__":
    main()
