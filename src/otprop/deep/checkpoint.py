"""Finished rounds in a folder: one safetensors file a round, its record as JSON in the header, no pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from otprop.deep._torch import import_extra, safetensors, torch
from otprop.files.atomic import write_atomic

FORMAT = "otprop.deep 1"
CODES, NETWORK = "codes", "network."  # names of the tensors


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why and what to do."""


class CheckpointFolder:
    """The rounds of one run.

    Parameters
    ----------
    folder : str or path
        Created where it does not exist.
    fingerprint : str
        Of the data, the labels and the parameters; rounds of another one are refused.
    """

    def __init__(self, folder: str | Path, fingerprint: str) -> None:
        import_extra("safetensors.torch")  # fail before any work is done
        self._folder, self._fingerprint = Path(folder), fingerprint
        if self._folder.exists() and not self._folder.is_dir():
            raise CheckpointError(f"checkpoint={str(folder)!r} is a file; name a folder for the rounds.")
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self._folder.glob("round-*.safetensors")):
            self._refuse_other_runs(path, _read(path, tensors=False)[0])

    def path(self, number: int) -> Path:
        return self._folder / f"round-{number:02d}.safetensors"

    def save(self, number: int, module: Any, codes: np.ndarray, record: dict[str, Any]) -> None:
        """Write a round in one step."""
        tensors = {NETWORK + name: value.detach().contiguous() for name, value in module.state_dict().items()}
        tensors[CODES] = torch.as_tensor(codes, dtype=torch.int32)
        header = {"format": FORMAT, "fingerprint": self._fingerprint, "record": json.dumps(record)}
        write_atomic(self.path(number), safetensors.save(tensors, metadata=header), force=True)

    def load(self, number: int, module: Any) -> tuple[np.ndarray, dict[str, Any]] | None:
        """Fill the network with the weights of a round; its codes and record, or None where it is not there."""
        path = self.path(number)
        if not path.exists():
            return None
        header, tensors = _read(path)
        codes = tensors.pop(CODES)
        try:
            module.load_state_dict({name.removeprefix(NETWORK): value for name, value in tensors.items()})
        except RuntimeError as error:
            raise CheckpointError(f"{path} holds another network than network= makes: {error}") from error
        return np.asarray(codes.numpy(), dtype=np.intp), json.loads(header["record"])

    def _refuse_other_runs(self, path: Path, header: dict[str, str]) -> None:
        if header.get("format") != FORMAT or header.get("fingerprint") != self._fingerprint:
            raise CheckpointError(
                f"{path} is a round of other data, labels or parameters. Name another folder in checkpoint, or delete "
                "this one to start again."
            )


def fingerprint(rows: np.ndarray, codes: np.ndarray, settings: dict[str, Any]) -> str:
    """A digest of rows, labels and settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
    digest.update(str(rows.shape).encode())
    digest.update(np.ascontiguousarray(rows).data)
    digest.update(np.ascontiguousarray(codes, dtype=np.int64).data)
    return digest.hexdigest()


def _read(path: Path, tensors: bool = True) -> tuple[dict[str, str], dict[str, Any]]:
    """Header and tensors of a file, or the header alone."""
    package = import_extra("safetensors")
    try:
        with package.safe_open(path, framework="pt") as file:
            names = file.keys() if tensors else ()
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in names}
    except (package.SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}. Delete it to run this round again.") from error
