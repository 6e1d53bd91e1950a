"""Vectors of picture files: made in parallel, and kept by content between runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop.table.errors import CellError
from otprop.table.picture_descriptors import VERSION, describe_picture
from otprop.table.pictures import NEEDS_PILLOW, decode_picture, has_pillow, quiet_pillow
from otprop.table.plain_files import UnreadableFileError, read_plain_file
from otprop.table.vector_cache import VectorCache, cache_file

CACHE = "OTPROP_IMAGE_CACHE"  # environment variable: the folder of the cache; empty for none
AT_ONCE = 64  # pictures in memory
MAX_THREADS = 8
_SMALL = 128  # sides that a picture may be decoded to for the descriptors

_progress: ContextVar[ProgressCallback] = ContextVar("picture_progress", default=no_progress)
_contents: dict[tuple[str, int, int], bytes] = {}  # sha256 by path, size and time of the last change


@contextmanager
def picture_progress(progress: ProgressCallback) -> Iterator[None]:
    """Report the reading of pictures inside this block."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


@dataclass
class PictureVectors:
    """Vectors of files, and why some have none.

    Attributes
    ----------
    vectors : ndarray of float16 of shape (n_files, n_numbers); NaN where there is none
    problems : dict of int to str, the place of a file that cannot be read, and a sentence that continues after its name
    """

    vectors: np.ndarray
    problems: dict[int, str] = field(default_factory=dict)


class Describer:
    """Makes vectors of decoded pictures.

    Attributes
    ----------
    name : str or None, of the cache; None where the vectors are not kept
    small : int or None, as in `decode_picture`
    """

    name: str | None = f"descriptors-{VERSION}"
    small: int | None = _SMALL
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
            self._cache = VectorCache(cache_file(CACHE, "images", self.name) if self.name else None)
        return self._cache


BUILT_IN = Describer()


def picture_vectors(names: Sequence[str | None], folder: Path, describer: Describer = BUILT_IN) -> PictureVectors:
    """The vectors of files, which may repeat; None has neither a vector nor a problem."""
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
    return PictureVectors(_stacked(keys, cache), problems)


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
