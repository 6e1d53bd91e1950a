"""Vectors of picture files: without a trained network, made in parallel, kept by content between runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop.table.errors import CellError
from otprop.table.model_vectors import VectorCache, cache_file
from otprop.table.pictures import (
    NEEDS_PILLOW,
    UnreadableFileError,
    decode_picture,
    has_pillow,
    quiet_pillow,
    read_plain_file,
)

VERSION = "1"  # part of the name of the cache: change it with the numbers
SIDE = 64  # pixels of the picture that gradients are taken from
CELL, ORIENTATIONS = 8, 9
FAINT = 3e-3  # squared strength of gradients below which they count as noise
GREY_SIDE, COLOUR_SIDE = 16, 8
COLOUR_LEVELS = 4  # of each of red, green and blue
BLOCKS = (0, 576, 832, 960, 1024, 1060)  # where the blocks of `describe_picture` start, and the end
# each block is scaled by its weight over the root of its spread: blocks in which the pictures of a set hardly differ,
# such as the colours of grey pictures, then count less; chosen on digits, crops of photographs and drawn shapes
WEIGHTS = (0.78, 0.255, 0.28, 0.715, 1.30)
_CELLS = np.arange(SIDE)[:, None] // CELL * (SIDE // CELL) + np.arange(SIDE)[None, :] // CELL  # of each pixel
CACHE = "OTPROP_IMAGE_CACHE"  # environment variable: the folder of the cache; empty for none
MAX_CACHED = 100_000  # vectors in one file
AT_ONCE = 64  # pictures in memory
MAX_THREADS = 8
_SMALL = 128  # sides that a picture may be decoded to for the descriptors
_progress: ContextVar[ProgressCallback] = ContextVar("picture_progress", default=no_progress)
_contents: dict[tuple[str, int, int], bytes] = {}  # sha256 by path, size and time of the last change


def describe_picture(image: Any) -> dict[str, np.ndarray]:
    """The blocks of numbers of an RGB image of Pillow, each of fixed length."""
    from PIL import Image

    small = image.resize((SIDE, SIDE), Image.Resampling.BOX if min(image.size) >= SIDE else Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float32) / 255.0
    grey = pixels @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    chroma = np.stack([pixels[:, :, 0] - grey, pixels[:, :, 2] - grey], axis=2)
    return {
        "gradients": _gradients(grey),
        "grey": _pooled(grey[:, :, None], GREY_SIDE).ravel(),
        "colour": _pooled(chroma, COLOUR_SIDE).ravel(),
        "colours": _colours(pixels),
        "texture": _texture(grey),
    }


def _pooled(values: np.ndarray, side: int) -> np.ndarray:
    """Means over the cells of a grid of `side` x `side`."""
    step = SIDE // side
    return np.asarray(values.reshape(side, step, side, step, -1).mean(axis=(1, 3)))


def _gradients(grey: np.ndarray) -> np.ndarray:
    """Histograms of oriented gradients, one per cell, scaled by the strength in the cell and around it."""
    down, right = np.gradient(grey)
    strength = np.hypot(down, right)
    angle = np.mod(np.arctan2(down, right), np.pi) / np.pi * ORIENTATIONS
    share = angle - np.floor(angle)
    first = angle.astype(np.intp) % ORIENTATIONS
    places = _CELLS * ORIENTATIONS
    n_bins = (SIDE // CELL) ** 2 * ORIENTATIONS
    found = np.bincount((places + first).ravel(), (strength * (1 - share)).ravel(), n_bins)
    found += np.bincount((places + (first + 1) % ORIENTATIONS).ravel(), (strength * share).ravel(), n_bins)
    side = SIDE // CELL
    cells = found.reshape(side, side, ORIENTATIONS) / CELL**2
    energy = np.pad((cells**2).sum(axis=2), 1)
    around = sum(energy[i : i + side, j : j + side] for i in range(3) for j in range(3))
    return np.asarray(cells / np.sqrt(around + FAINT)[:, :, None]).ravel()


def _colours(pixels: np.ndarray) -> np.ndarray:
    """The roots of the shares of the colours: their distance is Hellinger's."""
    levels = np.minimum((pixels * COLOUR_LEVELS).astype(np.intp), COLOUR_LEVELS - 1)
    codes = (levels[:, :, 0] * COLOUR_LEVELS + levels[:, :, 1]) * COLOUR_LEVELS + levels[:, :, 2]
    counts = np.bincount(codes.ravel(), minlength=COLOUR_LEVELS**3)
    return np.asarray(np.sqrt(counts / counts.sum()))


