"""Tables in files: reading them, and writing back what was there, with columns added."""

from otprop.files._error import TableError
from otprop.files._read import read_table
from otprop.files._table import Column, Table
from otprop.files.safely import check_output, write_safely

__all__ = ["Column", "Table", "TableError", "check_output", "read_table", "write_safely"]
