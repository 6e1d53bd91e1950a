"""The folders of known data sets on this machine, and their files: read, checked, written."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from otprop.files import TableError, read_arrays, write_atomic
from otprop_paper.datasets._catalogue import Entry
from otprop_paper.datasets._dataset import Dataset


@dataclass(frozen=True)
class DataFolder:
    """A folder that is searched for data sets; None where its variable is not set."""

    what: str
    folder: Path | None

    def why_missing(self, file_name: str) -> str:
        """Why the file was not found here."""
        if self.folder is None:
            return f"{self.what}: not set"
        if not self.folder.is_dir():
            return f"{self.what}: there is no folder {self.folder}"
        return f"{self.what}: there is no file {self.folder / file_name}"


def cache_folder() -> Path:
    """OTPROP_CACHE, or `otprop` in the user's cache folder."""
    chosen = os.environ.get("OTPROP_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("otprop", appauthor=False)


def checkout_folder() -> Path | None:
    """The folder `shared/data` beside the source checkout this runs from; None when installed."""
    root = Path(__file__).resolve().parents[4]
    is_checkout = (root / "pyproject.toml").is_file() and (root / "src" / "otprop").is_dir()
    return root.parent / "shared" / "data" if is_checkout else None


def data_folders() -> list[DataFolder]:
    """The folders to search, in order."""
    given = os.environ.get("OTPROP_DATA")
    found = [DataFolder("OTPROP_DATA", Path(given).expanduser() if given else None)]
    beside = checkout_folder()
    if beside is not None:
        found.append(DataFolder("shared/data beside the checkout", beside))
    return [*found, DataFolder("cache", cache_folder())]


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an NPZ file; nothing in it is ever unpickled."""
    try:
        with path.open("rb") as file:
            arrays, objects = read_arrays(file, str(path))
            if objects:
                raise TableError(f"the array {objects[0]!r} holds Python objects", file=path, column=objects[0])
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except (TableError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as an NPZ file of plain arrays ({error}) It must hold X (rows x features, "
            "numbers) and y; arrays of Python objects are refused, since reading them can run code."
        ) from error
    return arrays


def read_entry(entry: Entry, path: Path) -> Dataset:
    """A known data set from a file."""
    arrays = read_npz(path)
    missing = [key for key in ("X", "y") if key not in arrays]
    if missing:
        found = ", ".join(arrays) or "nothing"
        raise ValueError(f"{path} has no array {' and no array '.join(missing)}; it holds {found}.")
    names = arrays.get("class_names")
    class_names = entry.class_names if names is None else tuple(str(name) for name in names)
    return checked(entry, arrays["X"], arrays["y"], class_names, entry.feature_names, str(path))


def checked(
    entry: Entry,
    X: np.ndarray,
    y: np.ndarray,
    class_names: tuple[str, ...],
    feature_names: tuple[str, ...] | None,
    source: str,
) -> Dataset:
    """The data set, if it is the one the catalogue means."""
    expected = f"{entry.name!r} from {source} is not the data set expected"
    if X.shape != entry.shape or y.shape != entry.shape[:1]:
        rows, features = entry.shape
        raise ValueError(
            f"{expected}: X should be {rows} x {features} and y have {rows} entries, "
            f"found X of shape {X.shape} and y of shape {y.shape}."
        )
    if X.dtype.kind not in "biuf" or y.dtype.kind not in "iu":
        raise ValueError(f"{expected}: X should hold numbers and y integers, found types {X.dtype} and {y.dtype}.")
    X = np.ascontiguousarray(X, dtype=np.float64)
    if not np.isfinite(X).all():
        raise ValueError(f"{expected}: X has {np.count_nonzero(~np.isfinite(X))} missing or infinite values.")
    values, sizes = np.unique(y, return_counts=True)
    found = dict(zip(values.tolist(), sizes.tolist(), strict=True))
    if found != dict(enumerate(entry.class_counts)):
        raise ValueError(
            f"{expected}: the classes 0 to {len(entry.class_counts) - 1} should have "
            f"{', '.join(map(str, entry.class_counts))} rows, found {found}."
        )
    if len(class_names) != len(entry.class_counts):
        raise ValueError(f"{expected}: {len(entry.class_counts)} class_names are needed, found {len(class_names)}.")
    return Dataset(entry.name, X, y.astype(np.intp), class_names, feature_names, source)


def make_cache() -> Path:
    """Make the cache folder and check that it can be written."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"the cache folder {folder} cannot be written ({error}). Set OTPROP_CACHE to one that can."
        ) from error
    return folder


def save(dataset: Dataset, folder: Path) -> Path:
    """Write `<name>.npz` in one step."""
    X = dataset.X
    low, high = X.min(), X.max()
    if low >= 0 and high <= 255 and (np.floor(X) == X).all():
        X = X.astype(np.uint8)  # pixels: an eighth of the size
    path = folder / f"{dataset.name}.npz"
    class_names = np.array(dataset.class_names)
    write_atomic(path, lambda file: np.savez_compressed(file, X=X, y=dataset.y, class_names=class_names), force=True)
    return path
