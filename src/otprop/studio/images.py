"""Pictures of rows: files below the folder of the table, or arrays of an NPZ file."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from otprop._errors import OtpropError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MOST_BYTES = 20_000_000  # of a picture
MOST_SIDE = 4096  # pixels of an array that is shown as a picture
_START = 16  # bytes that tell the type of a picture
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class NoPictureError(OtpropError, ValueError):
    """A row has no picture that can be shown; the message says why."""


class Pictures:
    """The picture of each row, if it has one.

    Parameters
    ----------
    folder : path, below which the files are
    paths : array of text or None, the column of paths
    arrays : mapping of str to ndarray, those of an NPZ file
    """

    def __init__(self, folder: Path, paths: Any = None, arrays: Mapping[str, np.ndarray] | None = None) -> None:
        self._folder, self._paths = folder, paths
        images = [array for array in (arrays or {}).values() if _is_images(array)]
        self._images = images[0] if images else None

    def __bool__(self) -> bool:
        return self._paths is not None or self._images is not None

    @property
    def are_files(self) -> bool:
        """Whether they are files, which nothing is learnt from; the arrays of an NPZ file are features as well."""
        return self._images is None and self._paths is not None

    def has(self, row: int) -> bool:
        """Whether a row names a picture; its file may be missing all the same."""
        return self._images is not None or (self._paths is not None and bool(self._paths[row].as_py()))

    def problem(self, row: int) -> str:
        """Why the picture that a row names cannot be shown; empty where it can, or where it names none."""
        if self._images is not None or not self.has(row):
            return ""
        try:
            self._read(str(self._paths[row].as_py()), _START)
        except NoPictureError as error:
            return str(error)
        return ""

    def of_row(self, row: int) -> tuple[bytes, str]:
        """The picture of a row and its type; raises NoPictureError where there is none."""
        if self._images is not None:
            return png(self._images[row]), "image/png"
        name = None if self._paths is None else self._paths[row].as_py()
        if not name:
            raise NoPictureError("this row has no picture.")
        return self._read(str(name), MOST_BYTES)

    def _read(self, name: str, n_bytes: int) -> tuple[bytes, str]:
        """The first bytes of a file below the folder; links that lead out of the folder are not followed."""
        try:
            folder = self._folder.resolve()
            path = (folder / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # missing, a NUL in the name, links in a circle
            raise NoPictureError(f"{name[:200]} is not there.") from None
        if not path.is_relative_to(folder):
            raise NoPictureError("pictures are shown from the folder of the file and below only.")
        try:
            with os.fdopen(_open_below(folder, path), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise NoPictureError(f"{name[:200]} is not a plain file.")
                data = file.read(n_bytes)
        except OSError:
            raise NoPictureError(f"{name[:200]} cannot be read.") from None
        if found.st_size > MOST_BYTES:
            raise NoPictureError(f"{name[:200]} is larger than {MOST_BYTES // 1_000_000} MB.")
        kind = media_type(data)
        if kind is None:
            raise NoPictureError(f"{name[:200]} is no PNG, JPEG, GIF or WebP picture.")
        return data, kind


def _open_below(folder: Path, path: Path) -> int:
    """Open a resolved path below a folder; no link is followed, also not one that was put there meanwhile."""
    how = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe must not be waited for
    if os.open not in os.supports_dir_fd:
        return os.open(path, how)
    *parents, name = path.relative_to(folder).parts or (".",)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for parent in parents:
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(name, how | os.O_NOFOLLOW, dir_fd=place)
    finally:
        os.close(place)


def media_type(data: bytes) -> str | None:
    """The type of a picture by its first bytes; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), None)


def _is_images(array: np.ndarray) -> bool:
    """Whether an array holds a grey or coloured picture for each row."""
    if array.dtype.kind not in "buif" or array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)):
        return False
    return all(1 < side <= MOST_SIDE for side in array.shape[1:3])


def png(image: np.ndarray) -> bytes:
    """A grey or coloured picture as PNG; numbers are scaled from the smallest to the largest, but for bytes."""
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        values = np.nan_to_num(pixels.astype(np.float64))
        low, high = values.min(), values.max()
        pixels = np.round(255 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
