"""Reading a table from a file or a stream."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from otprop._validation import ParameterError
from otprop.files._columnar import ColumnarTable
from otprop.files._delimited import DelimitedTable
from otprop.files._dialect import find_dialect
from otprop.files._encoding import to_utf8
from otprop.files._excel import ExcelTable
from otprop.files._input_file import read_input
from otprop.files._json import JsonTable
from otprop.files._label_studio import LabelStudioTable, is_label_studio
from otprop.files._npz import NpzTable
from otprop.files._optional import import_optional
from otprop.files._table import Table


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
        "jsonl" (one object a line) or "xlsx" (the first sheet; needs openpyxl); None to detect it by the name and the
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
