"""Votes in a table: columns, or functions of it, with what voters say about the class of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from otprop.files import Table, listed
from otprop.table.errors import RequestError, unknown_name
from otprop.table.target import ClassNames, Target, holds_no_label, read_target

LISTED = 6


def vote_cells(votes: Any, table: Table, target: str, frame: Any = None) -> dict[str, list[Any]]:
    """What each voter says, as it is written; by the name of the voter.

    `votes` names columns, or maps names to values, one per row, or to functions of the frame that return such.
    """
    if votes is not None and not isinstance(votes, (Mapping, list, tuple)):
        what = type(votes).__name__
        raise RequestError("votes", f"must be a list of columns, or a dict of voters and their labels; got {what}.")
    if not votes:
        return {}
    if isinstance(votes, Mapping):
        return {str(name): _values(str(name), given, table, frame) for name, given in votes.items()}
    for name in votes:
        if name not in table.names:
            raise RequestError("votes", unknown_name("column", name, table.names), name)
        if name == target:
            raise RequestError("votes", "is the target itself; name columns beside it.", name)
    if len(set(votes)) < len(votes):
        twice = next(name for name in votes if list(votes).count(name) > 1)
        raise RequestError("votes", "is named twice.", twice)
    return {name: list(table.cells(name)) for name in votes}


def _values(name: str, given: Any, table: Table, frame: Any) -> list[Any]:
    if callable(given):
        rule: Callable[[Any], Any] = given
        given = rule(table.frame(table.names) if frame is None else frame)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RequestError("votes", f"of {name!r} must be one label per row; got {type(given).__name__}.")
    values = list(given)
    if len(values) != table.n_rows:
        raise RequestError("votes", f"of {name!r} are {len(values)}, {table.origin} has {table.n_rows} rows.")
    return values


def classes_by_votes(target: Target, cells: Mapping[str, Sequence[Any]], unlabeled: Sequence[str]) -> Target:
    """A target without any label, with the classes that the voters name."""
    named = [cell for column in cells.values() for cell in column]
    found = read_target(named, target.name, unlabeled, allow_complete=True)
    return Target(target.name, target.codes, found.classes, found.values, target.given, target.notes)


def read_votes(cells: Mapping[str, Sequence[Any]], target: Target, unlabeled: Sequence[str]) -> pd.DataFrame | None:
    """The class number of each vote, NaN where a voter is silent; None without voters.

    A vote names a class as the target does; case, blanks and how a number is written do not matter where one class
    is meant.
    """
    if not cells:
        return None
    return pd.DataFrame({name: _codes(name, column, target, unlabeled) for name, column in cells.items()})


def _codes(name: str, column: Sequence[Any], target: Target, unlabeled: Sequence[str]) -> np.ndarray:
    codes = np.full(len(column), np.nan)
    known: dict[str, int | None] = {}
    for row, cell in enumerate(column):
        if holds_no_label(cell, unlabeled):
            continue
        text = str(cell)
        if text not in known:
            known[text] = _class_of(text, target.classes)
        code = known[text]
        codes[row] = np.nan if code is None else code
    unknown = [text for text, code in known.items() if code is None]
    if unknown:
        n_rows = sum(str(cell) in unknown for cell in column)
        raise RequestError(
            "votes",
            f"of {name!r} hold {listed(unknown, LISTED)} in {n_rows} rows, which no label of {target.name!r} is; the "
            f"classes are {listed(target.classes, LISTED)}. Label a row of that class, or make these votes empty.",
        )
    if not known:
        raise RequestError("votes", f"of {name!r} are empty: this voter is silent on every row. Leave it out.")
    return codes


def _class_of(text: str, classes: Sequence[str]) -> int | None:
    """The number of the class that a vote means; None where none or several could be."""
    same = ClassNames(classes).matching(text)
    if same is None:
        alike = [name for name in classes if _folded(name) == _folded(text)]
        same = alike[0] if len(alike) == 1 else None
    return None if same is None else list(classes).index(same)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
