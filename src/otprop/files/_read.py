"""From a file or a stream to a table."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from otprop.files._arrays import ArraysTable
from otprop.files._columnar import ColumnarTable
from otprop.files._delimited import DelimitedTable
from otprop.files._dialect import find_dialect
from otprop.files._encoding import to_utf8
from otprop.files._error import need
from otprop.files._source import open_source
from otprop.files._table import Table


def check_reading(*, delimiter: str | None = None, quote: str | None = None, encoding: str | None = None) -> None:
    """Refuse what cannot be the delimiter, quote or encoding of any file, before one is opened.

    Parameters
    ----------
    delimiter, quote, encoding : str or None, as in `read_table`

    Raises
    ------
    TableError
        Its message begins with the name of the argument.
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
) -> Table:
    r"""Read a table from a file or a binary stream, plain or packed with gzip or zstd.

    Parameters
    ----------
    source : str, path or binary stream
        The file; "-" is standard input. What a stream holds is told by its first bytes.
    format : str or None
        "csv", "tsv", "parquet", "feather" (also "arrow") or "npz"; None for what the name and the first bytes say.
    delimiter : str or None
        What is between the cells of a text file; found out if None among comma, semicolon, tab, bar and blank.
    encoding : str or None
        The encoding of a text file. If None: by its byte order mark, else UTF-8 if it is valid, else a Latin one.
    decimal : str or None
        "." or ","; found out if None.
    quote : str or None
        What is around cells that hold a delimiter, empty for nothing; found out if None.

    Returns
    -------
    Table
        The table; its `notes` say what was found out.

    Raises
    ------
    TableError
        The file cannot be read as a table. The message is one line and says what to do.

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
    opened = open_source(source, format)
    need("pyarrow")
    need("pandas")
    if opened.kind in ("parquet", "feather"):
        return ColumnarTable(opened)
    if opened.kind == "npz":
        return ArraysTable(opened)
    return DelimitedTable(opened, delimiter, encoding, decimal, quote)
