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
# the command with one quick classifier: every label of a test starts a fit, and a forest in each takes too long
QUICK = """
import sys
from dataclasses import replace
from otprop.cli import main, studio

request_of = studio.make_request
studio.make_request = lambda options: replace(request_of(options), settings={"evidence": ["linear"]})
sys.exit(main(sys.argv[1:]))
"""


class RunningStudio:
    """`otprop studio FILE --no-browser`, until `stop` or `kill`; `quick` fits one classifier in place of all."""

    def __init__(
        self, path: Path, target: str, port: int = 0, more: Sequence[str] = (), *, quick: bool = False
    ) -> None:
        command = [sys.executable, *(("-c", QUICK) if quick else ("-m", "otprop")), "studio", str(path)]
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
