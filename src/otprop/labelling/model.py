"""A saved model: the features of a table and the fitted estimator, for rows that come later."""

from __future__ import annotations

import base64
import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from zipfile import BadZipFile, ZipFile
from zoneinfo import ZoneInfo

import numpy as np

from otprop._errors import OtpropError
from otprop.files import Reading, Table, write_atomic
from otprop.labelling.archive import TEXT, ArchiveError, read_header, read_root, write_archive
from otprop.labelling.outcome import RowLabels
from otprop.propagation.rounds import certainty
from otprop.table.columns import pandas
from otprop.table.errors import ColumnError
from otprop.table.features import Features
from otprop.table.images import with_folder
from otprop.table.text import LocalTextModel

if TYPE_CHECKING:
    from otprop.labelling.job import Job

OLDEST_FORMAT, FORMAT = 3, 3
KIND = "otprop model"
MAX_DEVIATION = 1e-6  # of the sum of class probabilities from one
PACKAGES = ("otprop", "scikit-learn", "numpy", "scipy")  # whose version can change the predictions


class ModelError(OtpropError, ValueError):
    """Something is wrong with a model, or its file; the message is one line for the user."""


@dataclass(frozen=True)
class SavedModel:
    """A model for rows that come later, from a file or for one."""

    features: Features  # fitted
    estimator: Any  # fitted on class numbers
    target: str  # the column that the labels were in
    classes: list[str]
    values: list[Any]  # the classes as they are in the file
    versions: dict[str, str] = field(default_factory=dict)  # of the packages that made it
    notes: list[str] = field(default_factory=list)  # what a user should know
    readings: dict[str, Reading] = field(default_factory=dict)  # how the columns of the table were read

    @classmethod
    def of_job(cls, job: Job, values: Sequence[Any] | None = None) -> Self:
        """The model of a job that has run; `values` are its classes, where they are not those of the target."""
        readings = job.table.readings(job.features.wanted)
        target, classes = job.target, job.target.values if values is None else values
        return cls(job.features, job.estimator, target.name, target.classes, list(classes), readings=readings)

    @property
    def has_confidence(self) -> bool:
        """Whether the method has a confidence."""
        return hasattr(self.estimator, "confidence_")

    def frame(self, table: Table) -> Any:
        """The columns that the model needs, read as those of its first table: decimal signs, forms of dates."""
        self.check_columns(table.usable)
        return with_folder(table.frame(self.features.wanted, like=self.readings), table)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks columns, naming all of them."""
        self.features.check_names(names)


def save_model(
    out: str | Path | BinaryIO, model: SavedModel, *, force: bool = False, made_from: Path | None = None
) -> None:
    """Write a model to a file: a zip archive of JSON and NumPy arrays, without pickle.

    `made_from` is the file of its table: it is never written, and the model can be read by no more people.
    """
    header = {
        "kind": KIND,
        "format": FORMAT,
        "target": model.target,
        "classes": list(model.classes),
        "values": [_to_json(value) for value in model.values],
        "readings": {name: asdict(found) for name, found in model.readings.items()},
        "versions": _versions(),
    }
    root = {"features": model.features, "estimator": model.estimator}

    def write(file: BinaryIO) -> None:
        try:
            write_archive(file, header, root)
        except ArchiveError as error:
            raise ModelError(
                f"this model cannot be saved: {error}. Fit it again without that source or setting, or keep the result "
                "with pickle, whose files run code: load only your own."
            ) from None

    if isinstance(out, (str, Path)):
        write_atomic(out, write, force, [] if made_from is None else [made_from], mode_like=made_from)
    else:
        write(out)


def load_model(
    file: str | Path | BinaryIO,
    *,
    text_model: str | PathLike[str] | LocalTextModel | None = None,
    image_model: str | PathLike[str] | None = None,
) -> SavedModel:
    """Read a model from a file, which may come from anyone: no code in it is run, and no path in it is opened.

    `text_model` and `image_model` are the local models that it was made with, whose digests must be the same.
    """
    name = str(file) if isinstance(file, (str, Path)) else "the model"
    if isinstance(file, (str, Path)):  # not methods of Path, which raise an error where a name is too long
        if os.path.isdir(file):
            raise ModelError(f"{name} is a folder; name the model file in it.")
        if not os.path.exists(file):
            raise ModelError(f"there is no model file {name}.")
        if not os.path.isfile(file):
            raise ModelError(f"{name} is a device or a pipe; name a model file.")
    try:
        with ZipFile(file) as archive:
            model = _read(archive, name)
    except ModelError:
        raise
    except ArchiveError as error:
        raise ModelError(f"{name} is not loaded: {error}.") from None
    except (BadZipFile, EOFError):
        raise ModelError(
            f"{name} is not a model that 'otprop label --save' wrote, or it is damaged or cut off."
        ) from None
    except OSError as error:
        raise ModelError(f"{name} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # whatever the parts of a damaged file make zipfile, json and NumPy raise
        raise ModelError(
            f"{name} is damaged or not a model of otprop ({type(error).__name__} while reading it)."
        ) from None
    model.notes.extend(model.features.use_models(text_model, image_model))
    return model


def _read(archive: ZipFile, name: str) -> SavedModel:
    members = archive.namelist()
    if TEXT not in members:
        of_arrays = members and all(member.endswith(".npy") for member in members)
        what = "an NPZ file of arrays" if of_arrays else "a ZIP archive"
        raise ModelError(f"{name} is {what}, not a model that 'otprop label --save' wrote.")
    header = _checked(read_header(archive), name)
    root = read_root(archive, header)
    features, estimator = (root.get("features"), root.get("estimator")) if isinstance(root, dict) else (None, None)
    if not isinstance(features, Features) or not hasattr(estimator, "predict_proba"):
        raise ModelError(f"{name} holds no features and estimator: it is not a model of otprop.")
    features.check_fitted()
    versions = {str(package): str(number) for package, number in header["versions"].items()}
    return SavedModel(
        features,
        estimator,
        header["target"],
        header["classes"],
        values=[_from_json(value) for value in header["values"]],
        versions=versions,
        notes=_notes(versions),
        readings={str(column): _reading(found) for column, found in header.get("readings", {}).items()},
    )


def predict_table(model: SavedModel, frame: Any) -> RowLabels:
    """Label rows that come later, of a DataFrame with the columns of the model in any order."""
    distributions = np.zeros((len(frame), len(model.classes)))
    if len(frame) == 0:
        confidence = np.empty(0) if model.has_confidence else None
        none = np.empty(0, dtype=np.intp)
        return RowLabels(codes=none, distributions=distributions, certainty=np.empty(0), confidence=confidence)
    model.features.check_frame(frame)
    try:
        with np.errstate(all="ignore"):  # what comes of numbers that a file made up is checked below
            vectors = model.features.transform(frame)
            if model.has_confidence:
                places, found, confidence = model.estimator.predict_all(vectors)
            else:
                found, confidence = model.estimator.predict_proba(vectors), None
                places = found.argmax(axis=1)
            classes = np.asarray(model.estimator.classes_, dtype=np.intp)
            distributions[:, classes] = found
            codes = classes[places]
    except (ColumnError, ImportError, MemoryError):  # about the table, or its text model
        raise
    except Exception as error:  # attributes that a file made up
        what = f"the model is damaged ({type(error).__name__} while it labelled the rows)."
        raise ModelError(what) from error
    _check_probabilities(distributions, confidence)
    sure = certainty(distributions)
    return RowLabels(codes=codes, distributions=distributions, certainty=sure, confidence=confidence)


def _check_probabilities(distributions: np.ndarray, confidence: np.ndarray | None) -> None:
    """Refuse what only a damaged model gives."""
    sound = np.isfinite(distributions).all() and (distributions >= 0).all()
    if not sound or np.abs(distributions.sum(axis=1) - 1).max() > MAX_DEVIATION:
        raise ModelError("the model is damaged: its probabilities are invalid.")
    if confidence is not None and not ((confidence >= 0) & (confidence <= 1)).all():
        raise ModelError("the model is damaged: its confidence is invalid.")


def _checked(header: dict[str, Any], name: str) -> dict[str, Any]:
    if header.get("kind") != KIND or type(header.get("format")) is not int:
        raise ModelError(f"{name} is not a model that 'otprop label --save' wrote.")
    if not OLDEST_FORMAT <= header["format"] <= FORMAT:
        old = header["format"] < OLDEST_FORMAT
        made_by = header.get("versions", {}).get("otprop", "an older version" if old else "a newer version")
        raise ModelError(
            f"{name} has the format {header['format']}, made by otprop {made_by}; this version reads {FORMAT}: "
            + ("label the table again with --save." if old else "upgrade otprop.")
        )
    classes, values = header["classes"], header["values"]
    texts = isinstance(header["target"], str) and all(isinstance(text, str) for text in classes)
    if not texts or len(classes) != len(values) or not isinstance(header["versions"], dict):
        raise ModelError(f"{name} is damaged: its classes are invalid.")
    return header


def _reading(found: dict[str, Any]) -> Reading:
    if not all(isinstance(part, str) for part in found.values()):
        raise ArchiveError("how its columns were read is invalid")
    return Reading(**found)


def _to_json(value: Any) -> Any:
    """A class as JSON; values other than text, numbers and booleans come with the name of their type."""
    if type(value).__name__ == "Timestamp":
        return {"timestamp": value.isoformat(), "zone": _zone(value)}
    if isinstance(value, datetime):
        return {"datetime": value.isoformat(), "zone": _zone(value)}
    if isinstance(value, (date, time)):
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, timedelta):
        return {"timedelta": value // timedelta(microseconds=1)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except ValueError:
        return {"float": repr(value)}
    except TypeError:
        return str(value)


def _zone(value: Any) -> str | None:
    zone = value.tzinfo
    return getattr(zone, "key", None) or getattr(zone, "zone", None)


def _from_json(value: Any) -> Any:
    """The class again, of the same type."""
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items()))
    if kind in ("timestamp", "datetime"):
        moment = pandas().Timestamp(content) if kind == "timestamp" else datetime.fromisoformat(content)
        return moment.astimezone(ZoneInfo(value["zone"])) if value.get("zone") else moment
    return _VALUES[kind](content)


_VALUES: dict[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda content: timedelta(microseconds=content),
    "decimal": Decimal,
    "bytes": base64.b64decode,
    "float": float,
}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _notes(versions: dict[str, str]) -> list[str]:
    here = _versions()
    return [
        f"the model was saved with {package} {versions[package]}, this is {here[package]}: labels may differ"
        for package in PACKAGES[:2]
        if package in versions and package in here
        if versions[package].split(".")[:2] != here[package].split(".")[:2]
    ]
