"""Small tables in memory: of one column, of a later file, and as bytes of each format."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from otprop.files import read_table

CSV = b"id,x,day,y\n007,1.5,2024-01-02,a\n008,2.25,2024-01-03,\n"


def table(cells, **options):
    lines = ["id\tc", *(f"{i}\t{cell}" for i, cell in enumerate(cells))]
    return read_table(io.BytesIO("\n".join(lines).encode()), **options)


def parquet(cells, kind=None):
    out = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array(cells, kind)}), out)
    return read_table(io.BytesIO(out.getvalue()))


def later(first, then, **options):
    """The values of a later column, and the notes."""
    new = table(then, **options) if isinstance(then, list) else then
    old = table(first) if isinstance(first, list) else first
    return new.frame(["c"], like=old.readings(["c"]))["c"], new.notes


def column(cells, decimal=None):
    lines = ["id\tc", *(f"{i}\t{cell}" for i, cell in enumerate(cells))]
    table = read_table(io.BytesIO("\n".join(lines).encode()), decimal=decimal)
    return table.frame(["c"])["c"], table.notes


def table_of(data: bytes, **options):
    return read_table(io.BytesIO(data), **options)


def written(table, added=None, fill=None, **options) -> bytes:
    out = io.BytesIO()
    table.write(out, added or {}, fill, **options)
    return out.getvalue()


def packed(table: pa.Table, kind: str, **options) -> bytes:
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, out, **options)
    else:
        pyarrow.feather.write_feather(table, out, **options)
    return out.getvalue()


def unpacked(data: bytes, kind: str) -> pa.Table:
    return (pq.read_table if kind == "parquet" else pyarrow.feather.read_table)(io.BytesIO(data))


def ipc(table: pa.Table, compression=None) -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(table, out, compression=compression or "uncompressed")
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()
