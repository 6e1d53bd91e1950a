"""Tables that are held as Arrow columns; those of Parquet and of Arrow's own file format (Feather)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from otprop._optional import feather, ipc, pa, pandas, parquet, pc
from otprop.files._arrow import Column, fill_column, from_values, with_columns
from otprop.files._errors import NoRowsError, TableError, file_error, one_line
from otprop.files._limits import check_size
from otprop.files._numbers import find_decimal
from otprop.files._table import InputFile, Table, check_names
from otprop.files._writers import Writer, columnar_writer, is_text

SAMPLE_ROWS = 2000  # for the decimal sign
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_FRAMES = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}  # first bytes of a compressed buffer


class ArrowTable(Table):
    """A table whose columns are in `self.table`, an Arrow table."""

    table: Any
    parses_text = False  # whether text may be numbers and dates, in formats that people type into

    def _set_table(self, table: Any) -> None:
        """Take the columns; refuse a table without names, without rows, or with a name twice."""
        self.table = table
        self.names = [str(name) for name in table.column_names]
        self.n_rows = table.num_rows
        check_names(self.names, self.origin)
        if not self.names:
            raise file_error(self.origin, "is empty: it has no columns")
        if self.n_rows == 0:
            raise NoRowsError(f"{self.origin} has column names but no rows", file=self.origin)

    def _set_values(self, columns: Iterable[tuple[str, list[Any]]]) -> None:
        """Take columns of Python values by their names, with a note where one mixes types."""
        arrays = {}
        for name, values in columns:
            arrays[name], note = from_values(values, name, self.origin)
            self._note(note)
        self._set_table(pa.table(arrays))

    def _new_values(self, fill: tuple[str, Column]) -> list[Any]:
        """The values to write into a column, in its type; None where a cell stays."""
        new = fill_column(self.table, fill, self.origin).column(fill[0]).to_pylist()
        return [None if old is None or old != old else value for old, value in zip(fill[1], new, strict=True)]

    def parse_text(self) -> None:
        """Read columns of text as the cells of a CSV file are: as numbers, dates or booleans where all fit."""
        self.parses_text = True
        self.sign = find_decimal([self._as_text(j).slice(0, SAMPLE_ROWS) for j in self._columns_of_text()])
        self.decimal = self.sign or "."

    def _columns_of_text(self) -> list[int]:
        """Columns whose text may be parsed; a column of categories is what its type says."""
        types = self.table.schema.types
        return [j for j, kind in enumerate(types) if is_text(kind) and not pa.types.is_dictionary(kind)]

    def _typed(self, position: int) -> Any:
        column = self.table.column(position)
        if self.parses_text and position in self._columns_of_text():
            return self._parsed(position, self._as_text(position))
        try:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            return _to_pandas(column, column.type)
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            raise self._not_readable(position, error) from error

    def _as_text(self, position: int) -> Any:
        column = self.table.column(position)
        if not is_text(column.type):
            return None
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return pc.fill_null(column.cast(kind).combine_chunks().cast(pa.large_string()), "")

    def _cells(self, position: int) -> np.ndarray:
        try:
            values = self.table.column(position).to_pylist()
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            raise self._not_readable(position, error) from error
        cells = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):  # one by one, since NumPy would make a matrix of lists
            cells[i] = None if value != value else value
        return cells

    def _arrow(self) -> Any:
        return self.table

    def _not_readable(self, position: int, error: BaseException) -> TableError:
        """The error of dates out of range and unknown time zones."""
        name, kind = self.names[position], self.table.schema.field(position).type
        problem = f": column {name!r} of type {kind} has values that cannot be read ({one_line(error)})"
        return file_error(self.origin, problem, "write it as text, or remove the column from the file", name)


def _to_pandas(column: Any, kind: Any) -> Any:
    """An Arrow column as numbers, booleans, dates, text or arrays."""
    types = pa.types
    if types.is_decimal(kind) or types.is_float16(kind):
        return column.cast(pa.float64()).to_pandas()
    if types.is_date(kind):
        return column.cast(pa.timestamp("s" if types.is_date32(kind) else "ms")).to_pandas()
    if types.is_duration(kind):
        return pc.divide(column.cast(pa.int64()).cast(pa.float64()), _UNITS[kind.unit]).to_pandas()
    if types.is_boolean(kind) and column.null_count:
        return pandas.array(column.to_pylist(), dtype="boolean")
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_struct(kind) or types.is_map(kind) or types.is_union(kind):
        return [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return column.to_pandas()


class ColumnarTable(ArrowTable):
    """A table that keeps the columns and the schema of a Parquet or Feather file."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(file, file.format or "parquet")
        try:
            table, self.options = _read_parquet(file) if self.kind == "parquet" else _read_ipc(file)
            table.validate(full=True)  # offsets, dictionary indices, UTF-8: Arrow trusts them from here on
            if any(not field.nullable and table.column(i).null_count for i, field in enumerate(table.schema)):
                raise ValueError("a column that is declared without nulls has some")
        except TableError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError) as error:
            raise file_error(file.origin, f"is cut short or damaged ({one_line(error)})") from error
        self._set_table(table)

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        whole = self.table if fill is None else fill_column(self.table, fill, self.origin)
        return columnar_writer(with_columns(whole, added), self.kind, self.options)


def _read_parquet(file: InputFile) -> tuple[Any, dict[str, Any]]:
    """The table, and the options that its file was written with."""
    content = parquet.ParquetFile(pa.BufferReader(file.data))
    metadata = content.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    size = max(sum(group.total_byte_size for group in groups), metadata.num_rows * metadata.num_columns)
    check_size(size, len(file.data), file.origin, file.max_bytes)
    table = content.read()
    options: dict[str, Any] = {}
    if groups:
        columns = [groups[0].column(j) for j in range(groups[0].num_columns)]
        codecs = {column.path_in_schema: column.compression.lower() for column in columns}
        options["compression"] = {path: "none" if codec == "uncompressed" else codec for path, codec in codecs.items()}
        options["row_group_size"] = max(groups[0].num_rows, 1)
    return table, options


def _read_ipc(file: InputFile) -> tuple[Any, dict[str, Any]]:
    data = file.data
    if data.startswith(b"FEA1"):
        return feather.read_table(pa.BufferReader(data)), {"compression": None}
    streamed = data.startswith(b"\xff\xff\xff\xff")  # as Hugging Face's datasets write
    content = (ipc.open_stream if streamed else ipc.open_file)(pa.BufferReader(data))
    batches, size = [], 0
    for batch in content if streamed else map(content.get_batch, range(content.num_record_batches)):
        batch.validate(full=True)  # before anything looks at its values
        batches.append(batch)
        size += batch.get_total_buffer_size()
        check_size(size, len(data), file.origin, file.max_bytes)
    table = pa.Table.from_batches(batches, content.schema)
    codec = next((name for magic, name in _FRAMES.items() if not streamed and _begins_a_buffer(data, magic)), None)
    return table, {"compression": codec}


def _begins_a_buffer(data: bytes, magic: bytes) -> bool:
    """Whether the bytes occur where a compressed buffer can begin: Arrow does not expose the codec of a file."""
    at = data.find(magic)
    while at >= 0 and at % 8:
        at = data.find(magic, at + 1)
    return at >= 0
