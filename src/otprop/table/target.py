"""The target column: which cells are labels, which are empty, and what about them a user should know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from otprop.files import MISSING_MARKERS, listed

DOUBTFUL_WORDS = {
    *("?", "??", "-", "--", ".", "-1", "-1.0", "none", "na", "n.a.", "nil", "unknown", "unlabeled", "unlabelled"),
    *("missing", "tbd", "todo"),
}
MANY_NUMBERS = 50  # different numbers, each in few rows: a measurement
ROWS_A_NUMBER = 3
SOME_DECIMALS = 10  # different numbers that are not whole, nearly all of them in one row: a measurement, too
NEARLY_ALL = 0.8
FEW_LEFT = 0.1  # of the rows, and one class has most of the others: it may be a mark for unlabelled rows
LISTED = 6


@dataclass(frozen=True)
class Target:
    """The labels of a table.

    Attributes
    ----------
    name : str, of the column
    codes : ndarray of int, shape (n_rows,), the class number of each row; -1 where unlabelled
    classes : list of str, in order
    values : list, the classes as they stand in the file, for writing them back
    given : ndarray of bool, shape (n_rows,), the row has a label
    notes : list of str, what a user should know
    """

    name: str
    codes: np.ndarray
    classes: list[str]
    values: list[Any]
    given: np.ndarray
    notes: list[str]


def read_target(cells: Iterable[Any], name: str, unlabeled: Sequence[str] = ()) -> Target:
    """Read the labels of a column.

    A cell is unlabelled where it is null, NaN, empty or blank, or holds one of `otprop.files.MISSING_MARKERS` (NA, N/A,
    NaN, NULL, None and their like), written so, as in all other columns (a class may well be called "none"); and where
    it holds what `unlabeled` names, which adds to these. Anything else is a label, as written: "1" and "1.0" are two
    labels, -1 and "?" are labels. Where a label looks like a marker, or a word was taken for one, a note says so.

    Parameters
    ----------
    cells : iterable of str or None, or of native values
    name : str, of the column, for messages
    unlabeled : sequence of str, further texts that mark an unlabelled cell; a number is compared as a number

    Returns
    -------
    Target
    """
    cells = list(cells)
    if not cells:
        raise ValueError(f"the target {name!r} has no cells: the table has no rows.")
    found = _different(cells, name)
    empty = {key for key, text in found.items() if _is_empty(key, text, unlabeled)}
    labels = _in_order({key: text for key, text in found.items() if key not in empty})
    number = {key: code for code, key in enumerate(labels)}
    codes = np.fromiter((number.get(_key(cell), -1) for cell in cells), dtype=np.intp, count=len(cells))
    classes = [found[key] for key in labels]
    given = codes >= 0
    counts = np.bincount(codes[given], minlength=len(classes))
    _refuse(name, classes, counts, len(cells))
    words = sorted({found[key].strip() for key in empty} & set(MISSING_MARKERS) - set(unlabeled))
    notes = _notes(name, classes, counts, words) + _suspicion(classes, counts, len(cells))
    notes += _without_effect(name, found, unlabeled)
    return Target(name, codes, classes, labels, given, notes)


def _key(cell: Any) -> Any:
    """One value for all that are the same label; None for a null of any kind."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell):
        return None
    return cell


def _different(cells: list[Any], name: str) -> dict[Any, str]:
    """Every different value, as text."""
    try:
        keys = dict.fromkeys(_key(cell) for cell in cells)
    except TypeError:
        example = next(cell for cell in cells if _key(cell).__hash__ is None)
        raise ValueError(
            f"the target {name!r} holds cells of type {type(example).__name__}; labels are text or numbers."
        ) from None
    return {key: "" if key is None else str(key) for key in keys}


def _is_empty(key: Any, text: str, unlabeled: Sequence[str]) -> bool:
    if not text.strip() or text.strip() in MISSING_MARKERS or text in unlabeled or text.strip() in unlabeled:
        return True
    return isinstance(key, Real) and any(_as_number(word) == key for word in unlabeled)


def _without_effect(name: str, found: dict[Any, str], unlabeled: Sequence[str]) -> list[str]:
    """Notes on markers that no cell holds."""
    there = {text.strip() for key, text in found.items() if key is not None}
    numbers = {_as_number(text) for text in there} - {None}
    return [
        f"without effect: --unlabeled {word!r}; no cell of {name!r} says so"
        for word in dict.fromkeys(unlabeled)
        if word.strip() not in there and _as_number(word) not in numbers
    ]


