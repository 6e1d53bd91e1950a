"""Standard streams that are closed, full, or whose reader has left."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import BinaryIO, NoReturn


class _Closed(io.TextIOBase):
    """Standard output that nobody gave us: writing to it is an error that can be read."""

    def write(self, text: str) -> NoReturn:
        raise OSError("standard output is closed.")

    @property
    def buffer(self) -> NoReturn:
        raise OSError("standard output is closed.")


def mend_streams() -> None:
    """Make up for streams that are closed, so that no file gets their numbers and no message is an error."""
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
    """The bytes of standard input.

    Returns
    -------
    binary file
    """
    if sys.stdin is None:
        raise OSError("standard input is closed.")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Standard output for bytes.

    Returns
    -------
    binary file
    """
    return sys.stdout.buffer


def let_go() -> None:
    """Give up what standard output still holds, if it cannot be written: it would be tried again at the very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
