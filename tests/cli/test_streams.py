"""Pipes, and standard streams that are closed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
