"""Pictures in files: read safely, upright and in colour."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from otprop._errors import OtpropError, install_command

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
MAX_BYTES = 200_000_000  # of a file
MAX_PIXELS = 100_000_000  # of a picture once it is decoded
NEEDS_PILLOW = f"reading pictures needs Pillow: {install_command('images')}"
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # none that starts another program


class PictureError(OtpropError, ValueError):
    """A picture cannot be read; the message says why and continues after the name of the file."""


def has_pillow() -> bool:
    """Whether pictures can be read here."""
    return find_spec("PIL") is not None


def is_picture_name(name: str) -> bool:
    """Whether a file is a picture by its name."""
    return name.lower().rstrip().endswith(PICTURE_SUFFIXES)


def read_plain_file(path: Path) -> bytes:
    """The bytes of a plain file that is not too large; raises PictureError."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not be waited for
        with os.fdopen(number, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise PictureError("is not a plain file")
            if found.st_size > MAX_BYTES:
                raise PictureError(f"is larger than {MAX_BYTES // 1_000_000} MB")
            data = file.read()
    except FileNotFoundError:
        raise PictureError("does not exist") from None
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        if isinstance(error, PictureError):
            raise
        raise PictureError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not data:
        raise PictureError("is empty")
    return data


def decode_picture(data: bytes, small: int | None = None) -> Any:
    """The first frame as an upright RGB image of Pillow; transparent parts are white.

    Parameters
    ----------
    data : bytes, of the file
    small : int or None, a smaller image will do as long as its sides are not below this; JPEG files decode faster so
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        image: Any = Image.open(BytesIO(data), formats=_FORMATS)
        if image.width * image.height > MAX_PIXELS:
            raise PictureError(f"has {image.width} x {image.height} pixels; at most {MAX_PIXELS // 10**6} million")
        if small is not None:
            image.draft("RGB", (small, small))
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
        values = np.asarray(image, dtype=np.float64)
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        values = np.clip(np.where(np.isnan(values), low, values), low, high)
        image = Image.fromarray(np.round(255 * ((values - low) / ((high - low) or 1.0))).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")
