"""Options for rows that are not in a plain table: pictures, cells."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from otprop.cli._command import UsageError


def add_door_options(parser: argparse.ArgumentParser) -> None:
    """How rows are read that are not in a plain table."""
    parser.add_argument("--labels", metavar="FILE", help="labels of a folder of pictures: a table of paths and labels")
    parser.add_argument("--use-rep", metavar="NAME", help="the vectors of the cells of an .h5ad file; default: X_pca")
    parser.add_argument("--vectors", metavar="FILE", help="a .npy file with a vector for each row of the table")


def door_options(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `open_table` that the command names."""
    return {
        name: value for name in ("labels", "use_rep", "vectors") if (value := getattr(options, name, None)) is not None
    }


def is_one_table(options: argparse.Namespace) -> bool:
    """Whether the file of a command is a folder that is one table."""
    from otprop.table.opening import is_one_table

    return options.file != "-" and is_one_table(options.file, getattr(options, "labels", None))


def settle_target(options: argparse.Namespace) -> None:
    """Find the target where the command names none; refuse where nothing says what it is."""
    if options.target is not None:
        return
    from otprop.files import format_of_name
    from otprop.table.opening import default_target

    options.target = default_target(options.file, options.labels) if options.file != "-" else None
    folder = Path(options.file)
    if options.target is None and folder.is_dir() and not any(format_of_name(path) for path in folder.iterdir()):
        raise UsageError(f"{options.file} has neither tables nor pictures.")
    if options.target is None:
        raise UsageError("the following arguments are required: --target.")
