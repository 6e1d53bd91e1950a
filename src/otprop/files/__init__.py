"""Tables in files: read, and written back unchanged with columns added."""

from otprop.files._arrow import Column
from otprop.files._distinct import MISSING_MARKERS, Reading
from otprop.files._errors import TableError, listed
from otprop.files._formats import FORMATS, check_ending
from otprop.files._read import check_reading, read_table
from otprop.files._table import Table
from otprop.files.atomic import Terminated, check_output, sigterm_as_exception, write_atomic

__all__ = [
    "FORMATS",
    "MISSING_MARKERS",
    "Column",
    "Reading",
    "Table",
    "TableError",
    "Terminated",
    "check_ending",
    "check_output",
    "check_reading",
    "listed",
    "read_table",
    "sigterm_as_exception",
    "write_atomic",
]
