"""Packing what is written, and counting bytes where the stream cannot."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from otprop.files._error import need


@contextmanager
def packed(handle: BinaryIO, codec: str | None) -> Iterator[BinaryIO]:
    """A stream whose bytes go to the handle, packed or as they are; the handle stays open."""
    if codec == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0, compresslevel=6) as stream:
            yield cast(BinaryIO, Counting(cast(BinaryIO, stream)))
    elif codec == "zstd":
        pyarrow = need("pyarrow")
        sink = pyarrow.PythonFile(Counting(handle), mode="w")
        with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
            yield stream
    else:
        yield cast(BinaryIO, Counting(handle))


class Counting:
    """A stream that knows how much was written to it, even if it leads to a pipe, and that closing leaves open."""

    closed = False

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self.position = 0

    def write(self, data: bytes) -> int:
        """Write all of the data."""
        self.handle.write(data)
        size = memoryview(data).nbytes
        self.position += size
        return size

    def tell(self) -> int:
        """The number of bytes written so far."""
        return self.position

    def flush(self) -> None:
        """Flush what lies below."""
        self.handle.flush()

    def writable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """False."""
        return False

    def seekable(self) -> bool:
        """False: the bytes may be in a pipe already."""
        return False

    def close(self) -> None:
        """Leave the stream below open."""
        self.handle.flush()
