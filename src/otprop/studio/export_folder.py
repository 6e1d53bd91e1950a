"""The folder of exported files, in the folder for temporary files; what a killed studio left there is removed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where no folder can be locked
    fcntl = None  # type: ignore[assignment]

PREFIX = "otprop-studio-"


class ExportFolder:
    """A folder that is deleted by `close`, or by the next studio where this process is killed.

    It is locked as long as the process lives, which is how others know that it is in use.
    """

    def __init__(self) -> None:
        remove_left_folders()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = _locked(self.path)
            if fcntl is None or self._lock is not None:  # else another studio took it for one that was left
                return

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_left_folders() -> None:
    """Delete the folders of this user whose studio is gone."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """The descriptor of a folder of this user that is locked now; None where it is in use, or no such folder."""
    if fcntl is None:
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(number)
        if found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(found, os.lstat(path)):
                return number
    except OSError:
        pass
    os.close(number)
    return None
