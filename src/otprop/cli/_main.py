"""The command and its parts: one file a part."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from otprop import __version__
from otprop.cli import benchmark

USED_WRONGLY, FAILED, INTERRUPTED = 2, 1, 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command.

    Returns
    -------
    argparse.ArgumentParser
    """
    parser = argparse.ArgumentParser(
        prog="otprop",
        description="Label the unlabelled rows of a table by optimal transport.",
        epilog="Example: otprop benchmark --quick",
    )
    parser.add_argument("--version", action="version", version=f"otprop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    benchmark.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0 done, 1 failed, 2 used wrongly (nothing was run), 130 interrupted.
    """
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said what it has to say
        return int(stop.code or 0)
    try:
        return int(options.run(options, list(sys.argv[1:] if arguments is None else arguments)))
    except KeyboardInterrupt:
        sys.stderr.write("otprop: interrupted. Finished results are saved: the same command goes on from here.\n")
        return INTERRUPTED
    except benchmark.UsageError as error:
        sys.stderr.write(f"otprop: {error}\n")
        return USED_WRONGLY
    except BrokenPipeError:  # whoever was reading has read enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return FAILED
    except OSError as error:
        sys.stderr.write(f"otprop: {error}\n")
        return FAILED
