"""Files that are rows, read within bounds: bytes of any, pictures upright and in colour."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from otprop._errors import OtpropError, install_command

MAX_BYTES = 200_000_000
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
MAX_PIXELS, MAX_SIDE = 100_000_000, 65_535  # of a picture once it is decoded
LARGE_PIXELS = 10_000_000  # from which on pictures are decoded one at a time: each may need a gigabyte
MAX_SCANS = 64  # of a JPEG file; usual ones have ten, and each of them goes through all pixels
STRIP_PIXELS = 1_000_000  # of a picture of numbers that are scaled at once
NEEDS_PILLOW = f"reading pictures needs Pillow: {install_command('images')}"
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # none that starts another program
_JPEG, _SCAN, _END = b"\xff\xd8", b"\xff\xda", b"\xff\xd9"
_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")  # of a JPEG file, except those within the data of a scan
_large = Lock()


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


class PictureError(UnreadableFileError):
    """A file is not a picture that can be read."""


def has_pillow() -> bool:
    """Whether pictures can be read here."""
    return find_spec("PIL") is not None


def is_picture_name(name: str) -> bool:
    """Whether a file is a picture by its name."""
    return name.lower().rstrip().endswith(PICTURE_SUFFIXES)


def decode_picture(data: bytes, small: int | None = None) -> Any:
    """The first frame as an upright RGB image of Pillow; transparent parts are white.

    `small`: a smaller image will do as long as its sides are not below this; JPEG files decode faster so.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        image: Any = Image.open(BytesIO(data), formats=_FORMATS)
        n_pixels = image.width * image.height
        if n_pixels > MAX_PIXELS:
            raise PictureError(f"has {image.width} x {image.height} pixels; at most {MAX_PIXELS // 10**6} million")
        if max(image.size) > MAX_SIDE:
            raise PictureError(f"has {image.width} x {image.height} pixels; a side has at most {MAX_SIDE}")
        if data.startswith(_JPEG):
            _check_scans(data)
        if small is not None:
            image.draft("RGB", (small, small))
        with _large if n_pixels > LARGE_PIXELS else nullcontext():
            image.load()
            return _in_colour(ImageOps.exif_transpose(image))
    except PictureError:
        raise
    except UnidentifiedImageError:
        raise PictureError("is not a picture (PNG, JPEG, GIF, WebP, BMP or TIFF)") from None
    except Image.DecompressionBombError:
        raise PictureError(f"has more than {MAX_PIXELS // 10**6} million pixels") from None
    except Exception as error:  # Pillow raises almost anything for a damaged file
        raise PictureError(f"is damaged ({str(error).splitlines()[0][:100] if str(error) else 'no detail'})") from None


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Keep Pillow's warnings of odd files from the user: what matters is checked here. Not to be entered by threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _in_colour(image: Any) -> Any:
    from PIL import Image

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):  # `convert` would cut these at 255
        image = Image.fromarray(_as_bytes(image))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _as_bytes(image: Any) -> np.ndarray:
    """The numbers of an image scaled to 0 ... 255, strip by strip, from the least to the largest finite one."""
    width, height = image.size
    step = max(1, STRIP_PIXELS // width)
    strips = [(top, min(top + step, height)) for top in range(0, height, step)]

    def values(strip: tuple[int, int]) -> np.ndarray:
        return np.asarray(image.crop((0, strip[0], width, strip[1])), dtype=np.float64)

    low, high = finite_range(np.array([finite_range(values(strip)) for strip in strips]))
    found = np.empty((height, width), dtype=np.uint8)
    for strip in strips:
        found[slice(*strip)] = scaled_to_bytes(values(strip), low, high)
    return found


def finite_range(values: np.ndarray) -> tuple[float, float]:
    """The least and the largest finite number, NaN where there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)


def scaled_to_bytes(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers from `low` to `high` as 0 ... 255; NaN is as `low`, and all are 0 where that is not a number."""
    if not low < high:
        return np.zeros(values.shape, dtype=np.uint8)
    halves = np.clip(np.where(np.isnan(values), low, values), low, high) / 2  # the range of all floats is infinite
    return np.round(255 * ((halves - low / 2) / (high / 2 - low / 2))).astype(np.uint8)


def _check_scans(data: bytes) -> None:
    """Refuse a JPEG file of thousands of scans, which are a few bytes each and would take hours."""
    n_scans, at = 0, len(_JPEG)
    while found := _MARKER.search(data, at):
        if found[0] == _END:
            return
        n_scans += found[0] == _SCAN
        if n_scans > MAX_SCANS:
            raise PictureError(f"is a JPEG file of more than {MAX_SCANS} scans")
        at = found.end() + max(2, int.from_bytes(data[found.end() : found.end() + 2], "big"))
