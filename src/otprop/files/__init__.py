"""Tables in files: read, and written back unchanged with columns added."""

from otprop.files._arrow import Column
from otprop.files._distinct import MISSING_MARKERS, Reading
from otprop.files._errors import NoRowsError, TableError, listed
from otprop.files._formats import FORMATS, check_ending, format_of_name, refuse_url
from otprop.files._label_studio import LabelStudioTable
from otprop.files._npz import read_arrays
from otprop.files._read import check_reading, read_table
from otprop.files._table import Table
from otprop.files._writers import write_arrow
from otprop.files.atomic import check_output, remove_strays, write_atomic

__all__ = [
    "FORMATS",
    "MISSING_MARKERS",
    "Column",
    "LabelStudioTable",
    "NoRowsError",
    "Reading",
    "Table",
    "TableError",
    "check_ending",
    "check_output",
    "check_reading",
    "format_of_name",
    "listed",
    "read_arrays",
    "read_table",
    "refuse_url",
    "remove_strays",
    "write_arrow",
    "write_atomic",
]
