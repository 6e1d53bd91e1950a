"""Results on disk: an append-only file that stays readable when a run is killed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FILE_NAME = "cells.jsonl"
LOCK_NAME = ".lock"


class StoreError(OSError):
    """The folder of results cannot be read or written."""


def key_of(parts: Mapping[str, Any]) -> str:
    """The key as canonical JSON."""
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


class Store:
    """An append-only file of results, each under its key.

    A result is one line of JSON, written by one call after a line break. A line that a killed run left incomplete is
    skipped. Of two results with one key the first is used.

    Parameters
    ----------
    folder : path
        Created where missing. One process may write at a time.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE_NAME
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o666)
            self._file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o666)
        except OSError as error:
            raise StoreError(
                f"the folder {self.folder} cannot be written ({error.strerror}): choose another folder."
            ) from (error)
        self._take_lock()
        self._results = dict(self._read())

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not available on this system
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise StoreError(
                f"another benchmark is writing to {self.folder}: wait for it, or choose another folder."
            ) from (None)

    def _read(self) -> Iterable[tuple[str, dict[str, Any]]]:
        seen = set()
        with self.path.open("rb") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                    key, value = entry["key"], entry["value"]
                except (ValueError, TypeError, KeyError):
                    continue
                if key not in seen:
                    seen.add(key)
                    yield key, value

    def __contains__(self, parts: Mapping[str, Any]) -> bool:
        return key_of(parts) in self._results

    def __len__(self) -> int:
        return len(self._results)

    def get(self, parts: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result with this key, None where there is none."""
        return self._results.get(key_of(parts))

    def add(self, results: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        """Write results to the disk."""
        fresh = {key_of(parts): value for parts, value in results}
        lines = [json.dumps({"key": key, "value": value}, allow_nan=True) for key, value in fresh.items()]
        payload = ("\n" + "\n".join(lines) + "\n").encode()
        try:
            written = os.write(self._file, payload)
            while written < len(payload):
                written += os.write(self._file, payload[written:])
            os.fsync(self._file)
        except OSError as error:
            raise StoreError(
                f"a result could not be saved to {self.path} ({error.strerror}). Earlier results are intact: "
                "make room and run the same command again."
            ) from error
        for key, value in fresh.items():
            self._results.setdefault(key, value)

    def close(self) -> None:
        """Close the file and release the lock."""
        for name in ("_file", "_lock"):
            handle = getattr(self, name, None)
            if handle is not None:
                os.close(handle)
                setattr(self, name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
