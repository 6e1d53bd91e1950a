"""Reading a table from a file or a stream: its bytes, decompressed, and the class of its format."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from otprop._optional import import_optional, pa
from otprop._validation import ParameterError, check_count, did_you_mean
from otprop.files._columnar import ColumnarTable
from otprop.files._delimited import DelimitedTable
from otprop.files._encoding import to_utf8
from otprop.files._errors import TableError, file_error, one_line
from otprop.files._excel import ExcelTable
from otprop.files._formats import (
    FORMATS,
    check_format,
    codec_of_name,
    format_of_bytes,
    format_of_name,
    refuse_document,
    refuse_url,
)
from otprop.files._json import JsonTable
from otprop.files._label_studio import LabelStudioTable, is_label_studio
from otprop.files._layout import find_dialect
from otprop.files._limits import check_zip_size, size_limit, too_large
from otprop.files._npz import NpzTable
from otprop.files._table import InputFile, Table

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by the first bytes
_WAIT = 0.5  # seconds until a signal is handled
_BLOCK = 1 << 20


def check_reading(*, delimiter: str | None = None, quote: str | None = None, encoding: str | None = None) -> None:
    """Refuse a delimiter, quote or encoding that no file can have, before a file is opened.

    Parameters
    ----------
    delimiter, quote, encoding : str or None, as in `read_table`

    Raises
    ------
    ParameterError
        Its `parameter` is the name of the argument.

    Examples
    --------
    >>> from otprop.files import check_reading
    >>> check_reading(delimiter=";", encoding="utf-8")
    >>> try:
    ...     check_reading(encoding="no such encoding")
    ... except ValueError as error:
    ...     print(error.parameter)
    encoding
    """
    find_dialect(b"a", delimiter, quote, 0, None)
    to_utf8(b"", encoding, "")


def read_table(
    source: str | Path | BinaryIO,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    quote: str | None = None,
    max_bytes: int | None = None,
    origin: str | None = None,
    sheet: str | None = None,
) -> Table:
    r"""Read a table from a file or a binary stream, plain or compressed with gzip or zstd.

    Parameters
    ----------
    source : str, path or binary stream
        The file; "-" is standard input. The format of a stream is detected by its first bytes.
    format : str or None
        "csv", "tsv", "parquet", "feather" (also "arrow"), "npz", "json" (a list of objects, or Label Studio's tasks),
        "jsonl" (one object per line) or "xlsx" (the first sheet; needs openpyxl); None to detect it by the name and the
        first bytes.
    delimiter : str or None
        The delimiter of a text file; if None, detected among comma, semicolon, tab, bar and blank.
    encoding : str or None
        The encoding of a text file. If None: by its byte order mark, else UTF-8 if it is valid, else a Latin one.
    decimal : str or None
        "." or ","; detected if None.
    quote : str or None
        The quote around cells of a text file, empty for none; detected if None.
    max_bytes : int or None
        The largest size of a compressed file (.gz, .zst, NPZ, Excel, Parquet, Feather) once it is decompressed; if
        None, 200 times its compressed size, and at least 256 MiB.
    origin : str or None
        What messages call the source; None for its path, or "standard input".
    sheet : str or None
        The sheet of an Excel file; None for the first visible one. Not for other formats.

    Returns
    -------
    Table
        The table; its `notes` say what was detected.

    Raises
    ------
    TableError
        The file cannot be read as a table. The message is one line and says what to do.
    ParameterError
        An argument has a value that no file can have.

    Examples
    --------
    >>> import io
    >>> from otprop.files import read_table
    >>> table = read_table(io.BytesIO(b"id;price;kind\n007;1,5;a\n008;2,5;\n"))
    >>> table.names, table.cells("kind").tolist(), table.frame()["price"].tolist()
    (['id', 'price', 'kind'], ['a', None], [1.5, 2.5])
    >>> out = io.BytesIO()
    >>> table.write(out, {"kind_label": ["a", "b"]})
    >>> print(out.getvalue().decode(), end="")
    id;price;kind;kind_label
    007;1,5;a;a
    008;2,5;;b
    """
    file = read_input(source, format, max_bytes, origin)
    import_optional("pyarrow")
    import_optional("pandas")
    if sheet is not None and file.format != "xlsx":
        raise ParameterError("sheet", f"={sheet!r} is for Excel files; {file.origin} is not one.")
    if file.format in ("parquet", "feather"):
        return ColumnarTable(file)
    if file.format == "npz":
        return NpzTable(file)
    if file.format == "xlsx":
        return ExcelTable(file, sheet)
    if file.format in ("json", "jsonl"):
        return LabelStudioTable(file, encoding) if is_label_studio(file) else JsonTable(file, encoding)
    return DelimitedTable(file, delimiter, encoding, decimal, quote)


def read_input(
    source: str | Path | BinaryIO, format: str | None, max_bytes: int | None = None, origin: str | None = None
) -> InputFile:
    """Read and decompress everything; refuse content that contradicts the name or the argument `format`."""
    check_count("max_bytes", max_bytes, words=[None])
    expected = check_format(format)
    if str(source) == "-":
        source = sys.stdin.buffer
    if isinstance(source, (str, Path)):
        origin, path, data = origin or str(source), Path(source), _read_file(source)
        expected = expected or format_of_name(path)
    else:
        origin, path, data = origin or "standard input", None, _read_stream(source, origin or "standard input")
    data = _decompressed(data, path, origin, max_bytes)
    if not data:
        raise file_error(origin, "is empty: it has no column names and no rows")
    found = format_of_bytes(data, origin)
    if found is None and expected is None and path is not None:
        refuse_document(path)
    if found in ("npz", "xlsx"):
        check_zip_size(data, origin, max_bytes)
    if found == "jsonl" and expected == "json":  # many files of JSON lines are called .json
        expected = found
    file = InputFile(origin, path, data, found, expected, max_bytes)
    _check_expected(file, format is not None)
    return file


def _decompressed(data: bytes, path: Path | None, origin: str, max_bytes: int | None) -> bytes:
    """The content of a file that may be compressed; TableError as soon as it is larger than the limit."""
    expected = codec_of_name(path) if path else None
    codec = next((name for magic, name in CODECS.items() if data.startswith(magic)), None)
    if codec is None:
        if expected and data:
            raise file_error(origin, f"has the ending of a file packed with {expected}, but is not one", "rename it")
        return data
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
        problem = f"is cut short or damaged: unpacking it with {codec} failed ({one_line(error)})"
        raise file_error(origin, problem) from error
    return b"".join(blocks)


def _read_file(name: str | Path) -> bytes:
    refuse_url(name)
    path = Path(name)
    try:
        with path.open("rb") as file:
            return _read_stream(file, str(path))
    except IsADirectoryError:
        raise file_error(path, "is a folder", "name one file in it") from None
    except (FileNotFoundError, NotADirectoryError):
        raise TableError(f"there is no file {path}{_near(path)}", file=path) from None
    except OSError as error:
        raise TableError(f"cannot read {path}: {one_line(error)}", file=path) from error
    except ValueError as error:  # a NUL in the name
        raise TableError(f"cannot read {str(path)!r}: {one_line(error)}", file=path) from error


def _read_stream(file: BinaryIO, origin: str) -> bytes:
    """Everything in a file; from a pipe in blocks, since a signal just before a blocking read would wait for data."""
    try:
        number = file.fileno()
        mode = os.fstat(number).st_mode
        waits = not stat.S_ISREG(mode) and os.name == "posix" and hasattr(file, "read1")
        endless = stat.S_ISCHR(mode) and not os.isatty(number)  # /dev/zero, but also /dev/null
    except (AttributeError, OSError, ValueError):  # not a file of the operating system
        waits = endless = False
    if endless and file.read(1):
        raise file_error(origin, "is a device, not a file")
    if not waits:
        return file.read()
    blocks: list[bytes] = []
    while not blocks or blocks[-1]:
        while not select.select([number], [], [], _WAIT)[0]:
            pass
        blocks.append(file.read1(_BLOCK))  # type: ignore[attr-defined]
    return b"".join(blocks)


def _near(path: Path) -> str:
    """The end of a sentence on a file that does not exist: files with similar names."""
    if not path.parent.is_dir():
        return f", nor a folder {path.parent}"
    try:
        names = [name for name in os.listdir(path.parent) if not name.startswith(".")]
    except OSError:
        return ""
    stem = path.name.partition(".")[0]
    alike = [name for name in names if did_you_mean(stem, [name.partition(".")[0]])]  # a common ending does not count
    return did_you_mean(path.name, alike, most=3)


def _check_expected(file: InputFile, by_argument: bool) -> None:
    found, expected = file.format or "csv", file.expected
    if expected is None or found == expected or {found, expected} <= {"csv", "tsv"}:
        return
    start = f"has the ending of {FORMATS[expected]} file, but is not one"
    if by_argument:
        start = f"is not {FORMATS[expected]} file, as the argument format says"
    looks = "delimited text" if file.format is None else f"{FORMATS[found]} file"
    advice = "pass {}" if by_argument else "rename it or pass {}"
    if file.format is None and any(byte < 9 for byte in file.data[:4096]):  # not text
        problem = f"{start}: it is damaged or something else"
        raise file_error(file.origin, problem, "check where it comes from")
    raise file_error(file.origin, f"{start}: it is {looks}", advice, format=found)
