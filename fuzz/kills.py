"""`otprop label` stopped at random moments: its outputs are absent or whole, its input is as it was.

At least 100 SIGKILLs, 50 SIGTERMs and 50 SIGINTs that reach the running command, whatever the time. A third of the
signals is sent while a file is written, the others at any moment from the start of the interpreter on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from harness import Run, check
from otprop.labelling.model import load_model

LEAST = {signal.SIGKILL: 100, signal.SIGTERM: 50, signal.SIGINT: 50}
STATUS = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT), signal.SIGKILL: (-9,)}
SCRIPT = [sys.executable, "-c", "import sys; from otprop.cli import main; sys.exit(main())"]  # as the installed script
LATE, MISSED = "done all the same", "ended before it"
AT_ONCE = 6  # commands that run side by side
OUTPUTS = ("out.csv", "out.model", "out.html")
Rng = np.random.Generator


def make_input(path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=300)
    rows = [
        f"{rng.normal(4 * kind):.3f},{rng.normal(kind):.3f},{'abc'[kind] if rng.random() < 0.1 else ''}"
        for kind in kinds
    ]
    path.write_text("\n".join(["x,z,kind", *rows]) + "\n")


def start(folder: Path) -> subprocess.Popen[str]:
    names = {"-o": "out.csv", "--save": "out.model", "--report": "out.html"}
    outputs = [word for flag, name in names.items() for word in (flag, str(folder / name))]
    command = [*SCRIPT, "label", str(folder / "in.csv"), "--target", "kind", "--method", "otp-paper", "--force"]
    return subprocess.Popen([*command, *outputs], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def wait_for_part(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a temporary file is there."""
    while process.poll() is None and not any(name.endswith(".part") for name in os.listdir(folder)):
        time.sleep(0.0002)


def check_outputs(folder: Path, before: dict[str, bytes], table: bytes, source: bytes) -> bool:
    """Whether the table is written; fail where any file is neither as before nor whole."""
    check((folder / "in.csv").read_bytes() == source, "the input was changed")
    found = {name: (folder / name).read_bytes() for name in OUTPUTS if (folder / name).exists()}
    check(set(before) <= set(found), "an output that was there is gone")
    for name, content in found.items():
        if content == before.get(name):
            continue
        if name == "out.csv":
            check(content == table, "the table is not whole")
        elif name == "out.model":
            load_model(folder / name)
        else:
            check(content.rstrip().endswith(b"</html>"), "the page is not whole")
    return found.get("out.csv") == table


def example(sent: signal.Signals, rng: Rng, whole: float, table: bytes, source: bytes) -> str:
    """Send one signal; return what came of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.csv").write_bytes(source)
        before = {output: b"old" for output in OUTPUTS if rng.random() < 0.3}
        for output, content in before.items():
            (folder / output).write_bytes(content)
        writing = rng.random() < 1 / 3
        process = start(folder)
        if writing:
            wait_for_part(folder, process)
            time.sleep(rng.choice([0.0, rng.uniform(0, 0.005), rng.uniform(0, 0.6 * whole)]))
        else:
            time.sleep(rng.uniform(0, 1.05 * whole))
        running = process.poll() is None
        process.send_signal(sent)
        try:
            error = process.communicate(timeout=300)[1]
        finally:
            process.kill()
        done = check_outputs(folder, before, table, source)
        parts = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
        status = process.returncode
        if sent == signal.SIGKILL:
            check(status in (0, *STATUS[sent]), f"status {status}: {error}")
        else:
            check(not parts, f"left after {sent.name}: {parts}")
            if "Failed to import the site module" in error:  # Python's own status before it runs anything
                return f"{sent.name}: before the command began, no table written"
            check(status in (0, *STATUS[sent]), f"status {status} after {sent.name}: {error}")
        check(status != 0 or done, f"status 0 without the table: {error}")
        if status > 0:  # one line, but for the summary of a command that was done and printing it
            *summary, message = error.splitlines() or [""]
            check(message.startswith("otprop") and (done or not summary), f"no message of one line: {error!r}")
            check("Traceback" not in error, f"a traceback: {error!r}")
        if parts:  # what a killed process left, the next one removes
            again = start(folder)
            again.communicate()
            check(not any(path.name.endswith(".part") for path in folder.iterdir()), f"{parts} stay for ever")
        if status == 0:
            return f"{sent.name}: {LATE if running else MISSED}"
        when = "before the command began" if status < 0 and sent != signal.SIGKILL else "ended by it"
        return f"{sent.name}: {when}, {'table written' if done else 'no table written'}"


def undisturbed() -> tuple[float, bytes, bytes]:
    """How long the command takes when as many run as later, the table that it writes, and its input."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(number) for number in range(AT_ONCE)]
        for folder in folders:
            folder.mkdir()
            make_input(folder / "in.csv")
        times = []
        for _ in range(2):  # the first time is slow
            begin = time.monotonic()
            processes = [start(folder) for folder in folders]
            check(all(process.wait() == 0 for process in processes), "the command fails")
            times.append(time.monotonic() - begin)
        return min(times), (folders[0] / "out.csv").read_bytes(), (folders[0] / "in.csv").read_bytes()


def run(options: Run) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children of a background job would ignore it
    whole, table, source = undisturbed()
    order = [sent for sent, n in LEAST.items() for _ in range(n)]
    order = [order[place] for place in np.random.default_rng(options.seed).permutation(len(order))]
    end, number, landed = time.monotonic() + options.seconds, options.first, Counter[signal.Signals]()

    def attempt(number: int) -> str | Exception:
        rng = np.random.default_rng([options.seed, number])
        try:
            return example(order[number % len(order)], rng, whole, table, source)
        except Exception as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        while _goes_on(options, number, end, landed):
            last = number + min(AT_ONCE, options.first + (options.examples or sys.maxsize) - number)
            late = time.monotonic() > end  # then only those signals that are still short
            numbers = [
                n for n in range(number, last) if not late or landed[sent := order[n % len(order)]] < LEAST[sent]
            ]
            for tried, outcome in zip(numbers, pool.map(attempt, numbers), strict=True):
                options.count("examples")
                if isinstance(outcome, Exception):
                    options.fail(tried, repr(outcome))
                    continue
                options.count(outcome)
                landed[order[tried % len(order)]] += not outcome.endswith(MISSED)
            number = last
    for sent in LEAST:
        if options.counts[f"{sent.name}: {LATE}"] > max(2, landed[sent] / 10):
            options.fail(options.first, f"{sent.name} has no effect")


def _goes_on(options: Run, number: int, end: float, landed: Counter[signal.Signals]) -> bool:
    """Whether the time is not over, or fewer signals than wanted have reached a running command."""
    if options.examples is not None:
        return number < options.first + options.examples
    return time.monotonic() < end or any(landed[sent] < n for sent, n in LEAST.items())
