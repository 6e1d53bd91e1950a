"""Records of rounds, and finished rounds in a folder.

A round is one safetensors file, with its record as JSON in the header; there is no pickle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from otprop._errors import OtpropError
from otprop._optional import import_optional, safetensors, torch
from otprop.deep.fingerprint import Part, differences
from otprop.files._errors import one_line
from otprop.files.atomic import check_output, write_atomic

FORMAT = "otprop.deep 3"
DELETE = "Delete it to run this round again."
CODES, NETWORK = "codes", "network."  # names of the tensors


@dataclass(frozen=True)
class NetworkRound:
    """The record of a round.

    Attributes
    ----------
    number : int, from 1
    codes : ndarray of int of shape (n_rows,)
        The class of each row, as a position in ``classes_``, that the network of this round was trained on; -1 where
        the transport left it open.
    n_changed : int, unlabelled rows whose class differs from the previous round; 0 in the first
    certainty : float, mean certainty (Eq. 12) of the unlabelled rows
    confidence : float, their mean confidence; NaN if the transport has none
    expected_error : float
        The expected error of the first transport. The features of later rounds come from a network that was trained
        on the labels, so no label is truly held out there.
    n_steps : int, steps of training made
    best_step : int, the step whose weights were kept
    loss : float, mean loss of the last steps
    hidden_loss, hidden_accuracy : float, of the network on the held-out labels; NaN without held-out labels
    seconds : float

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from otprop import OTP
    >>> from otprop.deep import PseudoLabelTrainer
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.full(150, -1)
    >>> y[::15] = truth[::15]
    >>> transport = OTP(evidence=None)  # the geometry alone, which is quick
    >>> model = PseudoLabelTrainer(n_rounds=2, n_steps=20, transport=transport).fit(X, y)
    >>> first, second = model.rounds_
    >>> first.n_changed, second.number, second.n_steps, second.codes.shape
    (0, 2, 20, (150,))
    """

    number: int
    codes: np.ndarray
    n_changed: int
    certainty: float
    confidence: float
    expected_error: float
    n_steps: int
    best_step: int
    loss: float
    hidden_loss: float
    hidden_accuracy: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """All values except the codes, for JSON: NaN becomes None."""
        values = {name: value for name, value in asdict(self).items() if name != "codes"}
        return {name: None if value != value else value for name, value in values.items()}

    @classmethod
    def from_json(cls, codes: np.ndarray, values: dict[str, Any]) -> NetworkRound:
        """The round in the file; raises ValueError if it does not hold one."""
        wanted = {part.name: part.type for part in fields(cls) if part.name != "codes"}
        if values.keys() != wanted.keys():
            raise ValueError("its record has other parts than a round has")
        known: dict[str, Any] = {}
        for name, value in values.items():
            whole = wanted[name] == "int"
            if type(value) is not int and (whole or not (value is None or type(value) is float)):
                raise ValueError(f"its record has no number as {name}")
            if value is not None and not abs(value) < 1e300:
                raise ValueError(f"its record has an infinite {name}")
            known[name] = float("nan") if value is None else value
        return cls(codes=codes, **known)


class CheckpointError(OtpropError, ValueError):
    """A checkpoint cannot be used; the message says why and what to do.

    Examples
    --------
    Rounds that were made with other data, labels or parameters are refused, and are not changed:

    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from otprop import OTP
    >>> from otprop.deep import CheckpointError, PseudoLabelTrainer
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5::10] = -1
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = PseudoLabelTrainer(n_rounds=1, n_steps=20, transport=OTP(evidence=None), checkpoint=folder)
    ...     model = model.fit(X, y).set_params(n_steps=30)
    ...     try:
    ...         model.fit(X, y)
    ...     except CheckpointError as error:
    ...         print(str(error).partition(": ")[2])
    n_steps is 30, the rounds were made with 20. Name another folder in checkpoint, or delete this one to start again.
    """


class CheckpointFolder:
    """The rounds of one run.

    Parameters
    ----------
    folder : str or path
        Created if it does not exist.
    fingerprint : dict of str to (str, str)
        Of the data, the labels and each parameter; rounds with another fingerprint are refused.
    """

    def __init__(self, folder: str | PathLike[str], fingerprint: dict[str, Part]) -> None:
        import_optional("safetensors.torch", "deep")  # fail before any work is done
        self._folder, self._fingerprint = Path(folder), fingerprint
        with self._reporting():
            if self._folder.exists() and not self._folder.is_dir():
                raise CheckpointError(f"checkpoint={str(folder)!r} is a file; name a folder for the rounds.")
            known = sorted(self._folder.glob("round-*.safetensors"))
        for path in known:
            self._refuse_other_runs(path, _read(path, tensors=False)[0])

    def make_ready(self, numbers: Iterable[int]) -> None:
        """Create the folder and check that the missing rounds can be written, before any is computed."""
        with self._reporting():
            self._folder.mkdir(parents=True, exist_ok=True)
            for path in [self.path(number) for number in numbers if not self.path(number).exists()][:1]:
                check_output(path, force=True)

    def path(self, number: int) -> Path:
        return self._folder / f"round-{number:02d}.safetensors"

    def save(self, number: int, module: Any, codes: np.ndarray, record: dict[str, Any]) -> None:
        """Write a round in one step."""
        state = module.state_dict().items()
        tensors = {  # clones, since the file cannot hold memory shared by tied weights
            NETWORK + name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in state
        }
        tensors[CODES] = torch.as_tensor(codes, dtype=torch.int32)
        header = {"format": FORMAT, "made_from": json.dumps(self._fingerprint), "record": json.dumps(record)}
        header["digest"] = _digest(header["record"], tensors)
        with self._reporting():
            write_atomic(self.path(number), safetensors.save(tensors, metadata=header), force=True)

    def load(self, number: int, module: Any) -> tuple[np.ndarray, dict[str, Any]] | None:
        """Load the weights of a round into the network; return its codes and record, or None if it is missing."""
        path = self.path(number)
        if not path.exists():
            return None
        header, tensors = _read(path)
        if header.get("digest") != _digest(header.get("record", ""), tensors):
            raise CheckpointError(f"{path} is damaged: it holds other values than were written. {DELETE}")
        codes = tensors.pop(CODES, None)
        if codes is None or codes.dtype != torch.int32 or codes.ndim != 1:
            raise CheckpointError(f"{path} is damaged: it holds no class numbers of the rows. {DELETE}")
        weights = {name.removeprefix(NETWORK): value for name, value in tensors.items()}
        _check_weights(weights, module, path)
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"{path} holds another network than network= makes: {reason}") from error
        return np.asarray(codes.numpy(), dtype=np.intp), _record(header, path)

    def load_round(self, number: int, module: Any, n_rows: int, n_classes: int) -> NetworkRound | None:
        """Fill the network with the weights of a round, and read the rest of it; None where it is not there."""
        found = self.load(number, module)
        if found is None:
            return None
        codes, record = found
        if len(codes) != n_rows or codes.min(initial=-1) < -1 or codes.max(initial=-1) >= n_classes:
            raise CheckpointError(f"{self.path(number)} is damaged: it holds other rows or classes. {DELETE}")
        try:
            made = NetworkRound.from_json(codes, record)
        except ValueError as error:
            raise CheckpointError(f"{self.path(number)} is damaged: {error}. {DELETE}") from None
        if made.number != number:
            raise CheckpointError(f"{self.path(number)} is damaged: it is the round {made.number}. {DELETE}")
        return made

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Add the parameter and the folder to errors of the operating system."""
        try:
            yield
        except CheckpointError:
            raise
        except (OSError, ValueError) as error:  # a TableError holds the system's message; a NUL is a ValueError
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            reason = str(getattr(cause, "strerror", None) or cause).rstrip(".")
            raise CheckpointError(
                f"checkpoint={str(self._folder)!r} cannot be written: {reason}. Name a folder that can be; finished "
                "rounds are kept."
            ) from error

    def _refuse_other_runs(self, path: Path, header: dict[str, str]) -> None:
        advice = "Name another folder in checkpoint, or delete this one to start again."
        if header.get("format") != FORMAT:
            raise CheckpointError(f"{path} is a round of another version of otprop. {advice}")
        try:
            before = {
                name: (str(shown), str(digest)) for name, (shown, digest) in json.loads(header["made_from"]).items()
            }
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f"{path} has no record of the data and parameters it was made from. {advice}"
            ) from error
        found = differences(self._fingerprint, before)
        if found:
            raise CheckpointError(f"{path} is a round of another run: {'; '.join(found)}. {advice}")


