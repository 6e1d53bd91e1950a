"""Tables in files: reading them, and writing back what was there, with columns added."""

from otprop.files._error import TableError, listed
from otprop.files._read import check_reading, read_table
from otprop.files._source import check_ending
from otprop.files._table import Column, Table
from otprop.files._words import MISSING_WORDS, Reading
from otprop.files.atomic import check_output, write_atomic

__all__ = [
    "MISSING_WORDS",
    "Column",
    "Reading",
    "Table",
    "TableError",
    "check_ending",
    "check_output",
    "check_reading",
    "listed",
    "read_table",
    "write_atomic",
]