def _as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _in_order(labels: dict[Any, str]) -> list[Any]:
    """Numbers by size, also those written as text; anything else by its letters."""
    numbers = {key: _as_number(text) for key, text in labels.items()}
    if any(value is None or value != value for value in numbers.values()):
        return sorted(labels, key=lambda key: labels[key])
    return sorted(labels, key=lambda key: (numbers[key], labels[key]))


def _refuse(name: str, classes: list[str], counts: np.ndarray, n_rows: int) -> None:
    if not classes:
        raise ValueError(
            f"the target {name!r} has no label in any of its {n_rows} rows: label some of each class by hand first."
        )
    if len(classes) == 1:
        raise ValueError(
            f"the target {name!r} has one class only ({classes[0]!r}, {counts[0]} rows): "
            "at least two are needed; label some rows of another."
        )
    if counts.sum() == n_rows:
        raise ValueError(
            f"the target {name!r} has a label in every row: nothing is left to do. {_suspect(classes, counts, n_rows)}"
        )
    numbers = [_as_number(text) for text in classes]
    if None not in numbers and _is_measurement([number for number in numbers if number is not None], counts):
        raise ValueError(
            f"the target {name!r} has {len(classes)} different numbers in {counts.sum()} labelled rows, such as "
            f"{classes[0]} and {classes[1]}: a measurement, not classes. Name another column, or put the numbers "
            "into groups first."
        )


def _is_measurement(numbers: list[float], counts: np.ndarray) -> bool:
    if len(numbers) > MANY_NUMBERS and counts.mean() < ROWS_A_NUMBER:
        return True
    decimals = sum(number % 1 != 0 for number in numbers)
    return decimals >= max(SOME_DECIMALS, len(numbers) / 2) and len(numbers) >= NEARLY_ALL * counts.sum()


def _suspect(classes: list[str], counts: np.ndarray, n_rows: int) -> str:
    """What to do where no row is unlabelled: the class that may mean just that, if one looks so."""
    doubtful = [code for code, text in enumerate(classes) if _is_doubtful(text)]
    code = doubtful[0] if doubtful else int(counts.argmax())
    if not doubtful and 2 * counts[code] <= n_rows:
        return "If some of the labels mean 'unlabelled', name them with --unlabeled."
    word = classes[code].strip()
    return f"If {word!r} ({counts[code]} of {n_rows} rows) marks unlabelled rows, add --unlabeled {word!r}."


def _suspicion(classes: list[str], counts: np.ndarray, n_rows: int) -> list[str]:
    """A note where one class has most rows and hardly any row is left."""
    code = int(counts.argmax())
    if n_rows - counts.sum() > FEW_LEFT * n_rows or 2 * counts[code] <= n_rows or _is_doubtful(classes[code]):
        return []
    word = classes[code].strip()
    return [f"{word!r} has {counts[code]} of {n_rows} rows: if it marks unlabelled rows, add --unlabeled {word!r}"]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _is_doubtful(text: str) -> bool:
    return text.strip().lower() in DOUBTFUL_WORDS


def _notes(name: str, classes: list[str], counts: np.ndarray, words: list[str]) -> list[str]:
    notes = []
    if words:
        notes.append(f"cells of {name!r} with {listed(words, LISTED)} count as unlabelled")
    for how, same in (("case or blanks", _folded), ("how a number is written", _as_number)):
        for group in _alike(classes, same):
            notes.append(
                f"labels of {name!r} that differ only in {how}: {listed(group, LISTED)}; they are separate classes"
            )
    single = [text for text, count in zip(classes, counts, strict=True) if count == 1]
    if single:
        notes.append(f"labels of {name!r} with a single row: {listed(single, LISTED)}; more rows would help")
    for text, count in zip(classes, counts, strict=True):
        if _is_doubtful(text):
            word = text.strip()
            notes.append(
                f"{word!r} ({_rows(count)}) is taken as a class of {name!r}; if it marks unlabelled rows, "
                f"add --unlabeled {word!r}"
            )
    return notes


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _alike(classes: list[str], same: Any) -> list[list[str]]:
    groups: dict[Any, list[str]] = {}
    for text in classes:
        key = same(text)
        if key is not None:
            groups.setdefault(key, []).append(text)
    return [group for group in groups.values() if len(group) > 1]
