"""The command and its parts: one file a part."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from otprop import __version__
from otprop.cli import benchmark, doctor, label, predict
from otprop.cli._command import FAILED, INTERRUPTED, USED_WRONGLY, UsageError

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html

Labels the unlabelled rows of a table by optimal transport. `otprop COMMAND --help` says more.
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command.

    Returns
    -------
    argparse.ArgumentParser
    """
    parser = argparse.ArgumentParser(
        prog="otprop",
        usage="otprop COMMAND ...",
        description=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"otprop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    for command in (label, predict, benchmark, doctor):
        command.add_parser(commands)
    return parser


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command; `otprop.cli.main` says what it returns."""
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said what it has to say
        return int(stop.code or 0)
    try:
        return int(options.run(options, list(sys.argv[1:] if arguments is None else arguments)))
    except KeyboardInterrupt:
        sys.stderr.write(f"otprop: {getattr(options, 'interrupted', 'interrupted.')}\n")
        return INTERRUPTED
    except BrokenPipeError:  # whoever was reading has read enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return FAILED
    except Exception as error:
        if getattr(options, "debug", False):
            traceback.print_exc()
        sys.stderr.write(f"otprop: {_in_one_line(error)}\n")
        return USED_WRONGLY if isinstance(error, UsageError) else FAILED


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "there was not enough memory. Use fewer columns (--features, --ignore) or fewer rows."
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)) and words:
        return words
    return f"{type(error).__name__}: {words or 'no more is known'}. --debug shows where it happened."
