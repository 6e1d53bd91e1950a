"""Parameters as flags: the one place that turns errors and hints into sentences of the command line."""

from __future__ import annotations

import shlex
from typing import Any

_OTHER_NAMES = {
    "costs": "--cost",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "settings": "--set",
    "output": "-o",
    "path": "-o",
    "model": "--save",
    "n": "-n",
    "goal": "--goal",
}
_SAME_NAMES = {
    *("abstain_below", "chosen", "class_prior", "corrections", "decimal", "delimiter", "embedding"),
    *("encoding", "excel_safe", "features", "fill", "force", "format", "graph", "groups", "ignore", "image_model"),
    *("jobs", "labels", "landmarks", "map", "max_bytes", "merge_labels", "method", "metric", "new_classes"),
    *("numeric_classes", "objective", "prefix", "probabilities", "quote", "random_share", "report", "rescue"),
    *("sample", "scheduler", "seed", "session", "sheet", "target", "text_model", "unlabeled", "use_rep"),
    *("vectors", "votes", "votes_file"),
}


def flag(parameter: str, value: Any = None) -> str:
    """The option of a parameter, with its value; `--set NAME` for a parameter of a method."""
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
