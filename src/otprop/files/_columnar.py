"""Tables in Parquet and in Arrow's own file format (Feather)."""

from __future__ import annotations

from typing import Any

from otprop.files._arrow import Column, fill_column, with_columns
from otprop.files._arrow_table import ArrowTable
from otprop.files._compression import check_size
from otprop.files._errors import TableError, one_line
from otprop.files._input_file import InputFile
from otprop.files._optional import feather, ipc, pa, parquet
from otprop.files._writers import Writer, columnar_writer

_FRAMES = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}  # first bytes of a compressed buffer


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
            raise TableError(f"{file.origin} is cut short or damaged ({one_line(error)})", file=file.origin) from error
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
        options["compression"] = {column.path_in_schema: _codec(column.compression) for column in columns}
        options["row_group_size"] = max(groups[0].num_rows, 1)
    return table, options


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none"}.get(name, name.lower())


def _read_ipc(file: InputFile) -> tuple[Any, dict[str, Any]]:
    data = file.data
    if data.startswith(b"FEA1"):
        return feather.read_table(pa.BufferReader(data)), {"compression": None}
    streamed = data.startswith(b"\xff\xff\xff\xff")  # as Hugging Face's datasets write
    content = (ipc.open_stream if streamed else ipc.open_file)(pa.BufferReader(data))
    batches, size = [], 0
    for batch in content if streamed else map(content.get_batch, range(content.num_record_batches)):
        batches.append(batch)
        batches[-1].validate(full=True)  # before anything looks at its values
        size += batches[-1].get_total_buffer_size()
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
