"""The command and its parts: one file a part."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from otprop import __version__
from otprop.cli._command import (
    COMMANDS,
    FAILED,
    INTERRUPTED,
    READER_LEFT,
    USED_WRONGLY,
    Parser,
    UsageError,
    keep_dashes,
    near,
)
from otprop.cli._streams import let_go

_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html

Labels the unlabelled rows of a table by optimal transport. `otprop COMMAND --help` says more.
"""


def build_parser(name: str) -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command, in which one command is worked out; of the others only their names are known.

    So `otprop --help` and `otprop doctor` need none of the libraries that the other commands stand on.

    Parameters
    ----------
    name : str, of the command that is asked for

    Returns
    -------
    parser : Parser
    commands : dict of str to Parser, one for each command
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
    try:
        options = _parse(given)
    except SystemExit as stop:  # argparse has said what it has to say
        return int(stop.code or 0)
    try:
        status = int(options.run(options, given))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        left = _left(options)
        sys.stderr.write(f"otprop {options.command}: {f'interrupted. {left}' if left else options.interrupted}\n")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # whoever was reading has read enough; rich exits then
        return READER_LEFT
    except Exception as error:
        if getattr(options, "debug", False):
            traceback.print_exc()
        left = _left(options)
        sys.stderr.write(f"otprop {options.command}: {_in_one_line(error)}{' ' if left else ''}{left}\n")
        return USED_WRONGLY if isinstance(error, UsageError) else FAILED
    finally:
        let_go()


def _parse(given: list[str]) -> argparse.Namespace:
    given = keep_dashes(given)
    name = given[0] if given else ""
    parser, commands = build_parser(name)
    if name in commands:
        commands[name].refuse_unknown(given[1:])
    elif name and not name.startswith("-"):
        parser.error(f"there is no command {name!r}{near(name, list(commands))}")
    options, more = parser.parse_known_args(given)
    if more:
        commands[options.command].error(f"there is no place for {' '.join(more)}; --help says what it takes.")
    return options


def _left(options: argparse.Namespace) -> str:
    """What a command that did not come to its end has written all the same."""
    places = getattr(options, "places", None)
    return places.aftermath() if places is not None else ""


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "there was not enough memory. Use fewer columns (--features, --ignore) or fewer rows."
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)) and words:
        return words
    return f"{type(error).__name__}: {words or 'no more is known'}. --debug shows where it happened."
