"""A data set from a file of the user's own."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from otprop._validation import ParameterError
from otprop.files import FORMATS, Table, format_of_name, listed, read_table
from otprop_paper.datasets._dataset import Dataset
from otprop_paper.datasets._store import read_npz

TARGET_NAMES = ("target", "label", "class", "y")
_ROW_NUMBERS = ("Unnamed: ", "__index_level_")  # names that pandas gives to an index without a name


def is_path(name: str) -> bool:
    """Whether a name means a file rather than a known data set.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool

    Examples
    --------
    >>> from otprop_paper.datasets import is_path
    >>> is_path("iris"), is_path("iris.csv")
    (False, True)
    """
    return bool(Path(name).suffix) or "/" in name or "\\" in name


def load_file(path: Path, target: str | None) -> Dataset:
    """Read the file; one column is the target, the other numeric columns are the features."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name one file in it.")
    format = format_of_name(path)
    if format is None:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise ParameterError("name", f"must be a file that ends in {endings}; got {str(path)!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    return _load_npz(path, target) if format == "npz" else _load_table(path, target)


def _load_table(path: Path, target: str | None) -> Dataset:
    table = read_table(path)
    if table.kind in ("csv", "tsv"):
        _refuse_data_as_header(path, table.names)
    column = _target_column(path, table.names, target)
    codes, class_names = _encode_target(path, column, _target_values(table, column))
    X, features = _numeric_columns(table, [name for name in table.names if name != column])
    return Dataset(str(path), X, codes, class_names, features, str(path))


def _refuse_data_as_header(path: Path, names: list[str]) -> None:
    """Refuse a file whose first line seems to be a row: decimal numbers, or nothing but integers."""
    numbers = [name for name in names if _is_decimal(name)]
    if numbers or all(name.removeprefix("-").isdigit() for name in names):
        raise ValueError(
            f"{path} seems to have no line of column names: its first line holds the numbers "
            f"{', '.join((numbers or names)[:3])}. Put one name per column above the data."
        )


def _is_decimal(name: str) -> bool:
    whole, point, rest = name.removeprefix("-").partition(".")
    return bool(point) and whole.isdigit() and rest.isdigit()


def _target_column(path: Path, names: list[str], target: str | None) -> str:
    if target is not None:
        if target not in names:
            raise ParameterError("target", f"must be a column of {path} ({_listed(names)}); got {target!r}.")
        return target
    lower = [name.strip().lower() for name in names]
    return next((names[lower.index(name)] for name in TARGET_NAMES if name in lower), names[-1])


def _target_values(table: Table, column: str) -> Any:
    """The target as numbers if it has plain numbers, else its cells as text; None where a cell is missing."""
    values = table.frame([column])[column]
    reading = table.readings([column]).get(column)
    if reading is not None and reading.kind == "number" and not reading.unit:
        return values
    cells = table.cells(column)
    cells[np.asarray(values.isna())] = None
    return cells


def _encode_target(path: Path, column: str, values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers and class names."""
    labels = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    missing = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"target column {column!r} of {path} has no label in {missing.sum()} of {len(missing)} rows (the first: "
            f"row {int(np.argmax(missing))}, counted from 0). A data set needs the class of every row."
        )
    labels = labels if labels.dtype.kind in "biuf" else labels.astype(str)
    try:
        check_classification_targets(labels)
    except ValueError:
        raise ParameterError(
            "target",
            f"must be a column of classes: {column!r} of {path} holds continuous numbers. Name another with target=...",
        ) from None
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ParameterError(
            "target",
            f"must have at least two classes: {column!r} of {path} has one class only ({classes[0]!s}). If another "
            "column holds the classes, name it with target=...",
        )
    return codes.astype(np.intp), tuple(_class_name(value) for value in classes)


def _class_name(value: Any) -> str:
    return str(int(value)) if isinstance(value, np.floating) and value == int(value) else str(value)


def _numeric_columns(table: Table, names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numeric columns as a matrix, and their names; a warning lists the others."""
    frame = table.frame(names)
    numeric = frame.select_dtypes(include=["number", "bool"], exclude=["timedelta"])
    # row numbers of a saved frame would give away classes that are sorted
    kept = [n for n in numeric.columns if n not in table.unnamed and not n.startswith(_ROW_NUMBERS)]
    if not kept:
        raise ValueError(
            f"{table.origin} has no numeric column beside the target. Its columns: {_listed(names)}. "
            "Encode some of them as numbers."
        )
    dropped = [name for name in names if name not in set(kept)]
    if dropped:
        warnings.warn(
            f"columns of {table.origin} left out, not being numeric (or being unnamed row numbers): "
            f"{_listed(dropped)}. Encode them as numbers to use them.",
            UserWarning,
            stacklevel=5,
        )
    X = np.ascontiguousarray(numeric[kept].to_numpy(dtype=np.float64, na_value=np.nan))
    _refuse_missing(table.origin, X, kept)
    return X, tuple(kept)


def _refuse_missing(origin: str, X: np.ndarray, names: list[str] | None) -> None:
    bad = np.count_nonzero(~np.isfinite(X), axis=0)
    if bad.any():
        where = [f"{names[j] if names else f'column {j}'} ({bad[j]})" for j in np.flatnonzero(bad)]
        raise ValueError(
            f"{origin} has missing or infinite values in: {_listed(where)}. Fill them in or drop the rows."
        )


def _load_npz(path: Path, target: str | None) -> Dataset:
    arrays = read_npz(path)
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
    _refuse_missing(str(path), X, None)
    codes, class_names = _encode_target(path, key, y)
    if "class_names" in arrays and arrays["class_names"].shape == (len(class_names),) and y.dtype.kind in "iu":
        class_names = tuple(str(name) for name in arrays["class_names"])
    features = arrays.get("feature_names")
    if features is not None and features.shape != (X.shape[1],):
        raise ValueError(f"{path}: feature_names has shape {features.shape}, but X has {X.shape[1]} columns.")
    feature_names = None if features is None else tuple(str(name) for name in features)
    return Dataset(str(path), X, codes, class_names, feature_names, str(path))


def _listed(names: Any) -> str:
    return listed(names, most=12, quoted=False)
