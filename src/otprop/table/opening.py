"""One door for everything that holds rows: a table file, a folder of pictures, cells, vectors beside a table."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, format_of_name, read_table, refuse_url
from otprop.table.cells import is_anndata, is_cells_file, read_cells, table_of_cells
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, table_of_frame
from otprop.table.picture_folder import holds_pictures, picture_target, read_picture_folder
from otprop.table.vector_files import add_vectors, is_dataset_folder, read_dataset_folder


def is_one_table(source: Any, labels: Any = None) -> bool:
    """Whether a folder is one table: one of pictures, or a data set of Hugging Face's."""
    return isinstance(source, (str, os.PathLike)) and (is_dataset_folder(source) or holds_pictures(source, labels))


def default_target(source: Any, labels: Any = None) -> str | None:
    """The column with the labels, where the source itself says which it is; None elsewhere."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    if holds_pictures(source, labels):
        return picture_target(source, labels)
    return read_table(Path(source)).default_target if format_of_name(Path(source)) == "json" else None


def open_table(
    source: Any,
    *,
    labels: Any = None,
    use_rep: str | None = None,
    vectors: Any = None,
    target: str | None = None,
    progress: ProgressCallback = no_progress,
    **reading: Any,
) -> Table:
    """The table of a file, a folder of pictures, or cells.

    Parameters
    ----------
    source : str, path or binary stream
    labels : path, DataFrame, mapping or None, labels of a folder of pictures
    use_rep : str or None, the matrix of an `.h5ad` file with the vectors of the cells
    vectors : path or None, a `.npy` file with a vector for each row
    target : str or None, the column with the labels
    progress : callable, called while pictures are read
    **reading : arguments of `read_table`

    Returns
    -------
    Table
        With `default_target` where the source has a column of labels of its own.
    """
    table = _open(source, labels, use_rep, target, progress, reading)
    if vectors is not None:
        add_vectors(table, vectors)
    return table


def _open(
    source: Any,
    labels: Any,
    use_rep: str | None,
    target: str | None,
    progress: ProgressCallback,
    reading: dict[str, Any],
) -> Table:
    is_path = isinstance(source, (str, os.PathLike))
    if is_path and holds_pictures(source, labels):
        return read_picture_folder(source, labels, target, progress)
    if labels is not None:
        what = "a folder without pictures" if Path(str(source)).is_dir() else "no folder"
        raise RequestError("labels", f"are those of a folder of pictures; {source} is {what}.")
    if is_cells_file(source):
        return read_cells(source, use_rep)
    if use_rep is not None:
        raise RequestError("use_rep", "is for cells, in an .h5ad file or an AnnData object.", use_rep)
    return read_dataset_folder(source) if is_dataset_folder(source) else read_table(source, **reading)


def as_table(
    data: Any,
    *,
    labels: Any = None,
    use_rep: str | None = None,
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
        several = os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))
        if several and labels is None and not is_one_table(path):
            what = "is a folder without pictures" if os.path.isdir(path) else "names several files"
            raise RequestError("data", f"{what}; many tables are labelled by the command `otprop label`.", path)
        return open_table(Path(path), labels=labels, use_rep=use_rep, vectors=vectors, target=target, progress=progress)
    if labels is not None:
        raise RequestError("labels", "are those of a folder of pictures; put them into the target column.")
    if vectors is not None:
        raise RequestError("vectors", "are for a file; put them into a column of arrays.")
    if is_anndata(data):
        return table_of_cells(data, use_rep)
    if use_rep is not None:
        raise RequestError("use_rep", "is for cells, in an .h5ad file or an AnnData object.", use_rep)
    return data if isinstance(data, Table) else _table_of_rows(data)


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
    """Refuse to label a folder of pictures that has no label yet, and say where labels can be put."""
    if table.folder is None or target != table.default_target:
        return
    if any(cell is not None for cell in table.cells(target)):
        return
    raise RequestError(
        "labels",
        f"are missing: none of the {table.n_rows} pictures in {table.origin} has a label yet. Put some of each class "
        "into a sub-folder of its name, write a CSV of paths and labels, or begin in `otprop studio`.",
    )
