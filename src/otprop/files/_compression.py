"""Compressed files: reading them up to a limit, and writing them."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from otprop.files._errors import TableError, one_line
from otprop.files._optional import pa

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by the first bytes
MIN_LIMIT = 256 << 20  # bytes
MAX_TIMES = 200  # the compressed size
_BLOCK = 1 << 20


def size_limit(compressed: int, max_bytes: int | None) -> int:
    """How many bytes a file may have once it is decompressed."""
    return max(MIN_LIMIT, MAX_TIMES * compressed) if max_bytes is None else max_bytes


def decompress(data: bytes, codec: str, origin: str, max_bytes: int | None) -> bytes:
    """The content of a compressed file; TableError as soon as it is larger than the limit."""
    limit, size, blocks = size_limit(len(data), max_bytes), 0, []
    try:
        stream: Any
        if codec == "gzip":
            stream = gzip.GzipFile(fileobj=io.BytesIO(data))
        else:
            stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
        while block := stream.read(_BLOCK):
            blocks.append(block)
            size += len(block)
            if size > limit:
                raise too_large(origin, limit)
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(
            f"{origin} is cut short or damaged: unpacking it with {codec} failed ({one_line(error)})", file=origin
        ) from error
    return b"".join(blocks)


def check_zip_size(data: bytes, origin: str, max_bytes: int | None) -> None:
    """Refuse a ZIP archive (NPZ, Excel) whose members are larger than the limit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_size(sum(member.file_size for member in archive.infolist()), len(data), origin, max_bytes)


def check_size(size: int, compressed: int, origin: str, max_bytes: int | None) -> None:
    """Refuse a file that would be larger than the limit once it is decompressed."""
    limit = size_limit(compressed, max_bytes)
    if size > limit:
        raise too_large(origin, limit)


def too_large(origin: str, limit: int) -> TableError:
    """The error of a file that is larger than the limit once it is decompressed."""
    return TableError(
        f"{origin} has more than {limit:,} bytes once it is unpacked",
        "if you trust it, unpack it first or allow more with {}",
        file=origin,
        arguments=[("max_bytes", None)],
    )


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
        """Write all of the data."""
        self.handle.write(data)
        size = memoryview(data).nbytes
        self.position += size
        return size

    def tell(self) -> int:
        """The number of bytes written so far."""
        return self.position

    def flush(self) -> None:
        """Flush the handle."""
        if not self.handle.closed:
            self.handle.flush()

    def writable(self) -> bool:
        """True."""
        return True
