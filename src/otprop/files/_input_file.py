"""The bytes of an input file or stream, decompressed, and their format."""

from __future__ import annotations

import os
import select
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from otprop._validation import check_count, did_you_mean
from otprop.files._compression import CODECS, check_zip_size, decompress
from otprop.files._errors import TableError, one_line
from otprop.files._formats import (
    FORMATS,
    check_format,
    codec_of_name,
    format_of_bytes,
    format_of_name,
    refuse_document,
    refuse_url,
)

_WAIT = 0.5  # seconds until a signal is handled
_BLOCK = 1 << 20


@dataclass(frozen=True)
class InputFile:
    """What was read."""

    origin: str  # the path as given, "standard input", or what the caller calls it
    path: Path | None
    data: bytes  # decompressed
    format: str | None  # by content; None for text
    expected: str | None  # by the argument `format` or by the name
    max_bytes: int | None = None


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
        raise TableError(f"{origin} is empty: it has no column names and no rows", file=origin)
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
    expected = codec_of_name(path) if path else None
    codec = next((name for magic, name in CODECS.items() if data.startswith(magic)), None)
    if expected and data and codec is None:
        raise TableError(f"{origin} is not packed with {expected}, as its name says", "rename it", file=origin)
    return decompress(data, codec, origin, max_bytes) if codec else data


def _read_file(name: str | Path) -> bytes:
    refuse_url(name)
    path = Path(name)
    try:
        with path.open("rb") as file:
            return _read_stream(file, str(path))
    except IsADirectoryError:
        raise TableError(f"{path} is a folder", "name one file in it", file=path) from None
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
        raise TableError(f"{origin} is a device, not a file", file=origin)
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
    alike = [
        name for name in names if did_you_mean(stem, [name.partition(".")[0]])
    ]  # a common extension does not count
    return did_you_mean(path.name, alike, most=3)


def _check_expected(file: InputFile, by_argument: bool) -> None:
    found, expected = file.format or "csv", file.expected
    if expected is None or found == expected or {found, expected} <= {"csv", "tsv"}:
        return
    why = "as the argument format says" if by_argument else "as its name says"
    looks = "delimited text" if file.format is None else f"{FORMATS[found]} file"
    advice = "pass {}" if by_argument else "rename it or pass {}"
    arguments = [("format", found)]
    if file.format is None and not _is_text(file.data):
        looks, advice, arguments = "damaged or something else", "check where it comes from", []
    raise TableError(
        f"{file.origin} is not {FORMATS[expected]} file, {why}: it is {looks}",
        advice,
        file=file.origin,
        arguments=arguments,
    )


def _is_text(data: bytes) -> bool:
    return not any(byte < 9 for byte in data[:4096])
