"""Writing a file so that its place holds the old content or the new, never a part of either."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from otprop.files._error import TableError, one_line

Content = bytes | str | Callable[[BinaryIO], object]
_LONGEST = 200  # bytes of a file's name that fit into its temporary name


def check_output(path: str | Path, force: bool = False, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse a place that cannot be written, before any work is done.

    Parameters
    ----------
    path : str or path
        Where the output shall be. "-" is standard output and always right.
    force : bool
        Whether a file that is there may be replaced.
    inputs : iterable of str or path
        Files that must not be written, whatever `force` says, under this name or as a link.

    Raises
    ------
    TableError
        The place is an input, a folder, an existing file without `force`, or in a folder that is not there or
        cannot be written.
    """
    if str(path) == "-":
        return
    place = _place(path)
    _refuse_inputs(path, place, inputs)
    if _is_special(place):
        return
    _refuse_existing(path, place, force)
    with _reporting(path):
        part, handle = _create_part(place)
        handle.close()
        part.unlink()


def write_atomic(
    path: str | Path,
    content: Content,
    force: bool = False,
    inputs: Iterable[str | Path] = (),
    *,
    mode_like: str | Path | None = None,
    written: list[Path] | None = None,
) -> None:
    """Write a file beside its place and move it there in one step.

    The content goes to a temporary file `.NAME.xxxxxxxx.part` in the same folder, is flushed to the disk and takes the
    place of `path` in one step. Whatever interrupts this leaves what was there before; what a killed process left
    behind is removed by the next call for the same place. Devices and pipes are written directly.

    Parameters
    ----------
    path : str or path
        Where the file shall be; a symbolic link is followed.
    content : bytes, str or callable
        The content, text being written as UTF-8, or a function that writes it to the binary file that it is given.
    force : bool
        Whether a file that is there may be replaced.
    inputs : iterable of str or path
        Files that must not be written, whatever `force` says.
    mode_like : str, path or None
        A file whose permissions a new output does not exceed: the input that it is made from.
    written : list of path or None
        `path` is appended to it as soon as the file is in place.

    Raises
    ------
    TableError
        As `check_output`, and when writing fails (disk full, say). The old file is then as it was.
    """
    place = _place(path)
    _refuse_inputs(path, place, inputs)
    if _is_special(place):
        with _reporting(path), open(place, "wb") as special:
            _fill(special, content)
        return
    _refuse_existing(path, place, force)
    with _reporting(path):
        _remove_strays(place)
        part, handle = _create_part(place)
        try:
            with handle:
                _lock(handle)
                _fill(handle, content)
                handle.flush()
                if force and place.exists():
                    os.chmod(part, stat.S_IMODE(place.stat().st_mode))
                elif mode_like is not None and Path(mode_like).is_file():
                    os.chmod(part, stat.S_IMODE(part.stat().st_mode) & stat.S_IMODE(os.stat(mode_like).st_mode))
                os.fsync(handle.fileno())
                _move(part, place, path, force)
                if written is not None:
                    written.append(Path(path))
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
        _sync_folder(place.parent)


def _place(path: str | Path) -> Path:
    """The file that would be written: links are followed, so that they stay links."""
    return Path(os.path.realpath(path))


def _refuse_inputs(path: str | Path, place: Path, inputs: Iterable[str | Path]) -> None:
    for given in inputs:
        with contextlib.suppress(OSError):
            if place == _place(given) or os.path.samefile(place, given):
                raise TableError(f"{path} is the input {given}, which is never written; choose another output.")


def _is_special(place: Path) -> bool:
    """A device, a pipe or a socket: there is nothing to keep, and nothing to move."""
    try:
        mode = place.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse_existing(path: str | Path, place: Path, force: bool) -> None:
    if place.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not place.parent.exists():
        raise TableError(f"cannot write {path}: there is no folder {Path(path).parent}; create it first.")
    if not force and os.path.lexists(place):
        raise TableError(f"{path} exists already; pass --force to replace it, or choose another output.")


@contextmanager
def _reporting(path: str | Path) -> Iterator[None]:
    """An error of the system becomes a line for the user; a reader that went away is no error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TableError(f"cannot write {path}: {one_line(error)}; it is as it was.") from error


def _fill(handle: BinaryIO, content: Content) -> None:
    if callable(content):
        content(handle)
    else:
        handle.write(content.encode("utf-8") if isinstance(content, str) else content)


def _stem(place: Path) -> str:
    """The name as far as it fits into a temporary name."""
    return os.fsdecode(os.fsencode(place.name)[:_LONGEST])


def _create_part(place: Path) -> tuple[Path, BinaryIO]:
    """A new temporary file beside the place, with the permissions that a new file has here."""
    part = place.with_name(f".{_stem(place)}.{secrets.token_hex(4)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return part, os.fdopen(os.open(part, flags, 0o666), "w+b")


def _move(part: Path, place: Path, path: str | Path, force: bool) -> None:
    if force:
        os.replace(part, place)
        return
    try:
        os.link(part, place)  # unlike a rename, refuses a file that came to be in the meantime
    except FileExistsError:
        raise TableError(f"{path} came to be while it was written; pass --force to replace it.") from None
    except OSError:  # a file system without links
        _refuse_existing(path, place, force)
        os.replace(part, place)


def _remove_strays(place: Path) -> None:
    """Remove what killed processes left: temporary files of this place that no process holds a lock on."""
    pattern = re.compile(re.escape(f".{_stem(place)}.") + r"[0-9a-f]{8}\.part")
    for entry in list(os.scandir(place.parent)):
        if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError), open(entry.path, "r+b") as handle:
                if _lock(handle):
                    os.unlink(entry.path)


def _lock(handle: BinaryIO) -> bool:
    """Hold the file until it is closed; false where another process does, or where there are no locks."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut; the content is safe already."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
