"""What is wrong with a request or a column, as data: the command line alone turns parameters into flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from otprop._errors import OtpropError
from otprop._validation import ParameterError, did_you_mean
from otprop.files import listed

MAX_NAMED = 20
_NOT_GIVEN = object()


class Hint(str):
    """A sentence that mentions a parameter: `before`, the parameter with its value, `after`."""

    before: str
    parameter: str
    value: Any  # None where the parameter alone is meant
    after: str

    def __new__(cls, before: str, parameter: str, value: Any = None, after: str = "") -> Hint:
        """Make the sentence as Python names the parameter."""
        mention = parameter if value is None else f"{parameter}={value!r}"
        made = super().__new__(cls, f"{before}{mention}{after}")
        made.before, made.parameter, made.value, made.after = before, parameter, value, after
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.before, self.parameter, self.value, self.after)


class RequestError(ParameterError):
    """A parameter of a request cannot be used with this table; `has_value` where the sentence names the `value`."""

    def __init__(self, parameter: str, reason: str, value: Any = _NOT_GIVEN) -> None:
        super().__init__(parameter, reason)
        self.has_value = value is not _NOT_GIVEN
        self.value = value if self.has_value else None

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}: {self.reason}" if self.has_value else super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parameter, self.reason, *([self.value] if self.has_value else []))


class CellError(OtpropError, ValueError):
    """A cell is not what its column holds; the message continues after the name of the column."""


class ColumnError(OtpropError, ValueError):
    """A column cannot be used: `statement` is a sentence that names it, `hint` says how to go on."""

    hint: Hint | None

    def __init__(self, column: str, statement: str, hint: Hint | None = None) -> None:
        super().__init__(f"{statement} {hint}" if hint else statement)
        self.column, self.statement, self.hint = column, statement, hint
        self.parameter = getattr(hint, "parameter", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.statement, self.hint)


class NoFeaturesError(OtpropError, ValueError):
    """No column of a table can be used: `reasons` has each with why, `hint` says how to go on."""

    hint: Hint | None

    def __init__(self, reasons: Sequence[str], hint: Hint | None = None) -> None:
        self.reasons, self.hint = list(reasons), hint
        self.parameter = getattr(hint, "parameter", None)
        self.statement = f"no column is left to label by: {listed(reasons, MAX_NAMED, quoted=False)}."
        super().__init__(f"{self.statement} {hint}" if hint else self.statement)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reasons, self.hint)


def unknown_name(kind: str, name: Any, known: Iterable[str], of: str = "") -> str:
    """The sentence on a name that is not known, with the nearest that is, or all of them; `of` is what has them."""
    known = list(known)
    near = did_you_mean(name, known)
    start = f"{of} has no" if of else "there is no"
    return f"{start} {kind} {name!r}" + (near or f"; there are {listed(known, MAX_NAMED)}.")
