"""Vectors from elsewhere: a `.npy` file next to a table, and the folder of a Hugging Face data set."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files import Table, TableError, listed, read_table
from otprop.files._errors import one_line
from otprop.table.errors import RequestError

_INFO, _STATE, _SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"


def add_vectors(table: Table, path: str | os.PathLike[str]) -> None:
    """Use the rows of a `.npy` file as a vector of each row of the table; they are not written with it."""
    if not isinstance(path, (str, os.PathLike)):
        raise RequestError("vectors", f"must name a .npy file, as numpy.save writes it; got {type(path).__name__}.")
    place = Path(path)
    if not os.path.isfile(place):  # a pipe is not waited for; no error where a name is too long
        why = "it is not a plain file." if os.path.exists(place) else "there is no such file."
        raise RequestError("vectors", why, str(path))
    try:
        vectors = np.lib.format.open_memmap(place, mode="r")
    except Exception:  # NumPy raises almost anything for a damaged header
        raise RequestError("vectors", "expected a .npy file of numbers, as numpy.save writes it.", str(path)) from None
    if vectors.ndim != 2 or not vectors.shape[1] or vectors.dtype.kind not in "fiub":
        raise RequestError("vectors", "expected one 2-D array of numbers, with a row for each of the table.", str(path))
    if len(vectors) != table.n_rows:
        why = f"it has {len(vectors)} rows, and {table.origin} has {table.n_rows}: row for row they must be the same."
        raise RequestError("vectors", why, str(path))
    n_missing = sum(not np.isfinite(row).all() for row in vectors)
    if n_missing == len(vectors):
        raise RequestError("vectors", "every row of it has infinity or NaN.", str(path))
    if n_missing:
        table.notes.append(f"{n_missing} of {len(vectors)} rows of {place.name} have infinity or NaN")
    name = place.stem
    while name in table.names:
        name += "_"
    table.beside = {name: vectors}


def is_dataset_folder(source: Any) -> bool:
    """Whether this is a folder that `save_to_disk` of a Dataset or DatasetDict of Hugging Face's wrote."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    there = {name for name in (_SPLITS, _INFO, _STATE) if os.path.isfile(Path(source) / name)}
    return _SPLITS in there or {_INFO, _STATE} <= there


def read_dataset_folder(folder: str | os.PathLike[str], max_bytes: int | None = None) -> Table:
    """The data set as one table; class numbers become the names of the classes, -1 an empty cell.

    `max_bytes` is that of `read_table`, for each of its files.
    """
    import pyarrow as pa
    from pyarrow import feather

    place = Path(folder)
    if (place / _SPLITS).is_file():
        splits = sorted(path.parent.name for path in place.glob(f"*/{_STATE}"))
        advice = f"name one of them, such as {place / splits[0]}" if splits else "its sub-folders are missing"
        raise TableError(f"{folder} is a DatasetDict with the splits {listed(splits)}", advice, file=place)
    try:
        parts = [_arrow_stream(place / name, max_bytes) for name in _data_files(_json(place / _STATE))]
        whole = pa.concat_tables(parts).replace_schema_metadata(None)
        for name, classes in _class_names(_json(place / _INFO)).items():
            whole = _with_class_names(whole, name, classes)
    except TableError:
        raise
    except (OSError, ValueError, RecursionError, pa.ArrowException) as error:
        why = f"{folder} is not a sound folder of a Hugging Face data set ({one_line(error)})"
        raise TableError(why, file=place) from None
    buffer = BytesIO()
    feather.write_feather(whole, buffer, compression="uncompressed")
    buffer.seek(0)
    table = read_table(buffer, format="feather", origin=str(folder))
    table.written_as = "csv"
    return table


def _json(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return found


def _data_files(state: dict[str, Any]) -> list[str]:
    """The names of the files with rows, each once."""
    if state.get("_indices_data_files"):
        raise ValueError("its rows are chosen by another file; call flatten_indices() and save it again")
    files = state.get("_data_files")
    names: list[Any] = (
        [one.get("filename") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    )
    if not names or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ValueError(f"{_STATE} names no files in the folder")  # and none outside of it
    if len(set(names)) < len(names):
        raise ValueError(f"{_STATE} names a file twice")
    return names


def _arrow_stream(path: Path, max_bytes: int | None) -> Any:
    """The rows of a file, whose offsets and sizes are checked."""
    if not path.is_file():
        raise ValueError(f"{path.name} is {'not a plain file' if path.exists() else 'missing'}")
    table: Any = read_table(path, format="feather", max_bytes=max_bytes)
    return table.table


def _class_names(info: dict[str, Any]) -> dict[str, list[str]]:
    """The names of the classes by column."""
    features = info.get("features") or {}
    if not isinstance(features, dict):
        raise ValueError(f"`features` of {_INFO} is not a JSON object")
    found: dict[str, list[str]] = {}
    for name, feature in features.items():
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            classes = feature.get("names")
            if not isinstance(classes, list) or not all(isinstance(one, str) for one in classes):
                raise ValueError(f"{_INFO} does not name the classes of {name!r}")
            found[name] = classes
    return found


def _with_class_names(whole: Any, name: str, classes: list[str]) -> Any:
    import pyarrow as pa

    place = whole.schema.get_field_index(name)
    if place < 0 or not pa.types.is_integer(whole.schema.field(place).type):
        raise ValueError(f"there is no column of class numbers {name!r}")
    codes = whole.column(place).to_pylist()
    if max((code for code in codes if code is not None), default=-1) >= len(classes):
        raise ValueError(f"column {name!r} has class numbers without a name")
    cells = pa.array([None if code is None or code < 0 else classes[code] for code in codes], pa.large_string())
    return whole.set_column(place, name, cells)
