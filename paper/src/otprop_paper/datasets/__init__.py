"""Data sets by name, or from a file of your own.

The seven of the paper, some larger or smaller ones, and how the benchmark prepares each.
"""

from otprop_paper.datasets._dataset import Dataset
from otprop_paper.datasets._file import is_path
from otprop_paper.datasets._load import Description, describe, load, names
from otprop_paper.datasets._prepare import prepare

__all__ = ["Dataset", "Description", "describe", "is_path", "load", "names", "prepare"]
