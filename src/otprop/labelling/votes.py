"""Votes in a table: columns, or functions of it, with what voters say about the class of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import numpy as np
import pandas as pd

from otprop._validation import ParameterError
from otprop._votes import MAX_VOTERS, check_probabilities
from otprop.files import Table, listed, read_table
from otprop.labelling.corrections import checked_row
from otprop.labelling.outcome import counted
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.frame import is_frame, table_of_frame
from otprop.table.target import ClassNames, Target, holds_no_label, is_without_effect, read_target

LISTED = 6
MIN_CLASS_COLUMNS = 2  # that start with the name of a voter who gives probabilities
LONG_VOTER = ("annotator", "voter", "worker", "rater", "user")  # columns of a long file, the first of them that exists
LONG_LABEL = ("label", "vote")  # or the name of the target
LONG_ROW = "row"  # counted from 1; or a column that the table has, too
MAX_CELLS, CELLS_PER_VOTE = 100_000_000, 100  # rows x annotators of a long file, at least, and for each of its votes


@dataclass(frozen=True)
class VoteCells:
    """What each voter says, as it is written."""

    labels: dict[str, list[Any]] = field(default_factory=dict)  # by voter, one cell per row
    # by voter and by the text that names a class, one cell per row
    probabilities: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)  # those of the table that hold votes

    def __bool__(self) -> bool:
        return bool(self.labels or self.probabilities)


def vote_cells(votes: Any, table: Table, target: str, frame: Any = None, votes_file: Any = None) -> VoteCells:
    """What each voter says, by the name of the voter.

    `votes` names columns, or the beginning of columns with a probability per class, or maps names to values, one per
    row, or to functions of the frame that return such; if it is empty, the annotators of the table vote, where it has
    some. `votes_file` is a table of row, annotator and label.
    """
    found = VoteCells()
    if votes is None or (isinstance(votes, (Mapping, list, tuple)) and not votes):
        votes = table.annotators.get(target, ())
    if votes is not None and not isinstance(votes, (Mapping, list, tuple)):
        what = type(votes).__name__
        raise RequestError("votes", f"must be a list of columns, or a dict of voters and their labels; got {what}.")
    if isinstance(votes, Mapping):
        for name, given in votes.items():
            if str(name) in found.labels or str(name) in found.probabilities:
                raise RequestError("votes", "is named twice.", str(name))
            _add_values(str(name), given, table, frame, found)
    elif votes is not None:
        _check_names(votes, target)
        for name in votes:
            _add_column(name, table, target, found)
    if votes_file is not None:
        for name, cells in _long_votes(votes_file, table, target).items():
            if name in found.labels or name in found.probabilities:
                raise RequestError(
                    "votes_file", f"has an annotator {name!r}, and so have the votes. Rename one of them."
                )
            found.labels[name] = cells
    return found


def _check_names(names: Sequence[str], target: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise RequestError("votes", f"must be names of columns; got {type(name).__name__} among them.")
        if name == target:
            raise RequestError("votes", "names the target; name other columns.", name)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise RequestError("votes", "is named twice.", twice)


def _add_column(name: str, table: Table, target: str, found: VoteCells) -> None:
    """Add a voter by the name of its column, or by the beginning of the names of its columns."""
    if name in table.names:
        found.labels[name] = list(table.cells(name))
        found.columns.append(name)
        return
    columns = [column for column in table.names if name and column.startswith(name) and column != target]
    if len(columns) < MIN_CLASS_COLUMNS:
        raise RequestError("votes", unknown_name("column", name, table.names), name)
    voter = name.rstrip("_-.: ") or name
    found.probabilities[voter] = {column[len(name) :]: list(table.cells(column)) for column in columns}
    found.columns.extend(columns)


def _add_values(name: str, given: Any, table: Table, frame: Any, found: VoteCells) -> None:
    """Add a voter by its values, or by a function that returns them."""
    if callable(given):
        rule: Callable[[Any], Any] = given
        try:
            given = rule(table.frame(table.names) if frame is None else frame)
        except Exception as error:
            raise RequestError(
                "votes",
                f"of {name!r}: the function raised {type(error).__name__}: {error}. It is called once, with the whole "
                "DataFrame, and returns one label per row.",
            ) from error
    if hasattr(given, "columns"):
        if len(set(given.columns)) < len(given.columns) or not len(given.columns):
            raise RequestError("votes", f"of {name!r} must have one column of probabilities for each class.")
        found.probabilities[name] = {str(column): _values(name, given[column], table) for column in given.columns}
    else:
        found.labels[name] = _values(name, given, table)


def _values(name: str, given: Any, table: Table) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping, Set)) or not isinstance(given, Iterable):
        raise RequestError("votes", f"of {name!r} must be one label per row; got {type(given).__name__}.")
    values = list(given)
    if len(values) != table.n_rows:
        raise RequestError("votes", f"of {name!r} are {len(values)}, {table.origin} has {table.n_rows} rows.")
    return values


def _long_votes(given: Any, table: Table, target: str) -> dict[str, list[Any]]:
    """The votes of each annotator of a file or DataFrame with a line for each row and annotator."""
    if isinstance(given, (str, PathLike)):
        if not str(given):
            raise RequestError("votes_file", "is empty; name a file.")
        long = read_table(fspath(given))
    elif is_frame(given):
        long = table_of_frame(given, "the DataFrame of votes_file")
    else:
        raise RequestError("votes_file", f"must be a file or a DataFrame; got {type(given).__name__}.")
    voter, label = _long_column(long, LONG_VOTER, "annotator"), _long_column(long, (*LONG_LABEL, target), "label")
    rows = _long_rows(long, table, {voter, label, target})
    n_voters = len({str(who) for who in long.cells(voter)})
    if n_voters > MAX_VOTERS or n_voters * table.n_rows > max(MAX_CELLS, CELLS_PER_VOTE * len(rows)):
        raise RequestError(
            "votes_file",
            f"has {n_voters:,} different values of {voter!r} in {len(rows):,} votes, too many for {table.n_rows:,} "
            f"rows: that column names who voted, at most {MAX_VOTERS:,} voters.",
        )
    found: dict[str, list[Any]] = {}
    for line, (row, who, cell) in enumerate(zip(rows, long.cells(voter), long.cells(label), strict=True), start=1):
        if holds_no_label(who, ()):
            raise RequestError("votes_file", f"has no {voter} in its row {line}. Fill it in, or delete the row.")
        cells = found.setdefault(str(who), [None] * table.n_rows)
        if holds_no_label(cell, ()):
            continue
        if cells[row] is not None and str(cells[row]) != str(cell):
            both = f"{str(cells[row])!r} and {str(cell)!r}"
            raise RequestError("votes_file", f"has two labels of {who!r} for row {row + 1}, {both}. Keep one.")
        cells[row] = cell
    return found


def _long_column(long: Table, names: Sequence[str], what: str) -> str:
    by_name = {name.casefold(): name for name in long.names}
    for name in names:
        if name.casefold() in by_name:
            return by_name[name.casefold()]
    raise RequestError(
        "votes_file",
        f"has no column of the {what}: it is called one of {listed(names, LISTED)}; {long.origin} has "
        f"{listed(long.names, LISTED)}.",
    )


def _long_rows(long: Table, table: Table, others: set[str]) -> list[int]:
    """The row of the table, from 0, of each line: by `row`, or by a column that both have."""
    shared = [name for name in long.names if name in table.names and name not in others]
    if LONG_ROW in long.names and LONG_ROW not in table.names:
        return [checked_row(cell, 1, table, "votes_file", f" in {long.origin}") for cell in long.cells(LONG_ROW)]
    if len(shared) != 1:
        what = f"it shares {listed(shared, LISTED)} with it" if shared else "it shares no column with it"
        raise RequestError(
            "votes_file",
            f"does not say which row of {table.origin} is meant: {what}. Give a column {LONG_ROW!r}, counted from 1, "
            "or one column that tells the rows of both apart.",
        )
    keys = [str(cell) for cell in table.cells(shared[0])]
    places = {key: row for row, key in enumerate(keys)}
    if len(places) < len(keys):
        raise RequestError(
            "votes_file",
            f"names rows by {shared[0]!r}, and rows of {table.origin} have it in common: give {LONG_ROW!r}.",
        )
    wanted = [str(cell) for cell in long.cells(shared[0])]
    unknown = list(dict.fromkeys(key for key in wanted if key not in places))
    if unknown:
        raise RequestError(
            "votes_file",
            f"has votes on {listed(unknown, LISTED)}, which {shared[0]!r} of {table.origin} does not have.",
        )
    return [places[key] for key in wanted]


def classes_by_votes(target: Target, cells: VoteCells, unlabeled: Sequence[str], *, allow_few: bool = False) -> Target:
    """A target without any label, with the classes that the voters name; one of them is enough with `allow_few`."""
    named = [cell for column in cells.labels.values() for cell in column]
    named += [text for columns in cells.probabilities.values() for text in columns]
    found = read_target(named, target.name, unlabeled, allow_complete=True, allow_few=True)
    if len(found.classes) == 1 and not allow_few:
        raise RequestError(
            "votes",
            f"are all of one class, {found.classes[0]!r}, and {target.name!r} has no label. Label rows of at least two "
            "classes; `otprop suggest` proposes rows.",
        )
    return Target(target.name, target.codes, found.classes, found.values, target.given, target.notes)


def notes_beside_votes(notes: Sequence[str], cells: VoteCells) -> list[str]:
    """Notes on the target without those that call a marker without effect which votes hold."""
    given = [cell for column in cells.labels.values() for cell in column if not holds_no_label(cell, ())]

    def is_wrong(note: str) -> bool:
        return is_without_effect(note) and any(holds_no_label(cell, [note.value]) for cell in given)

    return [note for note in notes if not is_wrong(note)]


def read_votes(cells: VoteCells, target: Target, unlabeled: Sequence[str]) -> dict[str, Any] | None:
    """By the name of the voter, the class number of each vote, NaN where silent, or a DataFrame of probabilities.

    A vote names a class as the target does; case, blanks and how a number is written do not matter where one class
    is meant. None without voters.
    """
    if not cells:
        return None
    found: dict[str, Any] = {name: _codes(name, column, target, unlabeled) for name, column in cells.labels.items()}
    for name, columns in cells.probabilities.items():
        found[name] = pd.DataFrame(_probabilities(name, columns, target))  # its columns are the class numbers
    return found


def hard_votes(votes: Mapping[str, Any] | None) -> pd.DataFrame | None:
    """The class number of each vote, a column per voter; the most probable class where a voter gives probabilities."""
    if votes is None:
        return None
    return pd.DataFrame({name: given if given.ndim == 1 else _most_probable(given) for name, given in votes.items()})


def _most_probable(probabilities: pd.DataFrame) -> np.ndarray:
    values = probabilities.to_numpy()
    return np.where(np.isnan(values[:, 0]), np.nan, np.nan_to_num(values).argmax(axis=1))


def _probabilities(name: str, columns: Mapping[str, Sequence[Any]], target: Target) -> np.ndarray:
    """Probabilities of all classes from the cells of some, NaN where all cells of a row are empty."""
    classes = _VoteClasses(target.classes)
    numbers = [classes.number(text) for text in columns]
    unknown = [text for text, number in zip(columns, numbers, strict=True) if number is None]
    if unknown:
        what = "is not a class" if len(unknown) == 1 else "are not classes"
        raise RequestError(
            "votes",
            f"of {name!r} have a probability for {listed(unknown, LISTED)}, which {what} of {target.name!r}; the "
            f"classes are {listed(target.classes, LISTED)}.",
        )
    if len(set(numbers)) < len(numbers):
        raise RequestError("votes", f"of {name!r} have two columns for one class: {listed(list(columns), LISTED)}.")
    values = np.column_stack([_numbers(name, text, column) for text, column in columns.items()])
    found = np.zeros((len(values), len(target.classes)))
    found[:, [number for number in numbers if number is not None]] = values
    found[np.isnan(values).all(axis=1)] = np.nan
    try:
        found = check_probabilities(found, repr(name))
    except ParameterError as error:
        raise RequestError("votes", error.reason) from error
    if np.isnan(found).all():
        raise RequestError("votes", f"of {name!r} are empty: this voter has no vote. Remove it.")
    return found


def _numbers(name: str, text: str, column: Sequence[Any]) -> np.ndarray:
    found = np.full(len(column), np.nan)
    for row, cell in enumerate(column):
        if holds_no_label(cell, ()):
            continue
        try:
            found[row] = float(cell)
        except (TypeError, ValueError) as error:
            raise RequestError(
                "votes", f"of {name!r} for {text!r} have {cell!r} in row {row + 1}, which is not a probability."
            ) from error
    return found


def _codes(name: str, column: Sequence[Any], target: Target, unlabeled: Sequence[str]) -> np.ndarray:
    codes = np.full(len(column), np.nan)
    known: dict[str, int | None] = {}
    unknown: dict[str, int] = {}  # to the number of rows
    classes = _VoteClasses(target.classes)
    for row, cell in enumerate(column):
        if holds_no_label(cell, unlabeled):
            continue
        text = str(cell)
        if text not in known:
            known[text] = classes.number(text)
        code = known[text]
        if code is None:
            unknown[text] = unknown.get(text, 0) + 1
        else:
            codes[row] = code
    if unknown:
        rows = counted(sum(unknown.values()), "row")
        what = "is not a class" if len(unknown) == 1 else "are not classes"
        hint = Hint(
            f"of {name!r} hold {listed(unknown, LISTED)} in {rows}, which {what} of {target.name!r}; the classes are "
            f"{listed(target.classes, LISTED)}. Label a row of that class, make these votes empty, or, if they mean "
            "no vote, add ",
            "unlabeled",
            next(iter(unknown)) if len(unknown) == 1 else None,
            ".",
        )
        raise RequestError("votes", hint)
    if not known:
        raise RequestError("votes", f"of {name!r} are empty: this voter has no vote. Remove it.")
    return codes


class _VoteClasses:
    """The classes that votes are matched to; each is read once, however many votes there are."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._names = ClassNames(classes)
        self._numbers = {name: number for number, name in enumerate(classes)}
        self._alike: dict[str, list[int]] = {}
        for name, number in self._numbers.items():
            self._alike.setdefault(_folded(name), []).append(number)

    def number(self, text: str) -> int | None:
        """The number of the class that a vote means; None where none or several could be."""
        same = self._names.matching(text)
        if same is not None:
            return self._numbers[same]
        alike = self._alike.get(_folded(text), [])
        return alike[0] if len(alike) == 1 else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
