"""The formats of tables: their names, file name endings and first bytes."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

from otprop._validation import ParameterError, did_you_mean
from otprop.files._errors import file_error, one_line

FORMATS = {
    "csv": "a CSV",
    "tsv": "a TSV",
    "parquet": "a Parquet",
    "feather": "an Arrow/Feather",
    "npz": "an NPZ",
    "json": "a JSON",
    "jsonl": "a JSON lines",
    "xlsx": "an Excel",
}
_ALIASES = {"arrow": "feather", "ipc": "feather", "pq": "parquet", "tab": "tsv", "ndjson": "jsonl", "excel": "xlsx"}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_NOT_WRITTEN = {
    **dict.fromkeys((".xls", ".xlsm", ".xlsb", ".ods", ".numbers"), "a spreadsheet of another format"),
    **dict.fromkeys((".html", ".htm", ".xml"), "a page of HTML or XML"),
    **dict.fromkeys((".pdf", ".doc", ".docx"), "a document"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".mat"), "a file of a statistics program"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "a database"),
    **dict.fromkeys((".npy", ".h5", ".hdf5", ".orc", ".avro"), "a format that is not supported"),
    ".h5ad": "a file of cells",
    **dict.fromkeys((".zip", ".bz2", ".xz", ".7z"), "an archive"),
    **dict.fromkeys((".md", ".py", ".ipynb", ".png", ".jpg", ".svg", ".model"), "a file that is not a table"),
}
_NEVER_WRITTEN = ("a spreadsheet of another format", "a database")  # though they are read
_DOCUMENTS = {
    **dict.fromkeys((".md", ".markdown", ".rst", ".tex"), "a text document"),
    **dict.fromkeys((".py", ".r", ".ipynb"), "a script"),
}
_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather", b"\xff\xff\xff\xff": "feather"}
_NO_TABLE = {
    b"\x89PNG": ("a PNG image", ""),
    b"\xff\xd8\xff": ("a JPEG image", ""),
    b"GIF8": ("a GIF image", ""),
    b"%PDF": ("a PDF document", ""),
    b"\xd0\xcf\x11\xe0": ("an old Excel or Word file, or one with a password", "save the sheet as .xlsx or CSV"),
    b"BZh": ("packed with bzip2", "unpack it first"),
    b"\xfd7zXZ": ("packed with xz", "unpack it first"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it first"),
    b"SQLite format 3": ("an SQLite database", "name a table of it: FILE::TABLE"),
    b"\x89HDF": ("an HDF5 file", ""),
    b"ORC": ("an ORC file", ""),
    b"\x93NUMPY": ("a single NumPy array", "save the table with numpy.savez"),
    b"\x7fELF": ("a program", ""),
}
_JSON_LIST = re.compile(rb'(\xef\xbb\xbf)?\s*(\[\s*[\[{\]"]|\[\s*-?\d[^\n;]*[,\]])')
_JSON_OBJECT = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*("(?:[^"\\\n]|\\.)*"\s*:|\})')
_URL = re.compile(r"(https?|ftp|s3|gs|hdfs|abfss?|file):/", re.IGNORECASE)


def check_format(format: str | None) -> str | None:
    """The name of a format without aliases."""
    if format is None:
        return None
    found = _ALIASES.get(str(format).lower(), str(format).lower())
    if found not in FORMATS:
        raise ParameterError("format", f"must be one of {', '.join(FORMATS)}; got {format!r}.")
    return found


def format_of_name(path: Path) -> str | None:
    """The format that the ending of a file name stands for.

    Parameters
    ----------
    path : path

    Returns
    -------
    str or None
        One of `FORMATS`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from otprop.files import format_of_name
    >>> format_of_name(Path("lots.csv.gz")), format_of_name(Path("lots.pdf"))
    ('csv', None)
    """
    ending = _ending(path)[1:]
    found = _ALIASES.get(ending, ending)
    return found if found in FORMATS and ending != "excel" else None


def codec_of_name(path: Path) -> str | None:
    """The compression that the ending of a file name stands for, None if none."""
    return _CODECS.get(path.suffix.lower())


def same_ending(path: Path, other: Path | None) -> bool:
    """Whether two file names have the same ending, compressed or not."""
    return other is not None and _ending(path) == _ending(other)


def refuse_url(path: str | Path) -> None:
    """Refuse an address on the web in place of a file.

    Parameters
    ----------
    path : str or path

    Examples
    --------
    >>> from otprop.files import TableError, refuse_url
    >>> refuse_url("lots.csv")
    >>> try:
    ...     refuse_url("https://example.org/lots.csv")
    ... except TableError as error:
    ...     print(error.advice)
    download it first and name the file
    """
    if _URL.match(str(path)):
        raise file_error(path, "is a URL; URLs are not read or written", "download it first and name the file")


def check_ending(out: str | Path, source: str | Path | None = None) -> None:
    """Refuse to write a table under a name whose ending is unknown, or stands for another kind of file, such as a PDF.

    Parameters
    ----------
    out : str or path
        The output; "-" is standard output and always accepted, and so is a name without an ending.
    source : str, path or None
        The input, whose own ending is always accepted.

    Raises
    ------
    TableError
        The message lists the endings that can be written.

    Examples
    --------
    >>> from otprop.files import TableError, check_ending
    >>> check_ending("lots.parquet")
    >>> try:
    ...     check_ending("lots.pdf")
    ... except TableError:
    ...     print("refused")
    refused
    """
    path = Path(out)
    ending = _ending(path)
    what = _NOT_WRITTEN.get(ending)
    own = same_ending(path, None if source is None else Path(source)) and what not in _NEVER_WRITTEN
    if str(out) == "-" or own or not ending or format_of_name(path) is not None:
        return
    endings = ", ".join(f".{name}" for name in FORMATS)
    if what is None:
        near = did_you_mean(ending, [f".{name}" for name in (*FORMATS, *_ALIASES) if name != "excel"])
        advice = f"{near.removeprefix('; ')} Use {endings}" if near else f"use {endings}"
        raise file_error(path, f"has the unknown ending {ending!r}", advice)
    spreadsheet = " (a spreadsheet program opens .csv and .xlsx)" if "spreadsheet" in what else ""
    raise file_error(path, f"has the ending of {what}, which cannot be written", f"use {endings}{spreadsheet}")


def check_page_ending(path: str | Path) -> None:
    """Refuse to write an HTML page under a name that stands for something else; a name without an ending is fine."""
    if Path(path).suffix.lower() not in ("", ".html", ".htm"):
        raise file_error(path, "would not be a web page by its name, and the report is one", "use .html")


def refuse_document(path: Path) -> None:
    """Refuse text whose name says that it is a document."""
    what = _DOCUMENTS.get(_ending(path))
    if what is not None:
        problem = f"is not a table: it is {what} by its name"
        raise file_error(path, problem, "save the table in it as CSV, or pass {} if it is one", format="csv")


def format_of_bytes(data: bytes, origin: str) -> str | None:
    """The format by the first bytes, None for delimited text; TableError for what is not a table."""
    for magic, (what, advice) in _NO_TABLE.items():
        if data.startswith(magic):
            raise file_error(origin, f"is not a table: it is {what}", advice)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _format_of_zip(data, origin)
    for magic, found in _FIRST_BYTES.items():
        if data.startswith(magic):
            return found
    if data.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise file_error(origin, "is not a table: it is a page of HTML or XML")
    if _JSON_LIST.match(data):
        return "json"
    return "jsonl" if _JSON_OBJECT.match(data) else None


def _format_of_zip(data: bytes, origin: str) -> str:
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise file_error(origin, f"is cut short or damaged ({one_line(error)})") from error
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    if not names or not all(name.endswith(".npy") for name in names):
        raise file_error(origin, "is a ZIP archive, not an NPZ file of arrays", "unpack it first")
    return "npz"


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() in _CODECS else path).suffix.lower()
