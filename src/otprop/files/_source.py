"""The bytes of a file or a stream, unpacked, and what kind of table they are."""

from __future__ import annotations

import difflib
import gzip
import io
import os
import re
import select
import stat
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from otprop.files._error import TableError, need, one_line

ANSWER_WITHIN = 0.5  # seconds
BYTES_AT_ONCE = 1 << 20
_FOREIGN = {  # endings that promise something else than what is written here
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"), "a spreadsheet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "JSON"),
    **dict.fromkeys((".html", ".htm", ".xml"), "a page of HTML or XML"),
    **dict.fromkeys((".pdf", ".doc", ".docx"), "a document"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".mat"), "a file of a statistics program"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "a database"),
    **dict.fromkeys((".npy", ".h5", ".hdf5", ".orc", ".avro"), "a format that is not written here"),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".7z"), "an archive"),
    **dict.fromkeys((".py", ".ipynb", ".png", ".jpg", ".svg", ".model"), "something else than a table"),
}
KINDS = ("csv", "tsv", "parquet", "feather", "npz")
_ALIASES = {"arrow": "feather", "ipc": "feather", "pq": "parquet", "tab": "tsv"}
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".npz": "npz",
}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_NAMES = {"csv": "a CSV", "tsv": "a TSV", "parquet": "a Parquet", "feather": "an Arrow/Feather", "npz": "an NPZ"}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_JSON = re.compile(rb'(\xef\xbb\xbf)?\s*(\{\s*("[^"\n]*"\s*:|\})|\[\s*[\[{\]"]|\[\s*-?\d[^\n;]*[,\]])')
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHERS = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file; save the sheet as CSV",
    b"BZh": "packed with bzip2; unpack it first",
    b"\xfd7zXZ": "packed with xz; unpack it first",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"SQLite format 3": "an SQLite database; export the table as CSV",
    b"\x89HDF": "an HDF5 file",
    b"ORC": "an ORC file",
    b"\x93NUMPY": "a single NumPy array; save the table with numpy.savez",
    b"\x7fELF": "a program",
}


@dataclass(frozen=True)
class Source:
    """What was read."""

    origin: str  # the path as given, or "standard input"
    path: Path | None
    data: bytes  # unpacked
    kind: str | None  # by content: None for text
    wanted: str | None  # by what the user said or by the name
    given: bool  # the user said it


def open_source(source: str | Path | BinaryIO, format: str | None) -> Source:
    """Read everything, unpack it, and refuse what is not what its name says."""
    if str(source) == "-":
        source = sys.stdin.buffer
    if isinstance(source, (str, Path)):
        origin, path, data = str(source), Path(source), _read(Path(source))
    else:
        origin, path, data = "standard input", None, _all_of(source)
    if not data:
        raise TableError(f"{origin} is empty: it has no column names and no rows.")
    wanted = check_format(format) or (kind_of(path) if path else None)
    codec = codec_of(path) if path else None
    found = next((name for magic, name in _PACKED.items() if data.startswith(magic)), None)
    if codec and found is None:
        raise TableError(f"{origin} is not packed with {codec}, as its name says; rename it.")
    if found:
        data = _unpack(data, found, origin)
        if not data:
            raise TableError(f"{origin} is empty: it has no column names and no rows.")
    kind = _kind_of_bytes(data, origin)
    result = Source(origin, path, data, kind, wanted, format is not None)
    _refuse_other_kind(result)
    return result


def check_format(format: str | None) -> str | None:
    """The kind of table that the user named."""
    if format is None:
        return None
    kind = _ALIASES.get(format.lower(), format.lower())
    if kind not in KINDS:
        raise TableError(f"format={format!r} is not known; formats: {', '.join(KINDS)}.")
    return kind


def kind_of(path: Path) -> str | None:
    """The kind of table that a file's name says, if it says one."""
    return _SUFFIXES.get(_ending(path))


def codec_of(path: Path) -> str | None:
    """How a file is packed, by its name."""
    return _CODECS.get(path.suffix.lower())


def same_ending(path: Path, source: Path | None) -> bool:
    """Whether two files have the same ending, packed or not."""
    return source is not None and _ending(path) == _ending(source)


