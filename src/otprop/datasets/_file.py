"""A data set in a file of the user's own: CSV, TSV, Parquet or NPZ."""

from __future__ import annotations

import importlib
import warnings
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from otprop.datasets._dataset import Dataset
from otprop.datasets._store import read_arrays

TARGET_NAMES = ("target", "label", "class", "y")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz")


def is_path(name: str) -> bool:
    """Whether a name means a file rather than a known data set."""
    return bool(Path(name).suffix) or "/" in name or "\\" in name


def load_file(path: Path, target: str | None) -> Dataset:
    """Read the file, take the target out, keep the numeric columns."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name one file in it.")
    kind = _kind(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if kind == ".npz":
        return _load_npz(path, target)
    frame = _read_frame(path, kind)
    column = _target_column(path, [str(name) for name in frame.columns], target)
    position = [str(name) for name in frame.columns].index(column)
    codes, class_names = _read_target(path, column, frame.iloc[:, position])
    X, features = _numeric_part(path, frame.drop(columns=frame.columns[position]))
    return Dataset(str(path), X, codes, class_names, features, str(path))


def _kind(path: Path) -> str:
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix.removesuffix(".gz")
    raise ValueError(f"name={str(path)!r}: the file's name must end in {', '.join(SUFFIXES)}.")


def _read_frame(path: Path, kind: str) -> Any:
    """The table as a pandas frame, with at least one row."""
    pandas = _pandas(path)
    try:
        frame = _read_parquet(pandas, path) if kind == ".parquet" else _read_text(pandas, path, _SEPARATORS[kind])
    except pandas.errors.EmptyDataError:
        raise ValueError(f"{path} is empty: it has no column names and no rows.") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, pandas.errors.ParserError) as error:
        raise ValueError(f"{path} cannot be read as {kind[1:]} ({error}).") from error
    if len(frame) == 0:
        raise ValueError(f"{path} has column names but no rows.")
    return frame


def _pandas(path: Path) -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError(f"reading {path} needs pandas: pip install pandas. NPZ files are read without it.") from None


def _read_parquet(pandas: Any, path: Path) -> Any:
    try:
        return pandas.read_parquet(path)
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow beside pandas: pip install pyarrow.") from None
    except (ValueError, OSError) as error:  # pyarrow's errors are ValueErrors
        raise ValueError(f"{path} cannot be read as parquet ({error}).") from error


def _read_text(pandas: Any, path: Path, separator: str) -> Any:
    names = _first_line(pandas, path, separator)
    if len(names) == 1 and ";" in names[0]:  # what spreadsheets write where the comma is decimal
        separator = ";"
        names = _first_line(pandas, path, separator)
    numbers = [name for name in names if _is_decimal(name)]
    if numbers or all(name.removeprefix("-").isdigit() for name in names):
        raise ValueError(
            f"{path} seems to have no line of column names: its first line holds the numbers "
            f"{', '.join((numbers or names)[:3])}. Put one name per column above the data."
        )
    twice = [name for place, name in enumerate(names) if name and name in names[:place]]
    if twice:
        raise ValueError(f"{path} has two columns called {twice[0]!r}; give every column a name of its own.")
    decimals = (".", ",") if separator == ";" else (".",)
    frames = [pandas.read_csv(path, sep=separator, decimal=decimal, skipinitialspace=True) for decimal in decimals]
    return max(frames, key=lambda frame: frame.select_dtypes("number").shape[1])


def _first_line(pandas: Any, path: Path, separator: str) -> list[str]:
    """The column names as they stand in the file: pandas would number those that are there twice."""
    line = pandas.read_csv(path, sep=separator, skipinitialspace=True, header=None, nrows=1, dtype=str)
    return ["" if name != name else str(name) for name in line.iloc[0]]


def _is_decimal(name: str) -> bool:
    """A number that is no column number: "5.1", but not "5" and not the "nan" or "x.1" of a name."""
    whole, point, rest = name.removeprefix("-").partition(".")
    return bool(point) and whole.isdigit() and rest.isdigit()


def _target_column(path: Path, columns: list[str], target: str | None) -> str:
    if target is not None:
        if target not in columns:
            raise ValueError(f"target={target!r} is not a column of {path}. Its columns: {_listed(columns)}.")
        return target
    lower = [name.strip().lower() for name in columns]
    for name in TARGET_NAMES:
        if name in lower:
            return columns[lower.index(name)]
    return columns[-1]


def _read_target(path: Path, column: str, values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers and names of a pandas column or an array."""
    missing = _missing(values)
    if missing.any():
        raise ValueError(
            f"target column {column!r} of {path} has no label in {missing.sum()} of {len(missing)} rows (the first: "
            f"row {int(np.argmax(missing))}, counted from 0). A data set needs the class of every row."
        )
    labels = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if labels.dtype.kind not in "biuf":
        labels = labels.astype(str)
    try:
        check_classification_targets(labels)
    except ValueError:
        raise ValueError(
            f"target column {column!r} of {path} holds continuous numbers, not classes. "
            "Name the column of classes with target=... (in the command --target), or call it 'target'."
        ) from None
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"target column {column!r} of {path} has one class only ({classes[0]!s}); at least two are needed. "
            "If another column holds the classes, name it with target=... (in the command --target)."
        )
    return codes.astype(np.intp), tuple(_class_name(value) for value in classes)


