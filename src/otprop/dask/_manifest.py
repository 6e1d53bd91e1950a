"""What a run over a folder keeps in its output folder: the manifest, the model, and a record for each file done."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from otprop.files import TableError, remove_strays, write_atomic

FOLDER = "_otprop"  # in the output folder; readers of Parquet folders skip names that start so
FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """How the outputs of a folder were made.

    Attributes
    ----------
    version : str, of otprop
    options : dict, what the result depends on
    inputs : dict of name to [name, bytes, time of change]
    starts : dict of name to the number of the first row; a file that could not be sampled has none
    model_digest, landmarks_digest : str, SHA-256 of the files
    codes : dict of label as text to class number
    summary : dict, what the fit found, for messages
    """

    version: str
    options: dict[str, Any]
    inputs: dict[str, list[Any]]
    starts: dict[str, int]
    model_digest: str
    landmarks_digest: str = ""
    codes: dict[str, int] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def write(self, state: State) -> None:
        """Write it in one step."""
        text = json.dumps({"kind": "otprop folder", "format": FORMAT, **asdict(self)}, indent=1)
        write_atomic(state.manifest, text, force=True)

    @classmethod
    def read(cls, state: State) -> Self | None:
        """That of an earlier run; None where there is none."""
        try:
            found = json.loads(state.manifest.read_text(encoding="utf-8"))
            if found.pop("kind") != "otprop folder" or found.pop("format") != FORMAT:
                raise ValueError("another format")
            return cls(**found)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TableError(
                f"{state.manifest} cannot be read ({error})", "remove it to begin anew", file=state.manifest
            ) from None


@dataclass(frozen=True)
class State:
    """Where the state of a run is kept."""

    out: Path

    @property
    def folder(self) -> Path:
        return self.out / FOLDER

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def landmarks(self) -> Path:
        return self.folder / "landmarks.npy"

    def record(self, name: str) -> Path:
        """The record of a file that is done."""
        return self.folder / "done" / f"{name}.json"

    def is_done(self, name: str) -> dict[str, Any] | None:
        """The record of a file whose output is there as it was written; None otherwise."""
        try:
            record = json.loads(self.record(name).read_text(encoding="utf-8"))
            found = os.stat(self.out / name)
            return dict(record) if found.st_size == record["bytes"] else None
        except (OSError, ValueError, KeyError):
            return None

    def begin(self, names: list[str]) -> None:
        """Make the folders that the outputs go to."""
        for folder in {self.folder, *((self.out / name).parent for name in names)}:
            folder.mkdir(parents=True, exist_ok=True)
        for folder in {self.record(name).parent for name in names}:
            folder.mkdir(parents=True, exist_ok=True)

    def forget(self) -> None:
        """Remove the manifest and the records of an earlier run, so that everything is done anew."""
        self.manifest.unlink(missing_ok=True)
        for record in (self.folder / "done").rglob("*.json"):
            record.unlink(missing_ok=True)

    def remove_strays(self, names: list[str]) -> None:
        """Remove temporary files of these outputs that killed processes left."""
        for name in names:
            for path in (self.out / name, self.record(name)):
                if path.parent.is_dir():
                    remove_strays(path)


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
