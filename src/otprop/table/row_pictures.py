"""The picture of each row, to be shown: a file below the folder of the table, or an entry of an array of an NPZ file.

Pictures are decoded here and encoded again, upright and of a limited size: what is shown holds no metadata, and no
browser has to decode what a stranger's file says.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

import numpy as np

from otprop._errors import OtpropError
from otprop.files import Table
from otprop.table.pictures import (
    MAX_BYTES,
    PictureError,
    decode_picture,
    finite_range,
    has_pillow,
    is_picture_name,
    scaled_to_bytes,
)

THUMBNAIL, LARGE = 192, 1280  # pixels of the longer side
MAX_PLAIN_BYTES = 20_000_000  # of a file that is shown as it is, without Pillow
MAX_SIDE = 4096  # pixels of an array that is shown as a picture
MAX_CACHED = 48_000_000  # bytes of pictures that are kept
LOSSLESS = 64  # pixels of the longer side up to which a picture is written pixel by pixel
_START = 16  # bytes that tell the type of a picture
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_CONVERTED = (b"BM", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # BMP and TIFF, which browsers do not show
_decoding = BoundedSemaphore(2)  # a decoded picture may need hundreds of megabytes

Stamp = tuple[int, int, int, int]


class NoPictureError(OtpropError, ValueError):
    """A row has no picture that can be shown; the message says why."""


class RowPictures:
    """The picture of each row, if it has one: a file below `folder` by its name, or an entry of the array `images`.

    `column` is the one that holds the pictures or their names.
    """

    def __init__(
        self,
        folder: Path,
        name_of: Callable[[int], str | None] | None = None,
        images: np.ndarray | None = None,
        column: str | None = None,
    ) -> None:
        self._folder, self._name_of, self._images, self.column = folder, name_of, images, column
        self._cache: OrderedDict[tuple[int, int], tuple[Stamp, bytes, str]] = OrderedDict()
        self._cached, self._lock = 0, Lock()

    def __bool__(self) -> bool:
        return self._name_of is not None or self._images is not None

    @property
    def are_files(self) -> bool:
        """Whether they are files; else they are in an array."""
        return self._images is None and self._name_of is not None

    def has(self, row: int) -> bool:
        """Whether a row names a picture; its file may be missing."""
        return self._images is not None or bool(self._name(row))

    def problem(self, row: int) -> str:
        """Why the picture that a row names cannot be shown, as far as is known without decoding it; else empty."""
        name = self._name(row)
        if self._images is not None or not name:
            return ""
        try:
            _, stamp = self._read(name, _START)
        except NoPictureError as error:
            return str(error)
        with self._lock:
            known, _, sentence = self._cache.get((row, 0), (None, b"", ""))
        return sentence if known == stamp else ""

    def of_row(self, row: int, side: int = LARGE) -> tuple[bytes, str]:
        """The picture of a row, its longer side cut down to `side` pixels, and its type; raises NoPictureError."""
        if self._images is not None:
            return self._kept(row, side, (0, 0, 0, 0), lambda: _encoded_array(self._images[row], side))  # type: ignore[index]
        name = self._name(row)
        if not name:
            raise NoPictureError("this row has no picture.")
        if not has_pillow():
            data, _ = self._read(name, MAX_PLAIN_BYTES)
            return data, media_type(data) or ""
        _, stamp = self._read(name, _START)
        return self._kept(row, side, stamp, lambda: self._small(row, name, side, stamp))

    def _name(self, row: int) -> str | None:
        name = None if self._name_of is None else self._name_of(row)
        return None if name is None else str(name).strip()

    def _kept(self, row: int, side: int, stamp: Stamp, make: Callable[[], tuple[bytes, str]]) -> tuple[bytes, str]:
        """A picture that was made before of the same file, or a new one."""
        with self._lock:
            known, data, kind = self._cache.get((row, side), (None, b"", ""))
            if known == stamp:
                self._cache.move_to_end((row, side))
                return data, kind
        data, kind = make()
        self._keep((row, side), (stamp, data, kind))
        return data, kind

    def _keep(self, key: tuple[int, int], entry: tuple[Stamp, bytes, str]) -> None:
        with self._lock:
            self._cached += len(entry[1]) - len(self._cache.pop(key, ((), b""))[1])
            self._cache[key] = entry
            while self._cached > MAX_CACHED:
                self._cached -= len(self._cache.popitem(last=False)[1][1])

    def _small(self, row: int, name: str, side: int, stamp: Stamp) -> tuple[bytes, str]:
        with _decoding:
            data, _ = self._read(name, MAX_BYTES)
            try:
                return encode_picture(decode_picture(data, side), side)
            except PictureError as error:
                sentence = f"{name[:200]} {error}."
                self._keep((row, 0), (stamp, b"", sentence))  # said with the row from now on
                raise NoPictureError(sentence) from None

    def _read(self, name: str, n_bytes: int) -> tuple[bytes, Stamp]:
        """The first bytes of a file below the folder, and its stamp; links that lead out are not followed."""
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
        _check(name[:200], found.st_size, data)
        return data, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def pictures_of_table(
    table: Table, folder: Path, column: str | None, name_of: Callable[[int], str | None]
) -> RowPictures:
    """The pictures of the rows of a table: of an array of an NPZ file, else of the column of paths, if there is one."""
    for name, array in table.arrays.items():
        if _is_images(array, table.n_rows):
            return RowPictures(folder, images=array, column=name)
    return RowPictures(folder, None if column is None else name_of, column=column)


def names_pictures(cells: list[str]) -> bool:
    """Whether most of these cells are names of pictures."""
    return bool(cells) and sum(map(is_picture_name, cells)) > len(cells) / 2


def encode_picture(image: Any, side: int) -> tuple[bytes, str]:
    """An image of Pillow, made smaller where it is larger than `side`, as PNG or JPEG without metadata."""
    image.thumbnail((side, side))
    image.info.clear()  # a comment would be written again
    out = BytesIO()
    if max(image.size) <= LOSSLESS:
        image.save(out, "PNG")
        return out.getvalue(), "image/png"
    image.save(out, "JPEG", quality=82)
    return out.getvalue(), "image/jpeg"


def _encoded_array(image: np.ndarray, side: int) -> tuple[bytes, str]:
    data = png(image)
    if max(image.shape[:2]) <= side or not has_pillow():
        return data, "image/png"
    return encode_picture(decode_picture(data), side)


def _check(name: str, size: int, data: bytes) -> None:
    """Refuse a file by its size and first bytes."""
    most = MAX_BYTES if has_pillow() else MAX_PLAIN_BYTES
    if size > most:
        raise NoPictureError(f"{name} is larger than {most // 1_000_000} MB.")
    if not size:
        raise NoPictureError(f"{name} is empty.")
    if media_type(data) is None and not (has_pillow() and data.startswith(_CONVERTED)):
        raise NoPictureError(f"{name} is not a PNG, JPEG, GIF, WebP, BMP or TIFF picture.")


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
    """The type of a picture that browsers show, by its first bytes; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), None)


def _is_images(array: np.ndarray, n_rows: int) -> bool:
    """Whether an array holds a grey or coloured picture for each row."""
    if array.dtype.kind not in "buif" or array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)):
        return False
    return len(array) == n_rows and all(1 < side <= MAX_SIDE for side in array.shape[1:3])


def png(image: np.ndarray) -> bytes:
    """A grey or coloured picture as PNG; numbers are scaled from the smallest to the largest, except bytes."""
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        values = pixels.astype(np.float64)
        pixels = scaled_to_bytes(values, *finite_range(values))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    found = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        found += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return found
