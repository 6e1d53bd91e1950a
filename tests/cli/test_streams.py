"""Pipes, and standard streams that are closed."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from otprop.cli._streams import bar, printable

pytest.importorskip("pyarrow")

OTPROP = f"{shlex.quote(sys.executable)} -m otprop"
OPTIONS = "--target kind --set evidence=None -o - --quiet"


def _run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True)


def test_a_pipe_works_and_a_reader_that_leaves_early_makes_no_trouble(lots: Path) -> None:
    whole = _run(f"cat {lots} | {OTPROP} label - {OPTIONS}")
    assert whole.stderr == ""
    assert len(whole.stdout.splitlines()) == 121
    big = lots.with_name("big.csv")
    lines = lots.read_text().splitlines(keepends=True)
    big.write_text("".join(lines + lines[13:] * 40))
    head = _run(f"cat {big} | {OTPROP} label - {OPTIONS} | head -3; echo ${{PIPESTATUS[1]}}")
    assert head.stderr == ""
    assert len(head.stdout.splitlines()) == 4
    assert head.stdout.splitlines()[3] == "141"  # as of a process that SIGPIPE ends


def test_a_closed_stream_is_an_error_only_where_it_is_needed(lots: Path) -> None:
    closed = _run(f"{OTPROP} label {lots} {OPTIONS} >&-")
    assert closed.returncode == 1
    assert closed.stderr == "otprop label: standard output is closed.\n"
    nothing = _run(f"{OTPROP} label - --target kind <&-")
    assert nothing.returncode == 1
    assert nothing.stderr == "otprop label: standard input is closed.\n"
    mute = _run(f"{OTPROP} label {lots} --target kind --set evidence=None >&- 2>&-")
    assert mute.returncode == 0
    assert len(lots.with_name("lots.labelled.csv").read_text().splitlines()) == 121


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_output_is_one_line(lots: Path) -> None:
    full = _run(f"{OTPROP} label {lots} {OPTIONS} >/dev/full")
    assert full.returncode == 1
    assert full.stderr == "otprop label: [Errno 28] No space left on device\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; not a fixture, as pytest sets standard error anew before the test."""
    pytest.importorskip("rich")
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return found


def test_the_bar_says_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with bar() as show:
        start = time.monotonic()
        show(0, 1000, "finding neighbours")
        for done in range(1, 5):
            time.sleep(0.2)
            show(done, 1000, "finding neighbours")
        whole = (time.monotonic() - start) * 1000 / 4
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    hours, minutes, seconds = map(int, re.findall(r"left +(\d+):(\d\d):(\d\d)", plain)[-1])
    assert whole / 2 < 3600 * hours + 60 * minutes + seconds < 2 * whole


def test_the_bar_escapes_the_names_of_files_and_is_silent_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with bar(quiet=True) as show:
        show(1, 2, "fitting")
    assert shown.getvalue() == ""
    with bar() as show:
        show(0, 0, "reading [red]\x1b[31m.csv")
    assert "[red]" in shown.getvalue()
    assert "\x1b[31m.csv" not in shown.getvalue()


def test_control_characters_and_bidirectional_marks_are_escaped() -> None:
    assert printable("a\x1b[2Jb\u202ec\x07\u2028\udcff\x9b") == r"a\x1b[2Jb\u202ec\x07\u2028\udcff\x9b"
    kept = "na\u00efve \u05e9\u05dc\u05d5\u05dd \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f600 \u3042"
    assert printable(kept) == kept
