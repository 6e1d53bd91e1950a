"""The labels of a table: those of its target, and those from a review or suggested rows, checked against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from otprop._validation import did_you_mean
from otprop.files import NoRowsError, Table, listed, read_table
from otprop.loop.label_issues import LabelIssue
from otprop.table.columns import shown
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.frame import is_frame, is_polars, table_of_frame
from otprop.table.target import ClassNames, Target, holds_no_label, read_target

if TYPE_CHECKING:
    from otprop.labelling.job import Request

ROW, LABEL, WAS, REASON, DIGEST = "row", "label", "was", "reason", "file_digest"
GIVEN, SUGGESTED, PROBABILITY = "given", "suggested", "probability"
WITH_LABEL = {ROW, LABEL, WAS, GIVEN, SUGGESTED, PROBABILITY, DIGEST}  # of the page's corrections and of label issues
RANDOM = "random"  # the reason of a row that was drawn, and not picked for what it is
LISTED = 6
LIKE_A_COLUMN = 0.75  # similarity of names from which on a target that does not exist is taken for a mistake


@dataclass(frozen=True)
class Corrections:
    """Labels by row, counted from 0."""

    labels: dict[int, Any] = field(default_factory=dict)
    drawn: frozenset[int] = frozenset()  # the rows that were drawn at random; the labels of the others are chosen
    notes: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # the rows as the user named them, for messages
    parameter: str = "corrections"  # where the last of them came from, for messages

    def name(self, row: int) -> str:
        """A row as the user named it."""
        return self.names.get(row, _from_1(row))

    def updated(self, later: Corrections) -> Corrections:
        """These labels and later ones, which replace them; a row keeps how it was picked first."""
        new = later.labels.keys() - self.labels.keys()
        drawn = self.drawn | (later.drawn & new)
        names, notes = {**self.names, **later.names}, [*self.notes, *later.notes]
        return Corrections({**self.labels, **later.labels}, drawn, notes, names, later.parameter)


def _from_1(row: int) -> str:
    return f"{row + 1} (counted from 1)"


def read_corrections(
    given: Any,
    table: Table,
    target: str,
    parameter: str = "corrections",
    frame: Any = None,
    unlabeled: Sequence[str] = (),
) -> Corrections:
    """The corrections of a table: of a path, DataFrame, mapping of row to label, Series, or a list of these.

    A file or a DataFrame has the labels in `label` or in a column with the name of the target, and names its rows by a
    column `row`, counted from 1, or by an index of the name `index_name`; `reason` ("random": drawn) and `file_digest`
    where it knows them. The rows of such an index, of a mapping and of a Series are named as in the index of `frame`,
    the DataFrame that the table was made from, or counted from 0 if it has none. Empty labels, or those that one of
    `unlabeled` stands for, are skipped, but not all of them may be empty. `parameter` is for messages.
    """
    reader = _Reader(table, target, parameter, frame)
    found: dict[int, Any] = {}
    drawn: set[int] = set()
    names: dict[int, str] = {}
    for part in given if isinstance(given, (list, tuple)) else [given]:
        if part is not given and not _names_rows(part):
            raise reader.no_rows_named(given)
        rows = reader.rows_of(part)
        with_label = [one for one in rows if not holds_no_label(one[1], unlabeled)]
        name = part if isinstance(part, (str, PathLike)) else f"the {type(part).__name__}"
        if rows and not with_label:
            raise reader.error(f"hold no label: every label of {name} is empty. Fill them in first.")
        if len(with_label) < len(rows):
            n_empty = len(rows) - len(with_label)
            reader.notes.append(f"{name}: {n_empty} of {len(rows)} rows have no label and are not used")
        counted = isinstance(part, (str, PathLike)) or ROW in getattr(part, "columns", ())
        for row, label, is_drawn in with_label:
            names[row] = _from_1(row) if counted else repr(frame.index[row]) if has_index(frame) else str(row)
            label = _plain(label)
            if type(label).__hash__ is None:  # a list, a mapping, a set or an array
                what = type(label).__name__
                raise reader.error(f"have a label of type {what} for row {names[row]}; labels are text or numbers.")
            if row in found and str(found[row]) != str(label):
                both = f"{str(found[row])!r} and {str(label)!r}"
                raise reader.error(f"have two labels for row {names[row]}, {both}: keep one.")
            found[row] = label
            if is_drawn:
                drawn.add(row)
    return Corrections(found, frozenset(drawn), reader.notes, names, parameter)


@dataclass(frozen=True)
class _Reader:
    """Reads corrections of a table: row from 0, label, and whether it was drawn."""

    table: Table
    target: str
    parameter: str
    frame: Any
    notes: list[str] = field(default_factory=list)

    def error(self, reason: str) -> RequestError:
        return RequestError(self.parameter, reason)

    def no_rows_named(self, given: Any) -> RequestError:
        return self.error(
            "must say which row gets which label: a mapping such as {17: 'Elstar'}, a Series, a DataFrame, a file, or "
            f"a list of these; got {shown(given)} of type {type(given).__name__}."
        )

    def rows_of(self, part: Any) -> list[tuple[int, Any, bool]]:
        """Those of a file, a DataFrame, a Series or a mapping."""
        if isinstance(part, (str, PathLike)):
            try:
                return self._of_table(read_table(Path(part)))
            except NoRowsError:  # a list of issues where none was found
                self.notes.append(f"{part} has no rows: no labels are taken from it")
                return []
        if is_polars(part) and not hasattr(part, "columns"):  # a Series of polars has no index: one label per row
            if len(part) != self.table.n_rows:
                raise self.error(
                    f"are a Series of {len(part)} labels; {self.table.origin} has {self.table.n_rows} rows."
                )
            return [(row, label, False) for row, label in enumerate(part.to_list())]
        if is_frame(part):
            given = table_of_frame(part, f"the DataFrame of {self.parameter}")
            named = has_index(part) and part.index.name == index_name(self.frame, self.table)
            return self._of_table(given, list(part.index) if named else None)
        if isinstance(part, Mapping):
            names, labels = list(part), list(part.values())
        elif hasattr(part, "iloc"):
            names, labels = list(part.index), list(part)
        else:
            raise self.no_rows_named(part)
        return [(row, label, False) for row, label in zip(self._named_rows(names), labels, strict=True)]

    def _named_rows(self, names: list[Any]) -> list[int]:
        return named_rows(names, self.frame, self.table, self.parameter)

    def _of_table(self, given: Table, index: list[Any] | None = None) -> list[tuple[int, Any, bool]]:
        """Those of a table of corrections; `index` names its rows, where it was a DataFrame."""
        table, names, by_index = self.table, set(given.names), index_name(self.frame, self.table)
        column = self._label_column(given)
        known = ROW in names or index is not None or by_index in names
        if not known or column not in names or column == ROW:
            raise self.error(
                f"must have their labels in {LABEL!r} or {self.target!r}, and a column {ROW!r} counted from 1 or an "
                f"index {by_index!r}; {given.origin} has {listed(given.names)}."
            )
        digests = {str(cell).strip() for cell in given.cells(DIGEST) if cell is not None} if DIGEST in names else set()
        if digests - {table.digest, ""}:
            raise self.error(
                f"do not belong here: {given.origin} was made from another file than {table.origin}, or from an "
                "earlier state of it: the contents differ. Pass the same table as before, unchanged."
            )
        if not digests and given.path is not None:
            self.notes.append(f"{given.origin} does not say which file it is for ({DIGEST} is missing): not checked")
        if ROW in names:
            where = f" in {given.origin}" if given.path is not None else ""
            rows = [checked_row(cell, 1, table, self.parameter, where) for cell in given.cells(ROW)]
        elif by_index in names:  # a file that was written with its index, or a frame of polars
            rows = self._named_rows(given.cells(by_index).tolist())
        else:
            rows = self._named_rows(index or [])
        reasons = given.cells(REASON) if REASON in names and column != REASON else [None] * given.n_rows
        drawn = [str(reason).strip() == RANDOM for reason in reasons]
        return list(zip(rows, given.cells(column).tolist(), drawn, strict=True))

    def _label_column(self, given: Table) -> str:
        """The column of a table of corrections that holds the labels."""
        names, target = set(given.names), self.target
        if LABEL not in names or target not in names or target == LABEL:
            return LABEL if LABEL in names and target != ROW and target not in names else target
        if names <= WITH_LABEL:
            return LABEL
        filled = [not all(holds_no_label(cell, ()) for cell in given.cells(name)) for name in (target, LABEL)]
        if filled == [False, True]:
            if LABEL not in self.table.names:  # the user's own column, next to the target to fill in
                return LABEL
            raise self.error(
                f"hold no label: {target!r} of {given.origin} is empty. Put the labels there, not in {LABEL!r}."
            )
        return target


def _names_rows(part: Any) -> bool:
    """Whether an entry of a list can hold corrections; a word is a label, and not the name of a file."""
    if isinstance(part, str):
        return bool(Path(part).suffix) or Path(part).exists()
    return isinstance(part, (PathLike, Mapping)) or hasattr(part, "iloc") or is_polars(part)


def has_index(frame: Any) -> bool:
    """Whether rows are named by the index of this frame: one of pandas, and not a file or a frame of polars."""
    return frame is not None and hasattr(frame, "index")


def index_name(frame: Any, table: Table) -> str:
    """The name of the index of rows of this table, or of the column in its place: that of the frame, or "index"."""
    name = frame.index.name if has_index(frame) else None
    if isinstance(name, str) and name not in (*table.names, ROW, LABEL):
        return name
    return next(name for name in ("index", "row_index", "otprop_index") if name not in table.names)


def named_rows(names: list[Any], frame: Any, table: Table, parameter: str) -> list[int]:
    """Rows from 0 of entries of the frame's index; of numbers that count from 0, where it has none."""
    if not has_index(frame):
        return [checked_row(name, 0, table, parameter) for name in names]
    if not frame.index.is_unique:
        raise RequestError(
            parameter,
            "cannot name rows by the index of the DataFrame, which has equal entries. Give a DataFrame with a column "
            f"{ROW!r}, counted from 1, and a column {LABEL!r}.",
        )
    places = {entry: place for place, entry in enumerate(frame.index)}
    texts = {str(entry): place for entry, place in places.items()}
    places = texts if all(isinstance(name, str) and name in texts for name in names) else places  # from a text file
    unknown = [repr(name) for name in names if name not in places]
    if unknown:
        text = listed(unknown, LISTED, quoted=False)
        raise RequestError(parameter, f"name rows that the index of the DataFrame does not have: {text}.")
    return [places[name] for name in names]


