"""Where a table goes: a file, compressed where its name says so, or a stream."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from otprop.files._compression import compressed_stream
from otprop.files._formats import codec_of_name, format_of_name
from otprop.files._writers import Writer, arrow_writer
from otprop.files.atomic import write_atomic


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
    """Write an Arrow table, which may have no rows, in the format of the name; else and to a stream as CSV.

    Parameters
    ----------
    whole : pyarrow.Table
        What to write.
    out : str, path or binary stream
        Where to write; a file appears in one step, compressed if its name ends in `.gz` or `.zst`.
    force : bool
        Whether an existing file may be replaced.
    excel_safe : bool
        In CSV and TSV, no text cell starts a formula, as in `Table.write`.
    mode_like : str, path or None
        A file whose permissions a new output does not exceed: the one that the rows are from.
    """
    format = format_of_name(Path(out)) if isinstance(out, (str, Path)) else None
    write = arrow_writer(whole, format or "csv", excel_safe)
    write_output(out, write, force, mode_like=mode_like)
