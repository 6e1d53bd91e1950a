"""A table of an SQLite database, named as `FILE::TABLE`; the database is only read."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from otprop.files import Table, TableError, listed
from otprop.files._errors import file_error, one_line
from otprop.table.frame import table_of_frame

MARK = "::"
_HEADER = b"SQLite format 3\0"
_WRITE_VERSION, _WITH_LOG = 18, 2  # place and value of a byte of the header
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_OTHER = "export the table as CSV or Parquet, or pass a DataFrame of it"
_MAX_STEPS = 5_000  # of a million instructions: a view of a stranger's must not run for ever
# bytes of the values of a table, at least, and for each byte of the file: views and generated columns may make more
_MIN_BYTES, _BYTES_PER_BYTE = 200_000_000, 50
_ROWS_AT_ONCE = 1_000


def is_database(source: Any) -> bool:
    """Whether this names a table of a database, and not a file whose name happens to look so."""
    return isinstance(source, (str, os.PathLike)) and MARK in os.fspath(source) and not os.path.exists(source)


def database_parts(source: str | os.PathLike[str]) -> tuple[Path, str]:
    """The file and the name of the table."""
    file, _, name = os.fspath(source).rpartition(MARK)
    return Path(file), name


def default_output(source: str) -> str:
    """Where the labelled table goes unless another file is named: a CSV file beside the database."""
    file, name = database_parts(source)
    plain = re.sub(r"[^\w-]+", "_", name)
    return str(file.with_name(f"{file.stem}.{plain}.labelled.csv"))


def read_database(source: str | os.PathLike[str]) -> Table:
    """The rows of a table or a view ("lots.db::lots"), in the order of the database; TableError lists the tables."""
    import pandas as pd

    path, name = database_parts(source)
    how = "mode=ro" if _may_be_in_use(path) else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as connection:
            steps = iter(range(_MAX_STEPS))
            connection.set_progress_handler(lambda: next(steps, None) is None, 1_000_000)
            connection.execute("PRAGMA trusted_schema = OFF")
            limit = max(_MIN_BYTES, _BYTES_PER_BYTE * path.stat().st_size)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
            known = [row[0] for row in connection.execute(_TABLES)]
            if name not in known:
                there = f"; there are {listed(known)}" if known else "; it is empty"
                raise file_error(path, f"has no table {name!r}{there}", f"name one, as {path}{MARK}TABLE")
            quoted = '"' + name.replace('"', '""') + '"'
            found = connection.execute(f"SELECT * FROM {quoted}")
            columns = [column[0] for column in found.description]
            frame = pd.DataFrame(_rows(found, limit, source), columns=columns, dtype=object).infer_objects()
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error):
            raise TableError(f"{source} takes too long to compute", _OTHER, file=path) from None
        raise TableError(f"{source} cannot be read ({one_line(error)})", file=path) from None
    table = table_of_frame(frame, os.fspath(source), parse_text=True)
    table.path, table.written_as = path, "csv"
    return table


def _rows(found: sqlite3.Cursor, limit: int, source: Any) -> list[tuple[Any, ...]]:
    """All rows, as long as their values do not take more bytes than the limit."""
    rows: list[tuple[Any, ...]] = []
    used = 0
    while part := found.fetchmany(_ROWS_AT_ONCE):
        rows += part
        used += sum(len(cell) if isinstance(cell, (str, bytes)) else 8 for row in part for cell in row)
        if used > limit:
            raise TableError(f"{source} has values of more than {limit // 10**6:,} MB, far more than its file", _OTHER)
    return rows


def _may_be_in_use(path: Path) -> bool:
    """Whether somebody else may write to a database; refuses what is not one before SQLite opens it.

    A database with a write-ahead log that nobody has open has no such log, and SQLite would leave a new one beside it.
    """
    if not os.path.isfile(path):  # no error where a name is too long
        what = f"{path} is not a plain file" if os.path.exists(path) else f"there is no file {path}"
        raise TableError(what, file=path)
    try:
        with path.open("rb") as file:
            head = file.read(len(_HEADER) + 4)
    except OSError as error:
        raise file_error(path, f"cannot be read ({one_line(error)})") from None
    if not head.startswith(_HEADER):
        raise file_error(path, "is not an SQLite database", _OTHER)
    return head[_WRITE_VERSION] != _WITH_LOG or os.path.exists(f"{os.path.realpath(path)}-wal")
