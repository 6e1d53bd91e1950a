"""Standard streams that are closed, full, or whose reader has left; signals; text and progress on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

if TYPE_CHECKING:
    from otprop._progress import ProgressCallback

_JOINERS = "\u200c\u200d"  # format characters that some scripts are written with


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM; handled like Ctrl-C wherever Ctrl-C is."""


_received: list[KeyboardInterrupt] = []  # what the signals of this run have raised


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, so that temporary files are removed; outside of the main thread do nothing.

    Compiled modules that are being imported turn a KeyboardInterrupt into other errors: what SIGTERM and Ctrl-C
    have raised is kept, see `interruption`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _received.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
        raise _received[-1]

    _received.clear()
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # neither ignored nor another's
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Exception as error:
        if _received:
            raise _received[-1] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interruption(error: BaseException) -> KeyboardInterrupt | None:
    """The signal that led to an error, if one did: the error itself, or what became another error on its way."""
    if isinstance(error, KeyboardInterrupt):
        return error
    return _received[-1] if _received else None


class _Closed(io.TextIOBase):
    """Standard output that was closed before the process began: writing to it is an error with a clear message."""

    def write(self, text: str) -> NoReturn:
        raise OSError("standard output is closed.")

    @property
    def buffer(self) -> NoReturn:
        raise OSError("standard output is closed.")


def replace_closed_streams() -> None:
    """Open something in the place of closed streams, so that no file gets their numbers and no message fails."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def standard_input() -> BinaryIO:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise OSError("standard input is closed.")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Standard output for bytes."""
    return sys.stdout.buffer


def write_json(summary: dict[str, Any]) -> None:
    """Print a summary for scripts; bytes of file names that are not UTF-8 are escaped."""
    text = json.dumps(summary, ensure_ascii=False, indent=2)
    sys.stdout.write(re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def printable(text: str) -> str:
    """Text without control characters, bidirectional marks and the like: they are escaped, as in `repr`."""
    return "".join(char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in text)


def _is_harmless(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def write_error(text: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(printable(text) + "\n")


def discard_unwritable_output() -> None:
    """Drop what a stream still holds and cannot write: Python would try again, and complain, at the very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


@contextmanager
def bar(quiet: bool = False) -> Iterator[ProgressCallback]:
    """Yield a progress callback; it shows nothing if `quiet`, or if standard error is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, step: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<32.32}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as progress:
        task = progress.add_task("starting", total=None)

        def show(done: float, total: float, step: str) -> None:
            progress.update(task, completed=done, total=total or None, description=printable(step) or "starting")

        yield show