def check_ending(out: str | Path, source: str | Path | None = None) -> None:
    """Refuse to write a table under a name that promises something else, such as an Excel workbook.

    Parameters
    ----------
    out : str or path
        Where the table shall be. "-" is standard output and always right.
    source : str, path or None
        The input, whose own ending is always right.

    Raises
    ------
    TableError
        The message says which endings there are.
    """
    path = Path(out)
    what = _FOREIGN.get(_ending(path))
    if str(out) == "-" or what is None or same_ending(path, None if source is None else Path(source)):
        return
    raise TableError(
        f"{path} would be {what} by its name, which cannot be written; use .csv, .tsv, .parquet, .feather or .npz"
        f"{' (a spreadsheet program opens .csv)' if what == 'a spreadsheet' else ''}."
    )


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() in _CODECS else path).suffix.lower()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _all_of(file)
    except IsADirectoryError:
        raise TableError(f"{path} is a folder; name one file in it.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise TableError(f"there is no file {path}{_near(path)}") from None
    except OSError as error:
        raise TableError(f"cannot read {path}: {one_line(error)}.") from error
    except ValueError as error:  # a NUL in the name
        raise TableError(f"cannot read {str(path)!r}: {one_line(error)}.") from error


def _all_of(file: BinaryIO) -> bytes:
    """Everything in a file; from a pipe piece by piece, since a Ctrl-C that comes just before a read would wait."""
    try:
        number = file.fileno()
        waits = not stat.S_ISREG(os.fstat(number).st_mode) and os.name == "posix" and hasattr(file, "read1")
    except (AttributeError, OSError, ValueError):  # no file of the system's
        waits = False
    if not waits:
        return file.read()
    pieces: list[bytes] = []
    while not pieces or pieces[-1]:
        while not select.select([number], [], [], ANSWER_WITHIN)[0]:
            pass  # here a Ctrl-C is heard
        pieces.append(file.read1(BYTES_AT_ONCE))  # type: ignore[attr-defined]
    return b"".join(pieces)


def _near(path: Path) -> str:
    """Names of files that are there and much like the one that is not."""
    if not path.parent.is_dir():
        return f", nor a folder {path.parent}."
    try:
        there = [name for name in os.listdir(path.parent) if not name.startswith(".")]
    except OSError:
        return "."
    near = difflib.get_close_matches(path.name, there, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else "."


def _unpack(data: bytes, codec: str, origin: str) -> bytes:
    try:
        if codec == "gzip":
            return gzip.decompress(data)
        pyarrow = need("pyarrow")
        unpacked: bytes = pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read()
        return unpacked
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(
            f"{origin} is cut short or damaged: unpacking it with {codec} failed ({one_line(error)})."
        ) from error


def _kind_of_bytes(data: bytes, origin: str) -> str | None:
    for magic, what in _OTHERS.items():
        if data.startswith(magic):
            raise TableError(f"{origin} is no table: it is {what}.")
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        _refuse_other_zip(data, origin)
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return kind
    if data.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TableError(f"{origin} is no table: it is a page of HTML or XML.")
    if _JSON.match(data):
        raise TableError(f"{origin} is JSON, which is not read here; convert it to CSV or Parquet first.")
    return None


def _refuse_other_zip(data: bytes, origin: str) -> None:
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile as error:
        raise TableError(f"{origin} is cut short or damaged ({one_line(error)}).") from error
    if any(name.startswith("xl/") for name in names):
        raise TableError(f"{origin} is an Excel workbook; save the sheet as CSV.")
    if not names or not all(name.endswith(".npy") for name in names):
        raise TableError(f"{origin} is a ZIP archive, not an NPZ file of arrays; unpack it first.")


def _refuse_other_kind(source: Source) -> None:
    found = source.kind or "csv"
    wanted = source.wanted
    if wanted is None or found == wanted or {found, wanted} <= {"csv", "tsv"}:
        return
    says = "as --format says" if source.given else "as its name says"
    looks = "delimited text" if source.kind is None else f"{_NAMES[found]} file"
    advice = f"pass --format {found}" if source.given else f"rename it or pass --format {found}"
    if source.kind is None and not _is_text(source.data):
        looks, advice = "damaged or something else", "check where it comes from"
    raise TableError(f"{source.origin} is not {_NAMES[wanted]} file, {says}: it is {looks}; {advice}.")


def _is_text(data: bytes) -> bool:
    return not any(byte < 9 for byte in data[:4096])
