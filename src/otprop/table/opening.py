"""One door for everything that holds rows: table files, folders, cells, databases; and vectors beside a table."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop._validation import check_path
from otprop.files import Table, TableError, listed, read_table, refuse_url
from otprop.files._errors import one_line
from otprop.files._table import free_name
from otprop.table.cells import is_anndata, is_cells_file, read_cells, table_of_cells
from otprop.table.database import is_database, read_database
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, table_of_arrow, table_of_frame
from otprop.table.row_folder import read_row_folder, row_files

_INFO, _STATE, _SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"


def is_one_table(source: Any, labels: Any = None) -> bool:
    """Whether a folder is one table: one of pictures or texts, or a data set of Hugging Face's."""
    return is_dataset_folder(source) or row_files(source, labels) is not None


def holds_row(source: Any, path: str | os.PathLike[str], labels: Any = None) -> bool:
    """Whether a file is one of those that the rows of a folder are read from."""
    if not os.path.isdir(source) or not Path(path).resolve().is_relative_to(Path(source).resolve()):
        return False
    kind = row_files(source, labels)
    return is_dataset_folder(source) if kind is None else os.path.exists(path) and kind.matches(Path(path).name)


def target_of(table: Table, target: str | None) -> str:
    """The column with the labels: the one that was named, else that of the source itself; refuses where it has none."""
    found = table.default_target if target is None else target
    if found is None:
        known = f": one of {listed(table.annotators)}" if table.annotators else ""
        raise RequestError("target", f"must name the column with the labels{known}.")
    return found


def open_table(
    source: Any,
    *,
    labels: Any = None,
    use_rep: str | None = None,
    graph: str | None = None,
    vectors: Any = None,
    target: str | None = None,
    progress: ProgressCallback = no_progress,
    **reading: Any,
) -> Table:
    """The table of a file or stream, a folder of pictures or texts, or cells.

    Parameters
    ----------
    source : str, path or binary stream
    labels : path, DataFrame, mapping or None, labels of a folder of pictures or texts
    use_rep, graph : str or None, the matrices of an `.h5ad` file with vectors and affinities of the cells
    vectors : path or None, a `.npy` file with a vector for each row
    target : str or None, the column with the labels
    progress : callable, called while pictures are read
    **reading : arguments of `read_table`
    """
    if row_files(source, labels) is not None:
        table = read_row_folder(source, labels, target, progress, reading.get("encoding"))
    elif labels is not None:
        what = "a folder without either" if Path(str(source)).is_dir() else "not a folder"
        raise RequestError("labels", f"are those of a folder of pictures or texts; {source} is {what}.")
    elif is_cells_file(source):
        table = read_cells(source, use_rep, graph)
    else:
        _refuse_for_rows(use_rep, graph)
        if is_database(source):
            table = read_database(source)
        elif is_dataset_folder(source):
            table = read_dataset_folder(source, reading.get("max_bytes"))
        else:
            table = read_table(source, **reading)
    if vectors is not None:
        add_vectors(table, vectors)
    return table


def as_table(
    data: Any,
    *,
    labels: Any = None,
    use_rep: str | None = None,
    graph: str | None = None,
    vectors: Any = None,
    **more: Any,
) -> Table:
    """The table of what Python has: a path, a DataFrame, a list of dicts, an AnnData object or a table.

    Text of a frame is read as that of a file is; the other arguments are those of `open_table`.
    """
    if isinstance(data, (str, os.PathLike)):
        path = check_path("data", data)
        refuse_url(path)
        pattern = glob.has_magic(path) and not os.path.exists(path) and not is_database(path)
        several = os.path.isdir(path) or pattern
        if several and labels is None and not is_one_table(path):
            what = "is a folder without pictures or texts" if os.path.isdir(path) else "names several files"
            raise RequestError("data", f"{what}; many tables are labelled by the command `otprop label`.", path)
        return open_table(Path(path), labels=labels, use_rep=use_rep, graph=graph, vectors=vectors, **more)
    if labels is not None:
        raise RequestError("labels", "are those of a folder of pictures or texts; put them into the target column.")
    if vectors is not None:
        raise RequestError("vectors", "are for a file; put them into a column of arrays.")
    if is_anndata(data):
        return table_of_cells(data, use_rep, graph)
    _refuse_for_rows(use_rep, graph)
    return data if isinstance(data, Table) else _table_of_rows(data)


def _refuse_for_rows(use_rep: str | None, graph: str | None) -> None:
    for parameter, value in (("use_rep", use_rep), ("graph", graph)):
        if value is not None:
            raise RequestError(parameter, "can only be used with cells, in an .h5ad file or an AnnData object.", value)


def _table_of_rows(data: Any) -> Table:
    if isinstance(data, (list, tuple)) and not data:
        raise RequestError("data", f"is an empty {type(data).__name__}: give at least one row.")
    if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
        import pandas as pd

        data = pd.DataFrame(list(data))
    if not is_frame(data):
        what = type(data).__name__
        why = f"must be a path, a DataFrame, a list of dictionaries or a table of otprop.files; got {what}."
        raise RequestError("data", why)
    return table_of_frame(data, parse_text=True)


def refuse_unlabelled(table: Table, target: str) -> None:
    """Refuse to label a folder of pictures or texts that has no label yet, and say where labels can be put."""
    if table.folder is None or target != table.default_target:
        return
    if any(cell is not None for cell in table.cells(target)):
        return
    what = "texts" if table.default_features else "pictures"
    raise RequestError(
        "labels",
        f"are missing: none of the {table.n_rows} {what} in {table.origin} has a label yet. Put some of each class "
        "into a sub-folder of its name, write a CSV of paths and labels, or begin in `otprop studio`.",
    )


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
    table.beside = {free_name(place.stem, table.names): vectors}


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
    table = table_of_arrow(whole, str(folder))
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
    files = files if isinstance(files, list) else []
    names: list[Any] = [one.get("filename") for one in files if isinstance(one, dict)]
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
