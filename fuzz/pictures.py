"""Damaged and odd pictures: a vector of finite numbers or a PictureError in one sentence, in bounded memory."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from harness import Run, check, check_sentence, limited_memory
from otprop.table.picture_vectors import BUILT_IN
from otprop.table.pictures import PictureError, decode_picture, quiet_pillow
from otprop.table.row_pictures import THUMBNAIL, encode_picture, png

MORE_MEMORY = 2 << 30  # bytes beside those that the process has when the examples begin
MODES = ("RGB", "L", "P", "1", "CMYK", "LA", "RGBA", "I;16", "I", "F", "YCbCr")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
SIDES = (1, 2, 7, 64, 300, 3000)
Rng = np.random.Generator


def pick(rng: Rng, options: tuple[object, ...]) -> object:
    return options[rng.integers(len(options))]


def whole(rng: Rng) -> bytes:
    """A picture of a random mode, size and format."""
    width, height = (int(pick(rng, SIDES)) for _ in range(2))  # type: ignore[call-overload]
    mode = str(pick(rng, MODES))
    noise = rng.integers(0, 256, (min(height, 64), min(width, 64), 3)).astype(np.uint8)
    image = Image.fromarray(noise).resize((width, height), Image.Resampling.NEAREST)
    if mode == "I;16":
        image = Image.fromarray(rng.integers(0, 2**16, (height, width)).astype(np.uint16))
    elif mode == "F":
        values = rng.normal(size=(height, width)) * 10.0 ** rng.uniform(-40, 40)
        values[rng.random(values.shape) < 0.1] = pick(rng, (np.nan, np.inf, -np.inf, 0.0))
        with np.errstate(over="ignore"):
            image = Image.fromarray(values.astype(np.float32))
    else:
        image = image.convert(mode)
    out = io.BytesIO()
    options = {"progressive": True} if rng.random() < 0.5 else {}
    try:
        image.save(out, str(pick(rng, FORMATS)), **options)
    except (OSError, ValueError, KeyError):  # a format that has no such mode
        out = io.BytesIO()
        image.save(out, "TIFF")
    return out.getvalue()


def damaged(data: bytes, rng: Rng) -> bytes:
    """The file with some bytes changed, removed, repeated or inserted."""
    found = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 4, 16])):
        at, length = int(rng.integers(len(found) + 1)), int(rng.choice([0, 1, 4, 200]))
        new = bytes(found[at : at + length]) * int(rng.choice([1, 2, 1000])) if rng.random() < 0.2 else rng.bytes(4)
        found[at : at + length] = new
    return bytes(found)


def example(rng: Rng) -> str:
    """Make a vector and a thumbnail of a picture."""
    if rng.random() < 0.05:
        shape = tuple(int(pick(rng, SIDES[1:5])) for _ in range(2))  # type: ignore[call-overload]
        png(rng.normal(size=shape) * 10.0 ** rng.uniform(-320, 308))
        return "array shown"
    data = damaged(whole(rng), rng)
    try:
        with quiet_pillow():
            found = BUILT_IN.one(data)
            encode_picture(decode_picture(data, THUMBNAIL), THUMBNAIL)
    except PictureError as error:
        check_sentence(str(error))
        return "refused"
    check(np.isfinite(found).all(), "a vector with infinity or NaN")
    return "read"


def run(options: Run) -> None:
    with limited_memory(MORE_MEMORY):
        options.each(example)
