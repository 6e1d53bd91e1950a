"""Files that are rows, such as pictures and texts: read whole, within bounds."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from otprop._errors import OtpropError

MAX_BYTES = 200_000_000


class UnreadableFileError(OtpropError, ValueError):
    """A file cannot be read; the message says why and continues after the name of the file."""


def read_plain_file(path: Path) -> bytes:
    """The bytes of a plain file that is not too large; raises UnreadableFileError."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not be waited for
        with os.fdopen(number, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableFileError("is not a plain file")
            if found.st_size > MAX_BYTES:
                raise UnreadableFileError(f"is larger than {MAX_BYTES // 1_000_000} MB")
            data = file.read()
    except FileNotFoundError:
        raise UnreadableFileError("does not exist") from None
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        if isinstance(error, UnreadableFileError):
            raise
        raise UnreadableFileError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not data:
        raise UnreadableFileError("is empty")
    return data
