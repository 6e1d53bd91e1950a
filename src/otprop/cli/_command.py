"""What all commands have in common: how they are added, how they fail."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

DONE, FAILED, USED_WRONGLY, INTERRUPTED = 0, 1, 2, 130
WIDTH = 110


class UsageError(ValueError):
    """The command cannot be run as given; nothing was run."""


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace, list[str]], int],
    *,
    brief: str,
    usage: str,
    text: str,
    interrupted: str = "interrupted.",
) -> argparse.ArgumentParser:
    """Add a command to the others.

    Parameters
    ----------
    commands : the object that ``add_subparsers`` returned
    name : str
    run : callable of the options and the arguments as given; returns the exit status
    brief : str, in the list of commands
    usage : str, without the program's name
    text : str, what its help starts with: an example
    interrupted : str, what is said after Ctrl-C

    Returns
    -------
    argparse.ArgumentParser
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=brief,
        usage=f"otprop {usage}",
        description=text,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=WIDTH),
    )
    parser.set_defaults(run=run, interrupted=interrupted)
    return parser
