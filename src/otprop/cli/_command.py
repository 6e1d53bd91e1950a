"""What all commands have in common: how they are added, how they fail."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from otprop._errors import OtpropError
from otprop.cli._streams import printable

COMMANDS = {
    "label": "label the rows of a file",
    "suggest": "list the rows to label next",
    "check": "find given labels that look wrong",
    "studio": "label in the browser",
    "predict": "label new rows with a saved model",
    "doctor": "print versions, threads and optional packages",
}  # each in the module of its name
FAILED, USED_WRONGLY, INTERRUPTED, READER_LEFT, TERMINATED = 1, 2, 130, 141, 143
WIDTH = 110
_TAKES_DASHES = "--unlabeled"
_MARK = "\0"  # no argument of a process holds it


class UsageError(OtpropError, ValueError):
    """The command cannot be run as given; nothing was run."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest known option."""

    @property
    def options(self) -> list[str]:
        """The options, those of groups included."""
        return list(self._option_string_actions)

    def refuse_unknown(self, arguments: Sequence[str]) -> None:
        """Refuse an unknown option, before argparse reports that a required one is missing."""
        for argument in arguments:
            if argument == "--":
                return
            option = argument.partition("=")[0]
            if option.startswith("--") and " " not in option and not any(o.startswith(option) for o in self.options):
                self.error(f"there is no option {option}{self._as_argument(option) or near(option, self.options)}")

    def _as_argument(self, option: str) -> str:
        """The end of a sentence on an option whose name is that of a positional argument; empty for other options."""
        for action, place in zip(self._get_positional_actions(), ("first", "second"), strict=False):
            if option == f"--{action.dest}":
                return f": {action.metavar} is the {place} argument, without a name; see --help."
        return ""

    def error(self, message: str) -> NoReturn:
        """Exit with the message in one line."""
        text = printable(" ".join(message.split())).removeprefix("argument ")
        self.exit(USED_WRONGLY, f"{self.prog}: {text}{'' if text.endswith(('.', '?')) else '.'}\n")


def near(name: str, known: Sequence[str]) -> str:
    """The end of a sentence on an unknown name: the nearest known one, or how to see all of them."""
    from otprop._validation import did_you_mean  # imports NumPy, which `--help` does not need

    return did_you_mean(name, known).replace("'", "") or "; --help lists them."


def mark_dashes(arguments: Sequence[str]) -> list[str]:
    """The arguments with a mark on a "--" that is the value of --unlabeled, which argparse would drop."""
    marked: list[str] = []
    for argument in arguments:
        if argument == "--" and marked and marked[-1] == _TAKES_DASHES:
            marked[-1] += f"={_MARK}--"
        else:
            marked.append(f"{_TAKES_DASHES}={_MARK}--" if argument == f"{_TAKES_DASHES}=--" else argument)
    return marked


def unmarked(argument: str) -> str:
    """A value without the mark of `mark_dashes`."""
    return argument.removeprefix(_MARK)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes `--ignore COLUMN ...` for an option that takes several values, which leaves room for its help."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.ONE_OR_MORE:
            return f"{self._metavar_formatter(action, default_metavar)(1)[0]} ..."
        return super()._format_args(action, default_metavar)


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace, list[str]], int],
    *,
    usage: str,
    text: str,
    interrupted: str = "interrupted.",
) -> argparse.ArgumentParser:
    """Add a command, `name` being one of COMMANDS, to the object that ``add_subparsers`` returned.

    `run` takes the options and the arguments as given and returns the exit status; `text` starts the help with an
    example; `interrupted` is printed after Ctrl-C.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=COMMANDS[name],
        prog=f"otprop {name}",
        usage=f"otprop {usage}",
        description=text,
        formatter_class=lambda prog: _HelpFormatter(prog, max_help_position=26, width=WIDTH),
    )
    parser.set_defaults(run=run, interrupted=interrupted)
    return parser
