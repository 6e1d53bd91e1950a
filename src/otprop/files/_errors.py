"""Errors in a user's file, as data: which file, column and arguments they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

from otprop._errors import OtpropError


def _python_argument(name: str, value: Any) -> str:
    return name if value is None else f"{name}={value!r}"


class TableError(OtpropError, ValueError):
    """A file that the user named cannot be read or written; the message is one line.

    Parameters
    ----------
    problem : str
        What is wrong.
    advice : str
        What to do about it, with ``{}`` for each of the `arguments`.
    file : str, path or None
        The file that cannot be read or written.
    column : str or None
        The column that the problem is in.
    arguments : sequence of (str, object)
        Arguments of `read_table`, `Table.write` or `write_atomic` that help, each with the value to pass; None for a
        value that only the user knows.

    Attributes
    ----------
    argument, parameter : str or None
        The name of the first of the `arguments`.
    hint : str or None
        The advice, with the arguments as Python names them.

    Examples
    --------
    >>> from otprop.files import TableError, read_table
    >>> try:
    ...     read_table("no_such_file.csv")
    ... except TableError as error:
    ...     print(error.file, "cannot be read")
    no_such_file.csv cannot be read
    """

    def __init__(
        self,
        problem: str,
        advice: str = "",
        *,
        file: str | PathLike[str] | None = None,
        column: str | None = None,
        arguments: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self.problem, self.advice, self.column = problem, advice, column
        self.file = None if file is None else str(file)
        self.arguments = tuple(arguments)
        self.parameter = self.argument
        self.hint = self._advice(_python_argument) or None
        super().__init__(self.message())

    @property
    def argument(self) -> str | None:
        """The name of the first of the `arguments`."""
        return self.arguments[0][0] if self.arguments else None

    def message(self, spell: Callable[[str, Any], str] = _python_argument) -> str:
        """The whole sentence.

        Parameters
        ----------
        spell : callable of (str, object)
            How an argument and its value are written: ``encoding='cp1252'`` unless given.

        Returns
        -------
        str
        """
        if not self.advice:
            return self.problem if self.problem.endswith((".", "?")) else f"{self.problem}."
        return f"{self.problem}; {self._advice(spell)}."

    def _advice(self, spell: Callable[[str, Any], str]) -> str:
        return self.advice.format(*(spell(*argument) for argument in self.arguments))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.problem, self.advice, self.file, self.column, self.arguments)


class NoRowsError(TableError):
    """A file has no rows, but perhaps column names.

    Examples
    --------
    >>> from io import BytesIO
    >>> from otprop.files import NoRowsError, read_table
    >>> try:
    ...     read_table(BytesIO(b"weight,kind"), format="csv", origin="lots.csv")
    ... except NoRowsError as error:
    ...     print(error)
    lots.csv has column names but no rows.
    """


def _rebuild(kind: type[TableError], problem: str, advice: str, file: Any, column: Any, arguments: Any) -> TableError:
    return kind(problem, advice, file=file, column=column, arguments=arguments)


def file_error(
    file: str | PathLike[str], problem: str, advice: str = "", column: str | None = None, **arguments: Any
) -> TableError:
    """The error of a file, whose name comes before the problem; `arguments` are those that help, with their values."""
    between = "" if problem.startswith(":") else " "
    return TableError(f"{file}{between}{problem}", advice, file=file, column=column, arguments=tuple(arguments.items()))


def one_line(error: BaseException) -> str:
    """The message of another library's error, cut to one line without a full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = text.strip().splitlines()
    return (lines[0].strip().rstrip(".") if lines else type(error).__name__)[:200]


def listed(names: Iterable[object], most: int = 8, quoted: bool = True) -> str:
    """Names for a message: "'a', 'b' and 3 more".

    Parameters
    ----------
    names : iterable
    most : int, how many are named
    quoted : bool, put quotes around each

    Returns
    -------
    str

    Examples
    --------
    >>> from otprop.files import listed
    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(name) if quoted else str(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more
