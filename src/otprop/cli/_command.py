"""What all commands have in common: how they are added, how they fail."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

COMMANDS = {
    "label": "label the rows of a file",
    "predict": "label new rows by a saved model",
    "benchmark": "run the paper's experiment and compare",
    "doctor": "print versions, threads, optional parts and the data folder",
}  # each in the module of its name
DONE, FAILED, USED_WRONGLY, INTERRUPTED, READER_LEFT = 0, 1, 2, 130, 141
WIDTH = 110
_TAKES_DASHES = "--unlabeled"
_KEPT = "\0"  # no argument of a process holds it


class UsageError(ValueError):
    """The command cannot be run as given; nothing was run."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and that knows a slip of the pen."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.options: list[str] = []
        super().__init__(*args, **kwargs)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """As in argparse; the options are kept for suggestions."""
        action = super().add_argument(*args, **kwargs)
        self.options.extend(action.option_strings)
        return action

    def refuse_unknown(self, arguments: Sequence[str]) -> None:
        """Refuse an option that there is not, before argparse misses one that was spelt wrong.

        Parameters
        ----------
        arguments : sequence of str
        """
        for argument in arguments:
            if argument == "--":
                return
            option = argument.partition("=")[0]
            if option.startswith("--") and " " not in option and not any(o.startswith(option) for o in self.options):
                self.error(f"there is no option {option}{near(option, self.options)}")

    def error(self, message: str) -> NoReturn:
        """Say it in one line.

        Parameters
        ----------
        message : str
        """
        words = " ".join(message.split()).removeprefix("argument ")
        self.exit(USED_WRONGLY, f"{self.prog}: {words}{'' if words.endswith(('.', '?')) else '.'}\n")


def near(name: str, known: Sequence[str]) -> str:
    """The end of a sentence on a name that is not known: the nearest one that is, or how to see all of them.

    Parameters
    ----------
    name : str, as it came
    known : sequence of str

    Returns
    -------
    str
    """
    found = get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {found[0]}?" if found else "; --help lists them."


def keep_dashes(arguments: Sequence[str]) -> list[str]:
    """The arguments with a mark on a "--" that is the value of --unlabeled, which argparse would drop.

    Parameters
    ----------
    arguments : sequence of str

    Returns
    -------
    list of str
    """
    kept: list[str] = []
    for argument in arguments:
        if argument == "--" and kept and kept[-1] == _TAKES_DASHES:
            kept[-1] += f"={_KEPT}--"
        else:
            kept.append(f"{_TAKES_DASHES}={_KEPT}--" if argument == f"{_TAKES_DASHES}=--" else argument)
    return kept


def word(argument: str) -> str:
    """A value without the mark of `keep_dashes`.

    Parameters
    ----------
    argument : str

    Returns
    -------
    str
    """
    return argument.removeprefix(_KEPT)


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace, list[str]], int],
    *,
    usage: str,
    text: str,
    interrupted: str = "interrupted.",
) -> argparse.ArgumentParser:
    """Add a command to the others.

    Parameters
    ----------
    commands : the object that ``add_subparsers`` returned
    name : str, one of COMMANDS
    run : callable of the options and the arguments as given; returns the exit status
    usage : str, without the program's name
    text : str, what its help starts with: an example
    interrupted : str, what is said after Ctrl-C

    Returns
    -------
    argparse.ArgumentParser
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=COMMANDS[name],
        prog=f"otprop {name}",
        usage=f"otprop {usage}",
        description=text,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=WIDTH),
    )
    parser.set_defaults(run=run, interrupted=interrupted)
    return parser
