"""A DataFrame of pandas or polars as a table, so that it is labelled as a file is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, BinaryIO, cast

import numpy as np

from otprop.files import Table, read_table, write_arrow
from otprop.table.errors import RequestError


def is_polars(data: Any) -> bool:
    """Whether this is a frame of polars."""
    return type(data).__module__.partition(".")[0] == "polars"


def is_frame(data: Any) -> bool:
    """Whether this is a frame of pandas or polars."""
    return is_polars(data) or (hasattr(data, "iloc") and hasattr(data, "columns"))


def table_of_frame(data: Any, origin: str = "the DataFrame", *, parse_text: bool = False) -> Table:
    """The frame as a table, called `origin`; cells of several types in one column become text, with a note.

    `parse_text`: columns of text are read as the cells of a file are: numbers, dates, yes and no.
    """
    if is_polars(data) and not hasattr(data, "to_arrow"):
        raise RequestError("data", f"is a {type(data).__name__}; call collect() on it first.")
    notes: list[str] = []
    if is_polars(data):
        whole = data.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
    else:
        whole = arrow_of_frame(data, notes)
    table: Any = table_of_arrow(whole, origin)
    if parse_text:
        table.parse_text()
    table.notes += notes
    table.written_as = "csv"
    return cast(Table, table)


def table_of_arrow(data: Any, origin: str = "the Arrow table") -> Table:
    """An Arrow table as a table, called `origin`."""
    from pyarrow import feather

    buffer = BytesIO()
    feather.write_feather(data, buffer, compression="uncompressed")
    buffer.seek(0)
    return read_table(buffer, format="feather", origin=origin)


def write_frame(data: Any, out: str | BinaryIO, **options: Any) -> None:
    """Write a frame of pandas; the format and the options are those of `write_arrow`."""
    write_arrow(arrow_of_frame(data, []), out, **options)


def with_columns(data: Any, columns: Mapping[str, Any]) -> Any:
    """A copy of the frame with these columns added, or replaced; the index stays."""
    if is_polars(data):
        make = sys.modules["polars"].Series
        new = [
            values.alias(name) if is_polars(values) else make(name, values.tolist(), strict=False)
            for name, values in columns.items()
        ]
        return data.with_columns(new)
    data = data.copy()
    for name, values in columns.items():
        data[name] = values
    return data


def in_type_of(column: Any, cells: Sequence[Any]) -> Any:
    """Cells (None: missing) in the type of a column of pandas, nullable if need be; as they are if it cannot be."""
    import pandas as pd

    made, missing = pd.Series(list(cells), dtype=object), np.array([cell is None for cell in cells], dtype=bool)
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) and not made[~missing].isin(dtype.categories).all():
        return made.to_numpy()
    if missing.any() and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        dtype = pd.array(np.empty(0, dtype)).dtype
    try:
        typed = made.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return made.to_numpy()
    same = typed.nunique() == made.nunique() and bool((typed.isna().to_numpy() == missing).all())
    return typed.array if same else made.to_numpy()


def take_rows(data: Any, rows: list[int]) -> Any:
    """Rows of the frame by their numbers, in this order."""
    return data[rows] if is_polars(data) else data.iloc[rows]


def arrow_of_frame(data: Any, notes: list[str]) -> Any:
    """A frame of pandas as an Arrow table; cells of several types in one column become text, and `notes` say so."""
    import pyarrow as pa

    names = [str(name) for name in data.columns]
    arrays = []
    for place, name in enumerate(names):
        column = data.iloc[:, place]
        try:
            array = pa.array(column, from_pandas=True)
            if isinstance(array.type, pa.ExtensionType):
                raise pa.ArrowTypeError(str(array.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            missing = column.isna().to_numpy(dtype=bool)
            cells = zip(column.astype(object), missing, strict=True)
            array = pa.array([None if gone else str(cell) for cell, gone in cells], pa.large_string())
            notes.append(f"column {name!r} holds values of several or unusual types, which are read as text")
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return pa.Table.from_arrays(arrays, names=names)
