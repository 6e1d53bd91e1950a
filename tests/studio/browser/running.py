"""The studio as a user starts it: a command in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# software GL, so that the map is drawn with WebGL2 on a machine without a graphics card
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
PATIENCE = 60.0  # seconds for the command to start


class RunningStudio:
    """`otprop studio FILE --no-browser`, until `stop` or `kill`."""

    def __init__(self, path: Path, target: str, port: int = 0, more: Sequence[str] = ()) -> None:
        command = [sys.executable, "-m", "otprop.cli", "studio", str(path)]
        command += ["--target", target, "--no-browser", "--port", str(port), *more]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.url = self._address()
        except Empty:
            self.kill()
            raise
        self.address = self.url.partition("?")[0]
        self.port = int(self.address.rstrip("/").rpartition(":")[2])

    def _address(self) -> str:
        """What it printed first, apart from notes."""
        while not (line := self._lines.get(timeout=PATIENCE)).startswith("http://127.0.0.1:"):
            pass
        return line.strip()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def stop(self) -> None:
        """End as Ctrl-C does."""
        self._process.terminate()
        self._end()

    def kill(self) -> None:
        """End without a chance to clean up."""
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
