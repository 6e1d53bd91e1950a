"""An Arrow table written in each of the formats, to a file, compressed where its name says so, or to a stream."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from otprop._optional import import_optional, ipc, openpyxl, pa, parquet
from otprop.files._arrow import as_json, as_text, guard, lines, plain_text, to_cells
from otprop.files._errors import TableError
from otprop.files._formats import check_ending, codec_of_name, format_of_name
from otprop.files._layout import Dialect
from otprop.files._limits import MAX_COLUMNS, MAX_ROWS
from otprop.files.atomic import write_atomic

Writer = Callable[[BinaryIO], None]
MAX_CHARACTERS = 32_767  # of a cell of Excel's
_EXACT = 2**53  # Excel keeps numbers as floats
_JSON_ROWS = 10_000  # rows of JSON at once


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
    """A function that writes a list of JSON objects, or one object per line."""
    names = [as_json(name) for name in whole.column_names]
    start, between, end = ("[\n", ",\n", "\n]\n") if format == "json" else ("", "\n", "\n")

    def write(stream: BinaryIO) -> None:
        stream.write(start.encode())
        for at in range(0, whole.num_rows, _JSON_ROWS):
            columns = [list(map(as_json, column.slice(at, _JSON_ROWS).to_pylist())) for column in whole.columns]
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
        problem = f"column {name!r} of type {column.type} cannot be written to NPZ"
        raise TableError(problem, "write to .parquet", column=name)
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


def write_workbook(whole: Any) -> Writer:
    """A function that writes an Arrow table as a workbook of one sheet."""
    import_optional("openpyxl", "excel")
    check_sheet_size(whole.num_rows, whole.num_columns)
    columns = [
        [to_cell(value, name) for value in [name, *column.to_pylist()]]
        for name, column in zip(whole.column_names, whole.columns, strict=True)
    ]

    def write(stream: BinaryIO) -> None:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Sheet1")
        for row in zip(*columns, strict=True):
            sheet.append([_typed_cell(sheet, value) for value in row])
        book.save(stream)

    return write


def check_sheet_size(n_rows: int, n_columns: int) -> None:
    """Refuse a table that is too large for a sheet."""
    if n_rows + 1 > MAX_ROWS or n_columns > MAX_COLUMNS:
        sheet = f"an Excel sheet, which holds {MAX_ROWS - 1} rows and {MAX_COLUMNS} columns"
        problem = f"{n_rows} rows and {n_columns} columns do not fit into {sheet}"
        raise TableError(problem, "write to .csv or .parquet")


def to_cell(value: Any, column: str) -> Any:
    """A value that Excel can hold: text for what it has no type for."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return None if value != value else value if abs(value) <= _EXACT else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is None and value.year >= 1900:
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    if isinstance(value, dt.time) or (type(value) is dt.date and value.year >= 1900):
        return value
    if not isinstance(value, str):
        value = value.isoformat(" ") if isinstance(value, dt.datetime) else plain_text(value)
    illegal = import_optional("openpyxl.cell.cell", "excel").ILLEGAL_CHARACTERS_RE
    if len(value) > MAX_CHARACTERS or illegal.search(value):
        cell = f"an Excel cell, which holds {MAX_CHARACTERS} characters and no control characters"
        problem = f"column {column!r}: {value[:40]!r} cannot be in {cell}"
        raise TableError(problem, "write to .csv or .parquet", column=column)
    return value


def set_cell(cell: Any, value: Any) -> None:
    """Write a value; text that begins with = stays text."""
    cell.value = value
    if isinstance(value, str):
        cell.data_type = "s"


def _typed_cell(sheet: Any, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("="):
        return value
    cell = import_optional("openpyxl.cell", "excel").WriteOnlyCell(sheet)
    set_cell(cell, value)
    return cell


def write_output(
    out: str | Path | BinaryIO,
    write: Writer,
    force: bool = False,
    inputs: Iterable[str | Path] = (),
    *,
    mode_like: str | Path | None = None,
) -> None:
    """Write to a stream, or to a file in one step; the other arguments are those of `write_atomic`."""
    if not isinstance(out, (str, Path)):
        write(out)
        out.flush()
        return
    codec = codec_of_name(Path(out))

    def packed(handle: BinaryIO) -> None:
        with compressed_stream(handle, codec) as stream:
            write(stream)

    write_atomic(out, packed, force, inputs, mode_like=mode_like)


def write_arrow(
    whole: Any,
    out: str | Path | BinaryIO,
    *,
    force: bool = False,
    excel_safe: bool = False,
    mode_like: str | Path | None = None,
) -> None:
    """Write an Arrow table, which may have no rows, in the format of the name; to a name without an ending as CSV.

    Parameters
    ----------
    whole : pyarrow.Table
        What to write.
    out : str, path or binary stream
        Where to write, a stream as CSV; a file appears in one step, compressed if its name ends in `.gz` or `.zst`. An
        unknown ending is refused.
    force : bool
        Whether an existing file may be replaced.
    excel_safe : bool
        In CSV and TSV, no text cell starts a formula, as in `Table.write`.
    mode_like : str, path or None
        A file whose permissions a new output does not exceed, and whose ending it may have: the one that the rows are
        from.
    """
    if isinstance(out, (str, Path)):
        check_ending(out, mode_like)
    format = format_of_name(Path(out)) if isinstance(out, (str, Path)) else None
    write = arrow_writer(whole, format or "csv", excel_safe)
    write_output(out, write, force, mode_like=mode_like)


@contextmanager
def compressed_stream(handle: BinaryIO, codec: str | None) -> Iterator[BinaryIO]:
    """A stream whose bytes go to the handle, compressed if there is a codec; the handle stays open."""
    if codec == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0, compresslevel=6) as stream:
            yield cast(BinaryIO, CountingStream(cast(BinaryIO, stream)))
    elif codec == "zstd":
        sink = pa.PythonFile(CountingStream(handle), mode="w")
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            yield stream
    else:
        yield cast(BinaryIO, CountingStream(handle))


class CountingStream(io.RawIOBase):
    """A writable stream that counts its bytes, since a pipe cannot tell them; closing leaves the handle open."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self.position = 0

    def write(self, data: Any) -> int:
        self.handle.write(data)
        size = memoryview(data).nbytes
        self.position += size
        return size

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        if not self.handle.closed:
            self.handle.flush()

    def writable(self) -> bool:
        return True
