"""The progress bar of a terminal."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from otprop.cli._streams import bar


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
