"""Tables in Parquet and in Arrow's own file format (Feather)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from otprop.files._convert import convert, fill_column
from otprop.files._error import TableError, need, one_line
from otprop.files._source import Source
from otprop.files._table import Column, Table, check_names

_FRAMES = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}  # how a packed buffer begins


class ColumnarTable(Table):
    """A table that keeps Arrow's columns and schema as they were read."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, source.kind or "parquet")
        pa = need("pyarrow")
        try:
            self.table, self.options = _read_parquet(source.data) if self.kind == "parquet" else _read_ipc(source.data)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise TableError(f"{source.origin} is cut short or damaged ({one_line(error)}).") from error
        self.names = [str(name) for name in self.table.column_names]
        self.n_rows = self.table.num_rows
        check_names(self.names, source.origin)
        if not self.names:
            raise TableError(f"{source.origin} is empty: it has no columns.")
        if self.n_rows == 0:
            raise TableError(f"{source.origin} has column names but no rows.")

    def _typed(self, position: int) -> Any:
        column = self.table.column(position)
        types = need("pyarrow").types
        kind = column.type
        if types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        return _to_pandas(column, kind)

    def _as_text(self, position: int) -> Any:
        pa, pc = need("pyarrow"), need("pyarrow.compute")
        column = self.table.column(position)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if str(kind) not in ("string", "large_string", "string_view"):
            return None
        return pc.fill_null(column.cast(kind).combine_chunks().cast(pa.large_string()), "")

    def _cells(self, position: int) -> np.ndarray:
        values = self.table.column(position).to_pylist()
        cells = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):  # one by one, since NumPy would make a matrix of lists
            cells[i] = None if value != value else value
        return cells

    def _arrow(self) -> Any:
        return self.table

    def _writer(
        self, kind: str, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool
    ) -> Callable[[BinaryIO], None]:
        if kind != self.kind:
            return convert(self, kind, added, fill, excel_safe)
        whole = self.table if fill is None else fill_column(self.table, fill, self.origin)
        for name, array in added.items():
            whole = whole.append_column(name, array)
        return write_columnar(whole, kind, self.options)


def write_columnar(whole: Any, kind: str, options: dict[str, Any] | None = None) -> Callable[[BinaryIO], None]:
    """A function that writes an Arrow table as Parquet or Feather."""
    options = dict(options or {})
    compression = options.pop("compression", "snappy" if kind == "parquet" else "lz4")
    if isinstance(compression, dict):
        compression = {**compression, **dict.fromkeys(_leaves(whole, compression), "snappy")}
    pa = need("pyarrow")

    def write(stream: BinaryIO) -> None:
        sink = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="w")
        if kind == "parquet":
            need("pyarrow.parquet").write_table(whole, sink, compression=compression, version="2.6", **options)
        else:
            codec = pa.ipc.IpcWriteOptions(compression=compression, unify_dictionaries=True)
            with pa.ipc.new_file(sink, whole.schema, options=codec) as writer:
                writer.write_table(whole)

    return write


def _leaves(whole: Any, known: dict[str, str]) -> list[str]:
    """The new columns, which have no compression of their own yet."""
    tops = {path.partition(".")[0] for path in known}
    return [name for name in whole.column_names if name not in known and name.partition(".")[0] not in tops]


def _read_parquet(data: bytes) -> tuple[Any, dict[str, Any]]:
    """The table, and how its file was written as far as the file tells."""
    pq, pa = need("pyarrow.parquet"), need("pyarrow")
    file = pq.ParquetFile(pa.BufferReader(data))
    table = file.read()
    options: dict[str, Any] = {}
    if file.metadata.num_row_groups:
        group = file.metadata.row_group(0)
        columns = [group.column(j) for j in range(group.num_columns)]
        options["compression"] = {column.path_in_schema: _codec(column.compression) for column in columns}
        options["row_group_size"] = max(group.num_rows, 1)
    return table, options


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none"}.get(name, name.lower())


def _read_ipc(data: bytes) -> tuple[Any, dict[str, Any]]:
    pa = need("pyarrow")
    if data.startswith(b"FEA1"):
        return need("pyarrow.feather").read_table(pa.BufferReader(data)), {"compression": None}
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    table.validate()
    codec = next((name for magic, name in _FRAMES.items() if _begins_a_buffer(data, magic)), None)
    return table, {"compression": codec}


def _begins_a_buffer(data: bytes, magic: bytes) -> bool:
    """Whether the bytes occur where a packed buffer can begin: Arrow does not tell how a file is packed."""
    at = data.find(magic)
    while at >= 0 and at % 8:
        at = data.find(magic, at + 1)
    return at >= 0


def _to_pandas(column: Any, kind: Any) -> Any:
    """An Arrow column as features want it: numbers, truth values, dates, text, arrays."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    types = pa.types
    if types.is_decimal(kind) or types.is_float16(kind):
        return column.cast(pa.float64()).to_pandas()
    if types.is_date(kind):
        return column.cast(pa.timestamp("s" if types.is_date32(kind) else "ms")).to_pandas()
    if types.is_duration(kind):
        return pc.divide(column.cast(pa.int64()).cast(pa.float64()), _UNITS[kind.unit]).to_pandas()
    if types.is_boolean(kind) and column.null_count:
        return need("pandas").array(column.to_pylist(), dtype="boolean")
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_struct(kind) or types.is_map(kind) or types.is_union(kind):
        return [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return column.to_pandas()


_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