def _class_name(value: Any) -> str:
    return str(int(value)) if isinstance(value, np.floating) and value == int(value) else str(value)


def _missing(values: Any) -> np.ndarray:
    if hasattr(values, "isna"):
        return np.asarray(values.isna())
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _numeric_part(path: Path, frame: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numeric columns of a pandas frame, and their names; the others are named in a warning."""
    numeric = frame.select_dtypes(include=["number", "bool"], exclude=["timedelta"])
    indices = [name for name in numeric.columns if str(name).startswith("Unnamed: ")]
    numeric = numeric.drop(columns=indices)  # the row numbers of a saved frame would give sorted classes away
    names = [str(name) for name in numeric.columns]
    if not names:
        raise ValueError(
            f"{path} has no numeric column beside the target. Its columns: {_listed(frame.columns)}. "
            "Encode some of them as numbers."
        )
    dropped = [str(name) for name in frame.columns if name not in set(numeric.columns)]
    if dropped:
        warnings.warn(
            f"columns of {path} left out, not being numeric (or being unnamed row numbers): {_listed(dropped)}. "
            "Encode them as numbers to use them.",
            UserWarning,
            stacklevel=4,
        )
    try:
        X = numeric.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the columns {_listed(names)} of {path} cannot be read as numbers ({error}).") from error
    _refuse_missing(path, X, names)
    return np.ascontiguousarray(X), tuple(names)


def _refuse_missing(path: Path, X: np.ndarray, names: list[str] | None) -> None:
    bad = np.count_nonzero(~np.isfinite(X), axis=0)
    if bad.any():
        where = [f"{names[j] if names else f'column {j}'} ({bad[j]})" for j in np.flatnonzero(bad)]
        raise ValueError(f"{path} has missing or infinite values in: {_listed(where)}. Fill them in or drop the rows.")


def _load_npz(path: Path, target: str | None) -> Dataset:
    arrays = read_arrays(path)
    candidates = [target] if target is not None else ["y", *TARGET_NAMES]
    key = next((name for name in candidates if name in arrays), None)
    if "X" not in arrays or key is None:
        wanted = f"target={target!r}" if target is not None else "y"
        raise ValueError(f"{path} must hold the arrays X and {wanted}; it holds {_listed(arrays)}.")
    X, y = arrays["X"], arrays[key]
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y):
        raise ValueError(
            f"{path}: X must be rows x features and {key} have one entry per row, "
            f"found X of shape {X.shape} and {key} of shape {y.shape}."
        )
    if X.size == 0:
        raise ValueError(f"{path} is empty: X has {X.shape[0]} rows and {X.shape[1]} columns.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{path} has no numeric column: X is of type {X.dtype}.")
    X = np.ascontiguousarray(X, dtype=np.float64)
    _refuse_missing(path, X, None)
    codes, class_names = _read_target(path, key, y)
    if "class_names" in arrays and arrays["class_names"].shape == (len(class_names),) and y.dtype.kind in "iu":
        class_names = tuple(str(name) for name in arrays["class_names"])
    features = arrays.get("feature_names")
    if features is not None and features.shape != (X.shape[1],):
        raise ValueError(f"{path}: feature_names has shape {features.shape}, but X has {X.shape[1]} columns.")
    feature_names = None if features is None else tuple(str(name) for name in features)
    return Dataset(str(path), X, codes, class_names, feature_names, str(path))


def _listed(names: Iterable[Any], most: int = 12) -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
