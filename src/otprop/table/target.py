"""The target column: which cells are labels, which are empty, and what about them a user should know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from otprop.files import MISSING_MARKERS, listed
from otprop.table.errors import ColumnError, Hint

DOUBTFUL_WORDS = {
    *("?", "??", "-", "--", ".", "-1", "-1.0", "none", "na", "n.a.", "nil", "unknown", "unlabeled", "unlabelled"),
    *("missing", "tbd", "todo"),
}
SOME_NUMBERS, MANY_NUMBERS = 10, 50  # more different numbers than these, each in few rows: measurements
ROWS_A_NUMBER = {SOME_NUMBERS: 2, MANY_NUMBERS: 3}
MAX_RATINGS = 20  # different numbers with fractions among them: 0.5 to 10 in halves are classes, more are measurements
MIN_LETTERS = 5  # of labels that differ by a typing error
MIN_IN_CORRECTION, MIN_SWAPPED = 4, 3  # the same for a label of a correction, and where two letters are swapped
TIMES_AS_RARE = 3  # a label with a typing error, compared with the right one
FEW_LEFT = 0.1  # of the rows, and one class has most of the others: it may be a mark for unlabelled rows
LISTED = 6
_NO_EFFECT = "without effect: "
_TRUTH = {True: ("yes", "true", "y", "t"), False: ("no", "false", "n", "f")}


@dataclass(frozen=True)
class Target:
    """The labels of a table."""

    name: str  # of the column
    codes: np.ndarray  # the class number of each row; -1 where unlabelled
    classes: list[str]  # in order
    values: list[Any]  # the classes as they stand in the file, for writing them back
    given: np.ndarray  # which rows have a label
    notes: list[str]  # what a user should know


def read_target(
    cells: Iterable[Any],
    name: str,
    unlabeled: Sequence[str] = (),
    *,
    merge: bool = False,
    numeric_classes: bool = False,
    allow_few: bool = False,
    allow_complete: bool = False,
) -> Target:
    """Read the labels of a column.

    A cell is unlabelled where it is null, NaN, empty or blank, or holds one of `otprop.files.MISSING_MARKERS` (NA, N/A,
    NaN, NULL, None and their like), written so, as in all other columns (a class may well be called "none"); and where
    it holds one of `unlabeled`. Anything else is a label, as written: "1" and "1.0" are two labels, -1 and "?" are
    labels. Notes name labels that look like a marker, and markers that were found.

    Parameters
    ----------
    cells : iterable of str or None, or of native values
    name : str, of the column, for messages
    unlabeled : sequence of str, further texts that mark an unlabelled cell; a number is compared as a number
    merge : bool, labels that differ only in case, blanks, how a number is written or one typing error become one class
    numeric_classes : bool, numbers are classes even where they look like measurements: hardly any repeats, or many
        are fractions
    allow_few : bool, accept a target without labels, or with one class
    allow_complete : bool, every row may have a label

    Returns
    -------
    Target
    """
    cells = list(cells)
    if not cells:
        raise ColumnError(name, f"the target {name!r} has no cells: the table has no rows.")
    found = _different(cells, name)
    empty = {key for key in found if holds_no_label(key, unlabeled)}
    labels = _in_order({key: text for key, text in found.items() if key not in empty})
    number = {key: code for code, key in enumerate(labels)}
    codes = np.fromiter((number.get(_key(cell), -1) for cell in cells), dtype=np.intp, count=len(cells))
    classes = [found[key] for key in labels]
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    alike = _alike(classes, counts)
    notes = [_note_on(name, how, group, merge) for how, group in alike]
    if merge and alike:
        codes, kept = _merged(codes, classes, counts, [group for _, group in alike])
        classes, labels = [classes[code] for code in kept], [labels[code] for code in kept]
        counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    if not allow_few:
        _refuse_few(name, classes, counts, len(cells))
    if not allow_complete and counts.sum() == len(cells):
        statement = f"the target {name!r} has a label in every row: nothing is left to do."
        raise ColumnError(name, statement, _suspect(classes, counts, len(cells)))
    if not numeric_classes:
        _refuse_measurements(name, classes, counts)
    words = sorted({found[key].strip() for key in empty} & set(MISSING_MARKERS) - set(unlabeled))
    notes = _notes(name, classes, counts, words, notes) + _suspicion(classes, counts, len(cells))
    notes += _without_effect(name, found, unlabeled)
    return Target(name, codes, classes, labels, codes >= 0, notes)


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
        kind = next(type(cell).__name__ for cell in cells if _key(cell).__hash__ is None)
        statement = f"the target {name!r} holds cells of type {kind}; labels are text or numbers."
        raise ColumnError(name, statement) from None
    return {key: "" if key is None else str(key) for key in keys}


def holds_no_label(cell: Any, unlabeled: Sequence[str]) -> bool:
    """Whether a cell is empty, or holds one of the words for that."""
    key = _key(cell)
    text = "" if key is None else str(key)
    if not text.strip() or text.strip() in MISSING_MARKERS or text in unlabeled or text.strip() in unlabeled:
        return True
    return isinstance(key, Real) and any(as_number(word) == key for word in unlabeled)


def _without_effect(name: str, found: dict[Any, str], unlabeled: Sequence[str]) -> list[str]:
    """Notes on markers that no cell holds."""
    there = {text.strip() for key, text in found.items() if key is not None}
    numbers = {as_number(text) for text in there} - {None}
    return [
        Hint(_NO_EFFECT, "unlabeled", word, f", as no cell of {name!r} holds it")
        for word in dict.fromkeys(unlabeled)
        if word.strip() not in there and as_number(word) not in numbers
    ]


def is_without_effect(note: str) -> TypeGuard[Hint]:
    """Whether a note says that no cell of the target holds a marker."""
    return isinstance(note, Hint) and note.parameter == "unlabeled" and note.before == _NO_EFFECT


def as_number(word: str) -> float | None:
    """Text as a number, or None."""
    try:
        return float(word)
    except ValueError:
        return None


class ClassNames:
    """The classes that labels of a user are matched to; each is read once, however many labels there are."""

    def __init__(self, classes: Iterable[str]) -> None:
        self._names = dict.fromkeys(classes)
        self._by_number = _by_number(self._names)
        self._by_truth: dict[bool, list[str]] = {True: [], False: []}
        self._by_length: dict[int, list[tuple[str, str]]] = {}
        for name in self._names:
            folded = _folded(name)
            self._by_length.setdefault(len(folded), []).append((folded, name))
            for truth, words in _TRUTH.items():
                if name.strip().lower() in words:
                    self._by_truth[truth].append(name)

    def matching(self, label: Any) -> str | None:
        """The class that a label means: the same text, the same number ("0" for 0.0), or Yes for True; else None."""
        key = _key(label)
        if (text := str(key)) in self._names:
            return text
        same = self._by_number.get(as_number(text))
        if same is None and isinstance(key, bool):
            meant = self._by_truth[key]
            same = meant[0] if len(meant) == 1 else None
        return same

    def mistyped(self, text: str) -> str | None:
        """The class that a new label looks like a typing error of; None where none is near."""
        if as_number(text) is not None:
            return None
        folded = _folded(text)
        for length in (len(folded), len(folded) - 1, len(folded) + 1):
            for other, name in self._by_length.get(length, []):
                swapped = len(folded) >= MIN_SWAPPED and sorted(folded) == sorted(other)
                # "Yess": a changed letter may make another word, as in cat and bat
                one_more = len(folded) != len(other)
                least = MIN_SWAPPED if swapped or one_more else MIN_IN_CORRECTION
                if folded == other or _is_typing_error(folded, other, least):
                    return name
        return None


def _by_number(classes: Iterable[str]) -> dict[float | None, str]:
    """The classes by their values, without those that share one; empty if a class is not a number."""
    found: dict[float | None, str] = {}
    twice: set[float | None] = set()
    for name in dict.fromkeys(classes):
        value = as_number(name)
        if value is None:
            return {}
        if value in found:
            twice.add(value)
        found[value] = name
    return {value: name for value, name in found.items() if value not in twice}


def _in_order(labels: dict[Any, str]) -> list[Any]:
    """Numbers by size, also those written as text; anything else by its letters."""
    numbers = {key: as_number(text) for key, text in labels.items()}
    if any(value is None or value != value for value in numbers.values()):
        return sorted(labels, key=lambda key: labels[key])
    return sorted(labels, key=lambda key: (numbers[key], labels[key]))


def _refuse_few(name: str, classes: list[str], counts: np.ndarray, n_rows: int) -> None:
    target = f"the target {name!r}"
    if not classes:
        statement = f"{target} has no label in any of its {_rows(n_rows)}: label some rows of each class first;"
        raise ColumnError(name, f"{statement} `otprop suggest` proposes rows.")
    if len(classes) == 1:
        one = f"{target} has one class only ({classes[0]!r}, {_rows(counts[0])})"
        raise ColumnError(name, f"{one}; label rows of at least one other class.")


def _refuse_measurements(name: str, classes: list[str], counts: np.ndarray) -> None:
    if classes and _are_measurements(classes, counts):
        raise ColumnError(
            name,
            f"the target {name!r} has {len(classes)} different numbers in {counts.sum()} labelled rows, such as "
            f"{classes[0]} and {classes[1]}: a measurement, not classes? Name another column, or put the numbers into "
            "groups first;",
            Hint("where each number is a class, use ", "numeric_classes", after="."),
        )


def _are_measurements(classes: list[str], counts: np.ndarray) -> bool:
    """Whether all labels are numbers, and most of them in few rows, or many with fractions among them."""
    numbers = [number for text in classes if (number := as_number(text)) is not None]
    if len(numbers) < len(classes):
        return False
    if len(classes) > MAX_RATINGS and not all(number.is_integer() for number in numbers):
        return True
    return any(len(classes) > many and counts.mean() < rows for many, rows in ROWS_A_NUMBER.items())


def _suspect(classes: list[str], counts: np.ndarray, n_rows: int) -> Hint:
    """What to do where no row is unlabelled: the class that may mean just that, if one looks so."""
    doubtful = [code for code, text in enumerate(classes) if _is_doubtful(text)]
    code = doubtful[0] if doubtful else int(counts.argmax())
    if not doubtful and 2 * counts[code] <= n_rows:
        return Hint("If some of the labels mean 'unlabelled', name them with ", "unlabeled", after=".")
    word = classes[code].strip()
    return Hint(f"If {word!r} ({counts[code]} of {n_rows} rows) marks unlabelled rows, add ", "unlabeled", word, ".")


def _suspicion(classes: list[str], counts: np.ndarray, n_rows: int) -> list[str]:
    """A note where one class has most rows and hardly any row is left."""
    if not classes:
        return []
    code = int(counts.argmax())
    if n_rows - counts.sum() > FEW_LEFT * n_rows or 2 * counts[code] <= n_rows or _is_doubtful(classes[code]):
        return []
    word = classes[code].strip()
    return [Hint(f"{word!r} has {counts[code]} of {n_rows} rows: if it marks unlabelled rows, add ", "unlabeled", word)]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _is_doubtful(text: str) -> bool:
    return text.strip().lower() in DOUBTFUL_WORDS


def _notes(
    name: str, classes: list[str], counts: np.ndarray, words: list[str], on_spelling: Sequence[str]
) -> list[str]:
    notes = [f"cells of {name!r} with {listed(words, LISTED)} count as unlabelled"] if words else []
    notes += on_spelling
    single = [text for text, count in zip(classes, counts, strict=True) if count == 1]
    if single:
        notes.append(f"labels of {name!r} with a single row: {listed(single, LISTED)}; more rows would help")
    for text, count in zip(classes, counts, strict=True):
        if _is_doubtful(text):
            taken = f"{text.strip()!r} ({_rows(count)}) is taken as a class of {name!r}"
            notes.append(Hint(f"{taken}; if it marks unlabelled rows, add ", "unlabeled", text.strip()))
    return notes


def _note_on(name: str, how: str, group: list[str], merged: bool) -> str:
    start = f"labels of {name!r} that differ only in {how}: {listed(group, LISTED)}; they are "
    if merged:
        return f"{start}one class now"
    return Hint(f"{start}separate classes; to make them one, use ", "merge_labels")


def _alike(classes: list[str], counts: np.ndarray) -> list[tuple[str, list[str]]]:
    """Groups of labels that may mean the same, each with how they differ; the most frequent label first."""
    count = dict(zip(classes, counts.tolist(), strict=True))
    found = []
    for how, key in (("case or blanks", _folded), ("how a number is written", as_number)):
        groups: dict[Any, list[str]] = {}
        for text in classes:
            if (value := key(text)) is not None:
                groups.setdefault(value, []).append(text)
        found += [(how, group) for group in groups.values() if len(group) > 1]
    by_length: dict[int, list[tuple[str, str]]] = {}
    for text in classes:
        by_length.setdefault(len(_folded(text)), []).append((_folded(text), text))
    for length, same in by_length.items():
        others = [pair for near in (length - 1, length, length + 1) for pair in by_length.get(near, [])]
        for folded, text in same:
            frequent = (pair for pair in others if count[text] * TIMES_AS_RARE <= count[pair[1]])
            near = [other for other_folded, other in frequent if _is_typing_error(folded, other_folded)]
            if near:
                found.append(("a typing error", [max(near, key=lambda other: count[other]), text]))
    return found


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_typing_error(a: str, b: str, least: int = MIN_LETTERS) -> bool:
    """Whether two words of at least `least` letters differ by one letter, or by a swap of two neighbours."""
    a, b = sorted((a, b), key=len)
    if a == b or len(a) < least or len(b) - len(a) > 1:
        return False
    start = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    a, b = a[start:], b[start:]
    if len(a) < len(b):
        return a == b[1:] and b[0].isalpha()
    swapped = a[:2] == b[1::-1] and a[2:] == b[2:]
    return (swapped or a[1:] == b[1:]) and (a[0] + b[0]).isalpha()


def _merged(
    codes: np.ndarray, classes: list[str], counts: np.ndarray, groups: Sequence[Sequence[str]]
) -> tuple[np.ndarray, list[int]]:
    """New class numbers with each group as one class, its most frequent label; and the old numbers of these."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    number = {text: code for code, text in enumerate(classes)}
    links = np.array([(number[group[0]], number[text]) for group in groups for text in group[1:]])
    graph = coo_matrix((np.ones(len(links)), links.T), (len(classes), len(classes)))
    merged = connected_components(graph, directed=False)[1]
    frequent = np.argsort(-counts, kind="stable")
    leader = frequent[np.unique(merged[frequent], return_index=True)[1]]  # the most frequent label of each
    kept = np.sort(leader)
    return np.append(np.searchsorted(kept, leader[merged]), -1)[codes], kept.tolist()