def checked_row(cell: Any, first: int, table: Table, parameter: str, where: str = "") -> int:
    """The row from 0, of a number that counts from `first`; `where` it stands, for messages."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = float("nan")
    row = int(number) - first if number.is_integer() else -1
    if isinstance(cell, (bool, np.bool_)) or not 0 <= row < table.n_rows:
        start = "1, without the header" if first else "0"
        verb = "name" if parameter.endswith("s") else "names"
        raise RequestError(
            parameter,
            f"{verb} the row {cell!r}{where}: {table.origin} has {table.n_rows} rows, counted from {start}.",
        )
    return row


def labels_of(
    table: Table, request: Request, corrections: Corrections, allow_few: bool, allow_complete: bool
) -> tuple[Target, np.ndarray, np.ndarray, list[str]]:
    """The labels of the table and the corrections, which rows have one in the table, which a new one, and notes."""
    cells, notes = _target_cells(table, request.target, may_be_new=bool(corrections.labels) or allow_few)
    options: dict[str, Any] = {"merge": request.merge_labels, "numeric_classes": request.numeric_classes}
    read = partial(read_target, name=request.target, unlabeled=request.unlabeled)
    if not corrections.labels:
        target = read(cells, **options, allow_few=allow_few, allow_complete=allow_complete)
        return target, target.given, np.zeros(table.n_rows, dtype=bool), notes + corrections.notes
    before = read(cells, numeric_classes=True, allow_few=True, allow_complete=True)
    cells[~before.given] = None
    new_classes = request.new_classes or request.merge_labels
    cells, corrected, more = corrected_cells(cells, corrections, request.target, new_classes)
    target = read(cells, **options, allow_few=allow_few, allow_complete=True)
    return target, before.given, corrected & target.given, notes + more


def _target_cells(table: Table, name: str, *, may_be_new: bool) -> tuple[np.ndarray, list[str]]:
    """The cells of the target, all empty where it is a new column, and notes."""
    if name in table.names:
        return table.cells(name).copy(), []
    if name in table.unread:
        why = table.unread[name]
        raise RequestError("target", why if why.endswith(".") else f"{why}. Save it as text or numbers.", name)
    if not may_be_new:
        raise RequestError("target", unknown_name("column", name, table.names), name)
    if did_you_mean(name, table.names, cutoff=LIKE_A_COLUMN):
        why = f"{unknown_name('column', name, table.names)} A new column must be less like it."
        raise RequestError("target", why, name)
    return np.full(table.n_rows, None, dtype=object), [f"{table.origin} has no column {name!r} yet"]


def corrected_cells(
    cells: np.ndarray, corrections: Corrections, target: str, new_classes: bool = False
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The cells of the target (None: unlabelled) with the corrections in them, which of these are new, and notes.

    A label that looks like a typing error of a class is refused, unless `new_classes`.
    """
    known = {str(_plain(cell)): cell for cell in cells if cell is not None}
    kinds = {type(_plain(cell)) for cell in known.values()}
    new_cells, corrected = cells.copy(), np.zeros(len(cells), dtype=bool)
    unknown: list[str] = []
    replaced: list[int] = []
    rewritten: dict[str, str] = {}
    given, written = ClassNames(known), {str(cell) for cell in known.values()}
    for row, label in corrections.labels.items():
        text = str(label)
        if text not in known and (same := given.matching(label)) is not None:
            known[text] = known[same]
            rewritten[text] = same
        elif text not in known:
            name = corrections.name(row)
            meant = None if new_classes else given.mistyped(text)
            if meant is not None:
                start = (
                    f"have the label {text!r} for row {name}, which {target!r} does not have; did you mean {meant!r}?"
                )
                hint = Hint(f"{start} To make it a class, use ", "new_classes", True, ".")
                raise RequestError(corrections.parameter, hint)
            known[text] = _as_cell(label, kinds)
            if known[text] is None:
                kind = next(iter(kinds)).__name__
                raise RequestError(
                    corrections.parameter, f"have the label {label!r} for row {name}; {target!r} holds {kind}s."
                )
            if str(known[text]) not in written:
                unknown.append(text)
                written.add(str(known[text]))
        corrected[row] = str(cells[row]) != str(known[text])
        if corrected[row] and cells[row] is not None:
            replaced.append(row)
        new_cells[row] = known[text]
    notes = list(corrections.notes)
    if unknown and kinds:
        notes.append(f"labels of the corrections that {target!r} does not have: {listed(unknown, LISTED)}")
    if rewritten and kinds == {str}:  # numbers of a typed column are not written in one way or another
        pairs = [f"{text!r} is {same!r}" for text, same in rewritten.items()]
        notes.append(f"labels of the corrections are matched to the classes: {listed(pairs, LISTED, quoted=False)}")
    return new_cells, corrected, [*notes, *_note_on_replaced(replaced, corrections)]


