"""An Arrow table written in each of the formats."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from otprop.files._arrow import as_json
from otprop.files._errors import TableError
from otprop.files._layout import Dialect
from otprop.files._optional import ipc, pa, parquet
from otprop.files._text import as_text, guard, lines, to_cells
from otprop.files._workbook import write_workbook

Writer = Callable[[BinaryIO], None]
_BLOCK = 10_000  # rows of JSON at once


def arrow_writer(whole: Any, format: str, excel_safe: bool = False, decimal: str = ".") -> Writer:
    """A function that writes an Arrow table; what cannot be written is refused before it is returned."""
    if format in ("csv", "tsv"):
        return delimited_writer(whole, format, excel_safe, decimal)
    if format == "npz":
        return npz_writer(whole)
    if format in ("json", "jsonl"):
        return json_writer(whole, format)
    if format == "xlsx":
        return write_workbook(whole)
    return columnar_writer(whole, format)


def delimited_writer(whole: Any, format: str, excel_safe: bool, decimal: str) -> Writer:
    """A function that writes CSV or TSV."""
    dialect = Dialect("\t" if format == "tsv" else ",", '"')
    columns = []
    for name, column in zip(whole.column_names, whole.columns, strict=True):
        text = as_text(column, name, decimal)
        header = pa.array([name], pa.large_string())
        if excel_safe:
            header = guard(header)
            text = guard(text, decimal) if is_text(column.type) else text
        columns.append(pa.concat_arrays([to_cells(header, dialect, name), to_cells(text, dialect, name)]))

    def write(stream: BinaryIO) -> None:
        for block in lines(columns, dialect):
            stream.write(block)

    return write


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, as such or in a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(kind) in ("string", "large_string", "string_view")


def columnar_writer(whole: Any, format: str, options: dict[str, Any] | None = None) -> Writer:
    """A function that writes Parquet or Feather."""
    options = dict(options or {})
    compression = options.pop("compression", "snappy" if format == "parquet" else "lz4")
    if isinstance(compression, dict):
        known = {path.partition(".")[0] for path in compression}
        new = [name for name in whole.column_names if name not in compression and name.partition(".")[0] not in known]
        compression = {**compression, **dict.fromkeys(new, "snappy")}

    def write(stream: BinaryIO) -> None:
        sink = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="w")
        if format == "parquet":
            parquet.write_table(whole, sink, compression=compression, version="2.6", **options)
        else:
            codec = ipc.IpcWriteOptions(compression=compression, unify_dictionaries=True)
            with ipc.new_file(sink, whole.schema, options=codec) as writer:
                writer.write_table(whole)

    return write


def json_writer(whole: Any, format: str) -> Writer:
    """A function that writes a list of JSON objects, or one object a line."""
    names = [as_json(name) for name in whole.column_names]
    start, between, end = ("[\n", ",\n", "\n]\n") if format == "json" else ("", "\n", "\n")

    def write(stream: BinaryIO) -> None:
        stream.write(start.encode())
        for at in range(0, whole.num_rows, _BLOCK):
            columns = [list(map(as_json, column.slice(at, _BLOCK).to_pylist())) for column in whole.columns]
            rows = [
                "{" + ", ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True)) + "}"
                for cells in zip(*columns, strict=True)
            ]
            stream.write((between if at else "").encode() + between.join(rows).encode("utf-8"))
        stream.write(end.encode() if whole.num_rows or start else b"")

    return write


def npz_writer(whole: Any) -> Writer:
    """A function that writes an archive with an array for each column."""
    arrays = {name: to_array(column, name) for name, column in zip(whole.column_names, whole.columns, strict=True)}
    for name in arrays:
        if "/" in name or "\\" in name:
            raise TableError(f"column {name!r} cannot be the name of an array in NPZ", "write to .parquet", column=name)

    def write(stream: BinaryIO) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                write_array(archive, name, array, zipfile.ZIP_STORED)

    return write


def to_array(column: Any, name: str) -> np.ndarray:
    """An Arrow column as an array without Python objects: missing text is empty, a missing number NaN."""
    if pa.types.is_fixed_size_list(column.type) and column.null_count == 0:
        chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        flat = chunk.flatten()
        if flat.null_count == 0 and flat.type.bit_width >= 8:
            return np.asarray(flat).reshape(len(column), column.type.list_size)
    if pa.types.is_nested(column.type):
        raise TableError(
            f"column {name!r} of type {column.type} cannot be written to NPZ", "write to .parquet", column=name
        )
    if pa.types.is_dictionary(column.type):
        return to_array(column.cast(column.type.value_type), name)
    values = np.asarray(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())
    if values.dtype.kind == "O":
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    return values


def write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray, compression: int) -> None:
    """Add an array to an NPZ archive."""
    entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that equal arrays give equal bytes
    entry.compress_type = compression
    with archive.open(entry, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
