"""The command and its parts: one file a part."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from otprop import __version__
from otprop.cli import benchmark, doctor, label, predict
from otprop.cli._command import (
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


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command.

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
    for command in (label, predict, benchmark, doctor):
        command.add_parser(commands)
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
    parser, commands = build_parser()
    given = keep_dashes(given)
    name = given[0] if given else ""
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
