"""The command line: parsing it, running a command, how commands are added, how they fail, and their exit status."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from otprop import __version__
from otprop._errors import OtpropError
from otprop.cli._streams import Terminated, discard_unwritable_output, interruption, printable, write_error

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
_NO_LOG = logging.NullHandler()
_EXAMPLE = """\
example:
  otprop label lots.csv --target variety --report lots.html

Label the unlabelled rows of a table by optimal transport. `otprop COMMAND --help` describes a command.
"""
_OTHER_NAMES = {  # parameters whose option has another name
    "costs": "--cost",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "settings": "--set",
    "output": "-o",
    "path": "-o",
    "model": "--save",
    "n": "-n",
}
_SAME_NAMES = {  # parameters whose option has the same name
    *("abstain_below", "chosen", "class_prior", "corrections", "decimal", "delimiter", "embedding"),
    *("encoding", "excel_safe", "features", "fill", "force", "format", "goal", "graph", "groups", "ignore"),
    *("image_model", "jobs", "labels", "landmarks", "map", "max_bytes", "merge_labels", "method", "metric"),
    *("new_classes", "numeric_classes", "objective", "prefix", "probabilities", "quote", "random_share", "report"),
    *("rescue", "sample", "scheduler", "seed", "session", "sheet", "target", "text_model", "unlabeled", "use_rep"),
    *("vectors", "votes", "votes_file"),
}


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
    elif not name:
        parser.error(f"a command is missing; there are {', '.join(commands)}. See otprop --help.")
    elif name.startswith("-"):
        parser.refuse_unknown([name])
    else:
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


def flag(parameter: str, value: Any = None) -> str:
    """The option of a parameter, with its value; `--set NAME` for a parameter of a method."""
    if parameter == "settings" and isinstance(value, Mapping):
        return " ".join(f"--set {shlex.quote(f'{name}={setting}')}" for name, setting in value.items())
    if parameter in _SAME_NAMES:
        name = f"--{parameter.replace('_', '-')}"
    else:
        name = _OTHER_NAMES.get(parameter, f"--set {parameter}")
    return name if value is None or isinstance(value, bool) else f"{name} {shlex.quote(str(value))}"


def hint_text(text: str) -> str:
    """A sentence, its parameter as a flag where it is a hint that names one."""
    from otprop.table.errors import Hint

    return f"{text.before}{flag(text.parameter, text.value)}{text.after}" if isinstance(text, Hint) else text


def error_text(error: BaseException) -> str:
    """The sentence of an error, its parameters as flags."""
    from otprop._validation import ParameterError
    from otprop.files import TableError
    from otprop.table.errors import ColumnError, NoFeaturesError, RequestError

    if isinstance(error, RequestError) and error.has_value:
        return f"{flag(error.parameter)} {error.value}: {hint_text(error.reason)}"
    if isinstance(error, ParameterError):
        space = "" if error.reason.startswith("=") else " "
        return f"{flag(error.parameter)}{space}{hint_text(error.reason)}"
    if isinstance(error, (ColumnError, NoFeaturesError)) and error.hint is not None:
        return f"{error.statement} {hint_text(error.hint)}"
    if isinstance(error, TableError):
        return error.message(flag)
    return str(error)
