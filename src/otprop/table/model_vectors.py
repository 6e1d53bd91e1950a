"""What text and image models share: vectors are checked, kept on disk, and made again by the same model."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop.files import write_atomic
from otprop.table.errors import CellError, RequestError

MAX_NUMBERS = 4096  # of a vector
DIGEST = re.compile("[0-9a-f]{64}")


class VectorCache:
    """Vectors on disk by the sha256 of what they were made from; without a file they last as long as the process.

    Parameters
    ----------
    path : path or None, the file
    dtype : type, of the vectors
    most : int or None, how many vectors the file keeps; the oldest are dropped
    """

    def __init__(self, path: Path | None, dtype: type = np.float32, most: int | None = None) -> None:
        self._path, self._dtype, self._most = path, dtype, most
        self._known = self._read()
        self._changed = False

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def __getitem__(self, key: bytes) -> np.ndarray:
        return self._known[key]

    def __setitem__(self, key: bytes, vector: np.ndarray) -> None:
        self._known[key], self._changed = np.asarray(vector, dtype=self._dtype), True

    def save(self) -> None:
        """Add what is new to what another process has written since."""
        if self._path is None or not self._changed:
            return
        known = {**self._read(), **self._known}
        kept = list(known)[-self._most :] if self._most else list(known)
        keys = np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(-1, 32)
        content = io.BytesIO()
        np.savez(content, keys=keys, vectors=np.stack([known[key] for key in kept]))
        self._changed = False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self._path, content.getvalue(), force=True)
        except (OSError, ValueError):  # a full or read-only disk: nobody needs the cache
            return

    def _read(self) -> dict[bytes, np.ndarray]:
        """The vectors of a valid file; empty if there is no such file."""
        if self._path is None or not self._path.exists():
            return {}
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                keys, vectors = stored["keys"], stored["vectors"]
            if keys.shape != (len(vectors), 32) or keys.dtype != np.uint8 or vectors.dtype != self._dtype:
                return {}
            if vectors.ndim != 2 or not np.isfinite(vectors).all():
                return {}
            return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}
        except Exception:  # a damaged file: the vectors are made again
            return {}


def cache_file(variable: str, folder: str, name: str) -> Path | None:
    """The file of a cache, None where there is to be none.

    Parameters
    ----------
    variable : str, the environment variable that names the folder; empty for none
    folder : str, below the user's cache folder where the variable is not set
    name : str, what made the vectors, so that others are never mixed in
    """
    from platformdirs import user_cache_path  # of the extra files

    place = os.environ.get(variable, user_cache_path("otprop", appauthor=False) / folder)
    return Path(place).expanduser() / f"{name}.npz" if place else None


def checked_vectors(found: Any, n_items: int, items: str, model: str, advice: str = "") -> np.ndarray:
    """Vectors as an array; raises CellError unless there is one of finite numbers per item."""
    shape = np.shape(found)
    if len(shape) != 2 or shape[0] != n_items or not 0 < shape[1] <= MAX_NUMBERS:
        raise CellError(
            f"got an array of shape {shape} from its {model} for {n_items} {items}; expected a vector of at most "
            f"{MAX_NUMBERS} numbers for each{advice}"
        )
    vectors = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
    if not np.isfinite(vectors).all():
        raise CellError(f"got vectors with infinity or NaN from its {model}")
    return vectors


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Vectors of unit length; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 1e-12, lengths, 1.0))


def refuse_other_model(parameter: str, title: Any, digest: str, model: Any) -> None:
    """Refuse a local model that is not the one that a saved model was made with, or is missing.

    Parameters
    ----------
    parameter : {"text_model", "image_model"}
    title : str, the name of the file or folder; it comes from a model file, and may be anything
    digest : str, sha256 of the one that is needed
    model : LocalTextModel, LocalImageModel or None
    """
    known = f"{title!r} with the sha256 {digest[:16]}..." if isinstance(title, str) else f"sha256 {digest[:16]}..."
    if model is None:
        kind = parameter.replace("_", " ")
        raise RequestError(parameter, f"is needed: name the {kind} of this model again ({known[:200]}).")
    if model.digest != digest:
        reason = f"its sha256 is {model.digest[:16]}...; this model was made with another ({known[:200]})."
        raise RequestError(parameter, reason, model.path)
