"""Vectors from elsewhere: a `.npy` file beside a table, and the folder of a Hugging Face data set."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files import Table, TableError, read_table
from otprop.table.errors import RequestError

_INFO, _STATE = "dataset_info.json", "state.json"


def add_vectors(table: Table, path: str | os.PathLike[str]) -> None:
    """Use the rows of a `.npy` file as a vector of each row of the table; they are not written with it."""
    place = Path(path)
    try:
        vectors = np.load(place, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise RequestError("vectors", "there is no such file.", str(path)) from None
    except (OSError, ValueError, EOFError):
        raise RequestError("vectors", "expected a .npy file of numbers, as numpy.save writes it.", str(path)) from None
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiub":
        raise RequestError("vectors", "expected one 2-D array of numbers, with a row for each of the table.", str(path))
    if len(vectors) != table.n_rows:
        why = f"it has {len(vectors)} rows, and {table.origin} has {table.n_rows}: row for row they must be the same."
        raise RequestError("vectors", why, str(path))
    name = place.stem
    while name in table.names:
        name += "_"
    table.beside = {name: vectors}


def is_dataset_folder(source: Any) -> bool:
    """Whether this is a folder that `Dataset.save_to_disk` of Hugging Face's datasets wrote."""
    return isinstance(source, (str, os.PathLike)) and all((Path(source) / name).is_file() for name in (_INFO, _STATE))


def read_dataset_folder(folder: str | os.PathLike[str]) -> Table:
    """The data set as one table; class numbers become the names of the classes, -1 an empty cell."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    place, parts = Path(folder), []
    try:
        names = [one["filename"] for one in json.loads((place / _STATE).read_text(encoding="utf-8"))["_data_files"]]
        features = json.loads((place / _INFO).read_text(encoding="utf-8")).get("features") or {}
        for name in names:
            with pa.OSFile(str(place / Path(name).name)) as file:  # nothing outside of the folder
                parts.append(ipc.open_stream(file).read_all())
        whole = pa.concat_tables(parts).replace_schema_metadata(None)
        for name, feature in features.items():
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
                whole = _with_class_names(whole, name, feature["names"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, pa.ArrowException) as error:
        why = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
        raise TableError(f"{folder} is not a sound folder of a Hugging Face data set ({why})", file=place) from None
    buffer = BytesIO()
    feather.write_feather(whole, buffer, compression="uncompressed")
    buffer.seek(0)
    return read_table(buffer, format="feather", origin=str(folder))


def _with_class_names(whole: Any, name: str, classes: list[str]) -> Any:
    import pyarrow as pa

    codes = whole.column(name).to_pylist()
    cells = pa.array([None if code is None or code < 0 else classes[code] for code in codes], pa.large_string())
    return whole.set_column(whole.column_names.index(name), name, cells)