def _texture(grey: np.ndarray) -> np.ndarray:
    """The roots of the shares of local binary patterns: which of the eight neighbours are brighter, up to rotation."""
    centre = grey[1:-1, 1:-1]
    codes = np.zeros(centre.shape, dtype=np.intp)
    for bit, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))):
        codes |= (grey[i : i + SIDE - 2, j : j + SIDE - 2] > centre + 0.01).astype(np.intp) << bit
    counts = np.bincount(_ROTATED[codes].ravel(), minlength=_ROTATED.max() + 1)
    return np.asarray(np.sqrt(counts / counts.sum()))


def _rotation_classes() -> np.ndarray:
    """The number of the class of each pattern of eight bits under rotation."""
    least = [min(((code << n) | (code >> (8 - n))) & 255 for n in range(8)) for code in range(256)]
    return np.unique(least, return_inverse=True)[1]


_ROTATED = _rotation_classes()


@contextmanager
def picture_progress(progress: ProgressCallback) -> Iterator[None]:
    """Report the reading of pictures inside this block."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


class Describer:
    """Makes vectors of decoded pictures."""

    name: str | None = f"descriptors-{VERSION}"  # of the cache; None where the vectors are not kept
    small: int | None = _SMALL  # as in `decode_picture`
    _cache: VectorCache | None = None

    def one(self, data: bytes) -> Any:
        """What one thread makes of the bytes of a file."""
        return np.concatenate(list(describe_picture(decode_picture(data, self.small)).values()))

    def many(self, made: list[Any]) -> np.ndarray:
        """The vectors of what `one` has made, in the same order."""
        return np.stack(made)

    def cache(self) -> VectorCache:
        """The vectors that are known."""
        if self._cache is None:
            self._cache = VectorCache(
                cache_file(CACHE, "images", self.name) if self.name else None, np.float16, MAX_CACHED
            )
        return self._cache


BUILT_IN = Describer()


def picture_vectors(
    names: Sequence[str | None], folder: Path, describer: Describer = BUILT_IN
) -> tuple[np.ndarray, dict[int, str]]:
    """The vectors of files, which may repeat, as float16, and why some have none: NaN, and a problem by its place.

    A problem is a sentence that continues after the name of the file. None has neither a vector nor a problem.
    """
    if not has_pillow():
        raise ImportError(NEEDS_PILLOW)
    progress, cache = _progress.get(), describer.cache()
    keys: list[bytes | None] = [None] * len(names)
    problems: dict[int, str] = {}
    places = [place for place, name in enumerate(names) if name]
    with quiet_pillow(), ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(places), AT_ONCE):
            progress(start, len(places), "reading pictures")
            part = places[start : start + AT_ONCE]
            paths = [folder / str(names[place]) for place in part]
            found = list(threads.map(lambda path: _made(path, describer, cache), paths))
            new = {key: made for key, made, _ in found if key is not None and made is not None}
            if new:
                for key, vector in zip(new, describer.many(list(new.values())), strict=True):
                    cache[key] = vector
            for place, (content, _, problem) in zip(part, found, strict=True):
                keys[place] = content
                if problem:
                    problems[place] = problem
    cache.save()
    return _stacked(keys, cache), problems


def _made(path: Path, describer: Describer, cache: VectorCache) -> tuple[bytes | None, Any, str]:
    """The key of a file, what was made of it where its vector is not known yet, and why it cannot be read."""
    try:
        stamp = _stamp(path)
        key = _contents.get(stamp) if stamp else None
        if key is not None and key in cache:
            return key, None, ""
        data = read_plain_file(path)
        content = sha256(data).digest()
        made = None if content in cache else describer.one(data)
    except UnreadableFileError as error:
        return None, None, str(error)
    if stamp:
        _contents[stamp] = content
    return content, made, ""


def _stamp(path: Path) -> tuple[str, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return str(path.absolute()), found.st_size, found.st_mtime_ns


def _stacked(keys: Sequence[bytes | None], cache: VectorCache) -> np.ndarray:
    known = [place for place, key in enumerate(keys) if key is not None]
    width = len(cache[keys[known[0]]]) if known else 0  # type: ignore[index]
    found = np.full((len(keys), width), np.nan, dtype=np.float16)
    for place in known:
        vector = cache[keys[place]]  # type: ignore[index]
        if len(vector) != width:
            raise CellError(f"got vectors of {width} and of {len(vector)} numbers from its image model")
        found[place] = vector
    return found
