"""One door for everything that holds rows: a table file, a folder of pictures or texts, cells, a database."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, listed, read_table, refuse_url
from otprop.table.cells import is_anndata, is_cells_file, read_cells, table_of_cells
from otprop.table.database import is_database, read_database
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, table_of_frame
from otprop.table.row_folder import read_row_folder, row_files
from otprop.table.vector_files import add_vectors, is_dataset_folder, read_dataset_folder


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
    """The table of a file, a folder of pictures or texts, or cells.

    Parameters
    ----------
    source : str, path or binary stream
    labels : path, DataFrame, mapping or None, labels of a folder of pictures or texts
    use_rep : str or None, the matrix of an `.h5ad` file with the vectors of the cells
    graph : str or None, the matrix of an `.h5ad` file with the affinities between the cells
    vectors : path or None, a `.npy` file with a vector for each row
    target : str or None, the column with the labels
    progress : callable, called while pictures are read
    **reading : arguments of `read_table`

    Returns
    -------
    Table
        With `default_target` if the source has its own column of labels.
    """
    table = _open(source, labels, {"use_rep": use_rep, "graph": graph}, target, progress, reading)
    if vectors is not None:
        add_vectors(table, vectors)
    return table


def _open(
    source: Any,
    labels: Any,
    of_cells: dict[str, str | None],
    target: str | None,
    progress: ProgressCallback,
    reading: dict[str, Any],
) -> Table:
    if row_files(source, labels) is not None:
        return read_row_folder(source, labels, target, progress, reading.get("encoding"))
    if labels is not None:
        what = "a folder without either" if Path(str(source)).is_dir() else "no folder"
        raise RequestError("labels", f"are those of a folder of pictures or texts; {source} is {what}.")
    if is_cells_file(source):
        return read_cells(source, **of_cells)
    _refuse_for_rows(of_cells)
    if is_database(source):
        return read_database(source)
    if is_dataset_folder(source):
        return read_dataset_folder(source, reading.get("max_bytes"))
    return read_table(source, **reading)


def as_table(
    data: Any,
    *,
    labels: Any = None,
    use_rep: str | None = None,
    graph: str | None = None,
    vectors: Any = None,
    target: str | None = None,
    progress: ProgressCallback = no_progress,
) -> Table:
    """The table of what Python has: a path, a DataFrame, a list of dicts, an AnnData object or a table.

    Text of a frame is read as that of a file is; the other arguments are those of `open_table`.
    """
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        refuse_url(path)
        pattern = glob.has_magic(path) and not os.path.exists(path) and not is_database(path)
        several = os.path.isdir(path) or pattern
        if several and labels is None and not is_one_table(path):
            what = "is a folder without pictures or texts" if os.path.isdir(path) else "names several files"
            raise RequestError("data", f"{what}; many tables are labelled by the command `otprop label`.", path)
        more: dict[str, Any] = {"labels": labels, "use_rep": use_rep, "graph": graph, "vectors": vectors}
        return open_table(Path(path), target=target, progress=progress, **more)
    if labels is not None:
        raise RequestError("labels", "are those of a folder of pictures or texts; put them into the target column.")
    if vectors is not None:
        raise RequestError("vectors", "are for a file; put them into a column of arrays.")
    if is_anndata(data):
        return table_of_cells(data, use_rep, graph)
    _refuse_for_rows({"use_rep": use_rep, "graph": graph})
    return data if isinstance(data, Table) else _table_of_rows(data)


def _refuse_for_rows(of_cells: dict[str, str | None]) -> None:
    for parameter, value in of_cells.items():
        if value is not None:
            raise RequestError(parameter, "is for cells, in an .h5ad file or an AnnData object.", value)


def _table_of_rows(data: Any) -> Table:
    if isinstance(data, (list, tuple)) and not data:
        raise RequestError("data", f"is an empty {type(data).__name__}: give at least one row.")
    if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
        import pandas as pd

        data = pd.DataFrame(list(data))
    if not is_frame(data):
        what = type(data).__name__
        why = f"must be a path, a DataFrame or a table of otprop.files; got {what}. Make a DataFrame of it."
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
