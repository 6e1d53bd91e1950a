"""Writing a file so that its path holds the old content or the new, never a part of either."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from otprop.files._errors import TableError, file_error, one_line
from otprop.files._formats import refuse_url

Content = bytes | str | Callable[[BinaryIO], object]
_UNFINISHED: dict[Path, int] = {}  # temporary files and the process that made them
_RECORD: ContextVar[list[Path] | None] = ContextVar("record", default=None)
_NAME_BYTES = 200  # of a file name that fit into its temporary name


def check_output(path: str | Path, force: bool = False, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse an output that cannot be written, before any work is done.

    Parameters
    ----------
    path : str or path
        The output; "-" is standard output and always accepted.
    force : bool
        Whether an existing file may be replaced.
    inputs : iterable of str or path
        Files that must not be written, under this name or as a link, even with `force`.

    Raises
    ------
    TableError
        The output is an input, a folder, an existing file without `force`, or in a folder that does not exist or
        cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from otprop.files import TableError, check_output
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_output(Path(folder) / "new.csv")
    ...     try:
    ...         check_output(folder)
    ...     except TableError as error:
    ...         print(error.advice)
    name a file in it
    """
    if str(path) == "-":
        return
    with _reporting(path):
        target = _resolve(path)
        _refuse_inputs(path, target, inputs)
        if _is_special(target):
            return
        _refuse_existing(path, target, force)
        with _temporary_file(target):
            pass


def record_writes() -> list[Path]:
    """A list to which `write_atomic` appends each path in this thread from now on, as soon as the file is in place.

    What is not in it was not written here: another process may have written a file of that name meanwhile.
    """
    record: list[Path] = []
    _RECORD.set(record)
    return record


def write_atomic(
    path: str | Path,
    content: Content,
    force: bool = False,
    inputs: Iterable[str | Path] = (),
    *,
    mode_like: str | Path | None = None,
) -> None:
    """Write a temporary file and move it to its path in one step.

    The content goes to `.NAME.xxxxxxxx.part` in the same folder, which only its owner can read, is flushed to the disk
    and replaces `path` in one step. Any exception leaves the old file and no temporary one; what a killed process left
    is removed by the next call for the same path. Devices and pipes are written directly.

    Parameters
    ----------
    path : str or path
        The output; a symbolic link is followed.
    content : bytes, str or callable
        The content, text being written as UTF-8, or a function that writes it to the binary file that it is given.
    force : bool
        Whether an existing file may be replaced. Its permissions are kept.
    inputs : iterable of str or path
        Files that must not be written, even with `force`.
    mode_like : str, path or None
        A file whose permissions a new output does not exceed: the input that it is made from.

    Raises
    ------
    TableError
        As `check_output`, and when writing fails (disk full, say). The old file is then unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from otprop.files import TableError, write_atomic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "note.txt"
    ...     write_atomic(path, "first")
    ...     try:
    ...         write_atomic(path, "second")
    ...     except TableError as error:
    ...         print(error.argument, "is needed")
    ...     print(path.read_text())
    force is needed
    first
    """
    with _reporting(path):
        target = _resolve(path)
        _refuse_inputs(path, target, inputs)
        if _is_special(target):
            with open(target, "wb") as special:
                _fill(special, content)
            return
        _refuse_existing(path, target, force)
        remove_strays(target)
        with _temporary_file(target) as (part, handle):
            _fill(handle, content)
            handle.flush()
            os.chmod(part, _final_mode(target, mode_like))
            os.fsync(handle.fileno())
            _move(part, target, path, force)
            if (record := _RECORD.get()) is not None:
                record.append(Path(path))
        _sync_folder(target.parent)


def _resolve(path: str | Path) -> Path:
    """The file that would be written: links are followed, so that they stay links."""
    refuse_url(path)
    return Path(os.path.realpath(path))


def _refuse_inputs(path: str | Path, target: Path, inputs: Iterable[str | Path]) -> None:
    for given in inputs:
        with contextlib.suppress(OSError):
            if target == _resolve(given) or os.path.samefile(target, given):
                raise file_error(path, "is an input and is never overwritten", "choose another output")


def _is_special(target: Path) -> bool:
    """Whether it is a device, a pipe or a socket, which cannot be replaced."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse_existing(path: str | Path, target: Path, force: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(target)  # fails for a name that is too long, a loop of links, a file in place of a folder
    if target.is_dir():
        raise file_error(path, "is a folder", "name a file in it")
    if not target.parent.exists():
        raise TableError(f"cannot write {path}: there is no folder {Path(path).parent}", "create it first", file=path)
    if not force and os.path.lexists(target):
        raise file_error(path, "exists already", "pass {} to replace it, or choose another output", force=True)


@contextmanager
def _reporting(path: str | Path) -> Iterator[None]:
    """Turn an OSError into a TableError; a closed pipe is not an error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        left = "it is unchanged" if os.path.lexists(path) else "nothing was written"
        raise TableError(f"cannot write {path}: {one_line(error)}", left, file=path) from error
    except ValueError as error:
        if isinstance(error, TableError) or "null" not in str(error):
            raise
        raise TableError(f"cannot write {str(path)!r}: {one_line(error)}", file=path) from error


def _fill(handle: BinaryIO, content: Content) -> None:
    if callable(content):
        content(handle)
    else:
        handle.write(content.encode("utf-8") if isinstance(content, str) else content)


def _stem(target: Path) -> str:
    """The name as far as it fits into a temporary name."""
    return os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])


@contextmanager
def _temporary_file(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new locked file in the same folder that only its owner can read; it is gone after the block."""
    part = target.with_name(f".{_stem(target)}.{secrets.token_hex(4)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    _UNFINISHED[part] = os.getpid()
    try:
        with os.fdopen(os.open(part, flags, 0o600), "w+b") as handle:
            _lock(handle)
            yield part, handle
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
        del _UNFINISHED[part]


@atexit.register
def _remove_unfinished() -> None:
    """Remove the temporary files of this process: a signal may raise just before the block that removes one."""
    for part, process in list(_UNFINISHED.items()):
        if process == os.getpid():  # a fork has those of its parent
            with contextlib.suppress(OSError):
                part.unlink()


def _final_mode(target: Path, mode_like: str | Path | None) -> int:
    """The permissions of the file that is replaced; of a new one those of new files, at most those of `mode_like`."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0o077)  # there is no other way to read it
    os.umask(umask)
    mode = 0o666 & ~umask
    if mode_like is not None:
        with contextlib.suppress(OSError):
            mode &= stat.S_IMODE(os.stat(mode_like).st_mode)
    return mode


def _move(part: Path, target: Path, path: str | Path, force: bool) -> None:
    if force:
        os.replace(part, target)
        return
    try:
        os.link(part, target)  # unlike a rename, fails if the file exists by now
    except FileExistsError:
        raise file_error(
            path, "was created by another process in the meantime", "pass {} to replace it", force=True
        ) from None
    except OSError:  # a file system without links
        _refuse_existing(path, target, force)
        os.replace(part, target)


def remove_strays(target: Path) -> None:
    """Remove the temporary files of this path that killed processes left: no process holds a lock on them.

    Parameters
    ----------
    target : path
    """
    pattern = re.compile(re.escape(f".{_stem(target)}.") + r"[0-9a-f]{8}\.part")
    for entry in list(os.scandir(target.parent)):
        if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError), open(entry.path, "r+b") as handle:
                if _lock(handle):
                    os.unlink(entry.path)


def _lock(handle: BinaryIO) -> bool:
    """Lock the file until it is closed; false where another process has, or where there are no locks."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk; the content is there already."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
