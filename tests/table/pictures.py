"""Pictures for tests: red and green ones, and files that are none."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

RED, GREEN = (220, 30, 30), (20, 150, 40)


def picture(colour=RED, seed=0, size=(40, 50)):
    """A patch of the colour on white, whose edges vary a little with the seed."""
    from PIL import Image

    pixels = np.full((*size, 3), 255, dtype=np.uint8)
    top, left = np.random.default_rng(seed).integers(2, 6, 2) if min(size) > 12 else (0, 0)
    pixels[top : size[0] - top, left : size[1] - left] = np.array(colour) + seed % 20
    return Image.fromarray(pixels)


def write_pictures(folder: Path, n: int = 12) -> list[str]:
    """Red pictures under odd numbers, green ones under even numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:02d}.png" for number in range(n)]
    for number, name in enumerate(names):
        picture(RED if number % 2 else GREEN, number).save(folder / name)
    return names


def png_that_claims(width: int, height: int) -> bytes:
    """A small PNG file whose header names another size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10_000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
