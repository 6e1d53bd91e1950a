"""Vectors on disk by the sha256 of what they were made from, so that nothing is computed twice."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from otprop.files import write_atomic

MAX_VECTORS = 100_000  # of one file; the oldest are dropped


class VectorCache:
    """Vectors of half precision; where the disk cannot be used, they last as long as the process.

    Parameters
    ----------
    path : path or None
        The file; None to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known = _read(self._path)
        self._changed = False

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def __getitem__(self, key: bytes) -> np.ndarray:
        return self._known[key]

    def __setitem__(self, key: bytes, vector: np.ndarray) -> None:
        self._known[key], self._changed = np.asarray(vector, dtype=np.float16), True

    def save(self) -> None:
        """Add what is new to what another process has written since."""
        if self._path is None or not self._changed:
            return
        known = {**_read(self._path), **self._known}
        keys = list(known)[-MAX_VECTORS:]
        content = io.BytesIO()
        np.savez(
            content,
            keys=np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 32),
            vectors=np.stack([known[key] for key in keys]),
        )
        self._changed = False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self._path, content.getvalue(), force=True)
        except (OSError, ValueError):  # nobody needs the cache
            return


def cache_file(variable: str, folder: str, name: str) -> Path | None:
    """The file of a cache, None where there is to be none.

    Parameters
    ----------
    variable : str, the environment variable that names the folder; empty for none
    folder : str, below the user's cache folder where the variable is not set
    name : str, what made the vectors, so that others are never mixed in
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    place = os.environ.get(variable, f"{home}/otprop/{folder}")
    return Path(place).expanduser() / f"{name}.npz" if place else None


def _read(path: Path | None) -> dict[bytes, np.ndarray]:
    """The vectors of a valid file; empty if there is no such file."""
    if path is None or not path.exists():
        return {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            keys, vectors = stored["keys"], stored["vectors"]
        if keys.shape != (len(vectors), 32) or keys.dtype != np.uint8 or vectors.dtype != np.float16:
            return {}
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            return {}
        return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}
    except Exception:  # a damaged file: the vectors are made again
        return {}