def _note_on_replaced(replaced: Sequence[int], corrections: Corrections) -> list[str]:
    if not replaced:
        return []
    names, tail = [corrections.name(row) for row in sorted(replaced)], " (counted from 1)"
    counted = tail if all(name.endswith(tail) for name in names) else ""  # said once
    rows = listed([name.removesuffix(counted) for name in names], LISTED, quoted=False) + counted
    return [Hint(f"corrections replace the given label of rows {rows}; the cells stay as they are without ", "fill")]


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _as_cell(label: Any, kinds: set[type]) -> Any:
    """A new label in the type of the others; None where that cannot hold it."""
    kind = next(iter(kinds)) if len(kinds) == 1 else str if kinds else type(label)
    if isinstance(label, kind) and isinstance(label, bool) == (kind is bool):
        return label
    if kind in (int, float):
        try:
            number = float(label)
            if kind is float or number.is_integer():
                return kind(number)
        except (TypeError, ValueError):
            pass
    return None if kind in (int, float, bool) else str(label)


def issues_to_correct(issues: Sequence[LabelIssue], table: Table, index: Any = None) -> Any:
    """A DataFrame of label issues with an empty label to fill in, in the shape that corrections have.

    `index` names the rows in Python; without it, a column `row` counts them from 1, and labels are text.
    """
    import pandas as pd  # optional, and slow to import

    write = str if index is None else _plain
    columns = {
        **({ROW: [issue.row + 1 for issue in issues]} if index is None else {}),
        LABEL: np.full(len(issues), None, dtype=object),
        GIVEN: [write(issue.given) for issue in issues],
        SUGGESTED: [write(issue.suggested) for issue in issues],
        PROBABILITY: [round(issue.probability, 6) for issue in issues],
        DIGEST: [table.digest] * len(issues),
    }
    return pd.DataFrame(columns, index=index)