def _read(path: Path, tensors: bool = True) -> tuple[dict[str, str], dict[str, Any]]:
    """Header and tensors of a file, or the header alone."""
    package = import_optional("safetensors", "deep")
    if not path.is_file():
        raise CheckpointError(f"{path} is not a file. {DELETE}")
    try:
        with package.safe_open(path, framework="pt") as file:
            names = file.keys() if tensors else ()
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in names}
    except (
        package.SafetensorError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RuntimeError,
    ) as error:
        raise CheckpointError(f"{path} cannot be read: {one_line(error)}. {DELETE}") from error


def _check_weights(weights: dict[str, Any], module: Any, path: Path) -> None:
    """Refuse other types, and NaN or infinity where the network as it is made has none."""
    for name, made in module.state_dict().items():
        value = weights.get(name)
        if value is None or value.shape != made.shape:
            continue  # load_state_dict says so
        if value.dtype != made.dtype:
            raise CheckpointError(
                f"{path} holds another network than network= makes: {name} is {value.dtype}, not {made.dtype}. {DELETE}"
            )
        if bool((_not_finite(value) & ~_not_finite(made)).any()):
            raise CheckpointError(f"{path} holds weights that are not finite, in {name}. {DELETE}")


def _not_finite(tensor: Any) -> Any:
    return ~torch.isfinite(tensor.double() if tensor.is_floating_point() else tensor).cpu()


def _record(header: dict[str, str], path: Path) -> dict[str, Any]:
    """The record of a round as a dictionary."""
    try:
        record = json.loads(header.get("record", ""))
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise CheckpointError(f"{path} is damaged: it has no record of its round. {DELETE}")
    return record


def _digest(record: str, tensors: dict[str, Any]) -> str:
    """Digest of the record and the values of a round, since a file with a changed byte is still readable."""
    found = hashlib.sha256(record.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():  # as bytes, since NumPy has no bfloat16
            found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
