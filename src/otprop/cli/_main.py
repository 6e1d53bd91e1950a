"""Parsing the command line, running a command, and its exit status."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from otprop import __version__
from otprop._errors import OtpropError
from otprop.cli._command import (
    COMMANDS,
    FAILED,
    INTERRUPTED,
    READER_LEFT,
    TERMINATED,
    USED_WRONGLY,
    Parser,
    mark_dashes,
    near,
)
from otprop.cli._flags import error_text
from otprop.cli._streams import Terminated, discard_unwritable_output, interruption, write_error

_NO_LOG = logging.NullHandler()
_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html

Label the unlabelled rows of a table by optimal transport. `otprop COMMAND --help` describes a command.
"""


def build_parser(name: str) -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command and of each command; only the options of the command `name` are added.

    So `otprop --help` and `otprop doctor` import none of the libraries that the other commands need.
    """
    parser = Parser(
        prog="otprop",
        usage="otprop COMMAND ...",
        description=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"otprop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    for command, brief in COMMANDS.items():
        if command == name:
            import_module(f"otprop.cli.{command}").add_parser(commands)
        else:
            commands.add_parser(command, help=brief)
    return parser, dict(commands.choices)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command; `otprop.cli.main` says what it returns."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    logging.getLogger("otprop").addHandler(_NO_LOG)  # else Python prints warnings of the log, also with --quiet
    try:
        options = _parse(given)
    except SystemExit as stop:  # argparse has printed its message
        return int(stop.code or 0)
    try:
        status = int(options.run(options, given))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as error:
        return _stopped(options, error)
    except (BrokenPipeError, SystemExit):  # the reader of the output has left; rich exits then
        return READER_LEFT
    except Exception as error:
        signalled = interruption(error)
        if signalled is not None:
            return _stopped(options, signalled)
        if getattr(options, "debug", False):
            traceback.print_exc()
        written = _written(options)
        write_error(f"otprop {options.command}: {_one_line(error)}{' ' if written else ''}{written}")
        return _status(error)
    finally:
        discard_unwritable_output()


def _status(error: Exception) -> int:
    """The exit status of an error: wrong use is what the package refuses, and not what the system could not do."""
    refused = isinstance(error, OtpropError) and isinstance(error, (ValueError, TypeError))
    return USED_WRONGLY if refused and not isinstance(error.__cause__, OSError) else FAILED


def _parse(given: list[str]) -> argparse.Namespace:
    given = mark_dashes(given)
    name = given[0] if given else ""
    parser, commands = build_parser(name)
    if name in commands:
        commands[name].refuse_unknown(given[1:])
    elif name and not name.startswith("-"):
        parser.error(f"there is no command {name!r}{near(name, list(commands))}")
    options, more = parser.parse_known_args(given)
    if more:
        commands[options.command].error(f"unexpected argument: {' '.join(more)}; see --help.")
    return options


def _stopped(options: argparse.Namespace, error: KeyboardInterrupt) -> int:
    """Say that a signal stopped the command; its exit status."""
    status, word = (TERMINATED, "terminated") if isinstance(error, Terminated) else (INTERRUPTED, "interrupted")
    written = _written(options)
    sentence = f"interrupted. {written}" if written else options.interrupted
    write_error(f"otprop {options.command}: {sentence.replace('interrupted', word, 1)}")
    return status


def _written(options: argparse.Namespace) -> str:
    """The files that a command wrote before it failed, as a sentence."""
    written = [path for path in getattr(options, "written", []) if path in options.outputs]  # not a cache
    return f"Written before that: {', '.join(map(str, written))}." if written else ""


def _one_line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there was not enough memory. Use fewer columns (--features, --ignore) or fewer rows."
    text = " ".join((error_text(error) if isinstance(error, OtpropError) else str(error)).split())
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)) and text:
        return text
    return f"{type(error).__name__}: {text or 'unexpected error'}. Run again with --debug to see where it happened."
