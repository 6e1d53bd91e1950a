"""Labels from a review or from suggested rows: read, checked against the table, and put into its target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files import NoRowsError, Table, listed, read_table
from otprop.loop.label_issues import LabelIssue
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.frame import is_frame, is_polars, table_of_frame
from otprop.table.target import holds_no_label, same_number

ROW, LABEL, WAS, REASON, DIGEST = "row", "label", "was", "reason", "file_digest"
GIVEN, SUGGESTED, PROBABILITY = "given", "suggested", "probability"
WITH_LABEL = {ROW, LABEL, WAS, GIVEN, SUGGESTED, PROBABILITY, DIGEST}  # of the page's corrections and of label issues
RANDOM = "random"  # the reason of a row that was drawn, and not picked for what it is
LISTED = 6
_YES = {"true", "1", "1.0", "yes", "y", "x", "chosen", "reviewed", "suggested", "corrected", "uncertain", "typical"}
_YES |= {"propagated"}  # labels that a fit gave, filled into the target: no sample of the truth
_NO = {"", "false", "0", "0.0", "no", "n", "drawn", "given", "random", "abstained"}


@dataclass(frozen=True)
class Corrections:
    """Labels by row.

    Attributes
    ----------
    labels : dict of int to label, rows counted from 0
    drawn : set of int, the rows that were drawn at random; the labels of the others are chosen
    notes : list of str
    """

    labels: dict[int, Any] = field(default_factory=dict)
    drawn: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)

    def updated(self, later: Corrections) -> Corrections:
        """These labels and later ones, which replace them; a row keeps how it was picked first."""
        new = later.labels.keys() - self.labels.keys()
        drawn = self.drawn | (later.drawn & new)
        return Corrections({**self.labels, **later.labels}, frozenset(drawn), [*self.notes, *later.notes])


def read_corrections(
    given: Any,
    table: Table,
    target: str,
    parameter: str = "corrections",
    frame: Any = None,
    unlabeled: Sequence[str] = (),
) -> Corrections:
    """The corrections of a table.

    Parameters
    ----------
    given : path, DataFrame, mapping of row to label, Series, or a list of these
        A file or a DataFrame has a column `row`, counted from 1, and the labels in `label` or in a column with the name
        of the target; `reason` ("random": drawn) and `file_digest` where it knows them. The rows of a mapping or a
        Series are named as in the index of `frame`, or counted from 0 where it has none. Empty labels are left out,
        but not all of them may be empty.
    table : Table, which they are of
    target : str
    parameter : str, for messages
    frame : DataFrame that the table was made from, or None
    unlabeled : sequence of str, further texts that mean that there is no label, as in the target

    Returns
    -------
    Corrections
    """
    found: dict[int, Any] = {}
    drawn: set[int] = set()
    notes: list[str] = []
    for part in given if isinstance(given, (list, tuple)) else [given]:
        rows = _rows_of(part, table, target, parameter, frame, notes)
        with_label = [one for one in rows if not holds_no_label(one[1], unlabeled)]
        source = part if isinstance(part, (str, PathLike)) else f"the {type(part).__name__}"
        if rows and not with_label:
            raise RequestError(parameter, f"hold no label: every label of {source} is empty. Fill them in first.")
        if len(with_label) < len(rows):
            n_empty = len(rows) - len(with_label)
            notes.append(f"{source}: {n_empty} of {len(rows)} rows have no label and are not used")
        for row, label, is_drawn in with_label:
            label = label.item() if isinstance(label, np.generic) else label
            if row in found and str(found[row]) != str(label):
                both = f"{str(found[row])!r} and {str(label)!r}"
                raise RequestError(parameter, f"have two labels for row {row + 1} (counted from 1), {both}: keep one.")
            found[row] = label
            if is_drawn:
                drawn.add(row)
    return Corrections(found, frozenset(drawn), notes)


def _rows_of(
    part: Any, table: Table, target: str, parameter: str, frame: Any, notes: list[str]
) -> list[tuple[int, Any, bool]]:
    """Row from 0, label and whether it was drawn, for every label of a file, a DataFrame, a Series or a mapping."""
    if isinstance(part, (str, PathLike)):
        try:
            source = read_table(Path(part))
        except NoRowsError:  # a list of issues where none was found
            notes.append(f"{part} has no rows: no labels are taken from it")
            return []
        return _read_rows(source, table, target, parameter, notes)
    if is_polars(part) and not hasattr(part, "columns"):  # a Series of polars has no index: one label a row
        if len(part) != table.n_rows:
            raise RequestError(
                parameter, f"are a Series of {len(part)} labels; {table.origin} has {table.n_rows} rows."
            )
        return [(row, label, False) for row, label in enumerate(part.to_list())]
    if is_frame(part):
        source = table_of_frame(part, f"the DataFrame of {parameter}")
        return _read_rows(source, table, target, parameter, notes)
    if isinstance(part, Mapping):
        names, labels = list(part), list(part.values())
    elif hasattr(part, "iloc"):
        names, labels = list(part.index), list(part)
    else:
        raise RequestError(
            parameter,
            "must say which row gets which label: a mapping such as {17: 'Elstar'}, a Series, a DataFrame, a file, or "
            f"a list of these; got {part!r} of type {type(part).__name__}.",
        )
    places = _positions(names, frame, parameter)
    rows = places if places is not None else [_checked_row(name, 0, table, parameter) for name in names]
    return [(row, label, False) for row, label in zip(rows, labels, strict=True)]


def _read_rows(
    source: Table, table: Table, target: str, parameter: str, notes: list[str]
) -> list[tuple[int, Any, bool]]:
    """The same, for every row of a table of corrections."""
    names = set(source.names)
    column = LABEL if LABEL in names and (names <= WITH_LABEL or target not in names) else target
    if ROW not in names or column not in names or column == ROW:
        raise RequestError(
            parameter,
            f"must have a column {ROW!r} and their labels in {LABEL!r} or {target!r}; {source.origin} has "
            f"{listed(source.names)}.",
        )
    digests = {str(cell).strip() for cell in source.cells(DIGEST) if cell is not None} if DIGEST in names else set()
    if digests - {table.digest, ""}:
        raise RequestError(
            parameter,
            f"do not belong here: {source.origin} was made from another file than {table.origin}, or from an earlier "
            "state of it, for the contents differ. Give what was labelled, unchanged.",
        )
    if not digests and source.path is not None:
        notes.append(f"{source.origin} does not say which file it is for ({DIGEST} is missing): not checked")
    reasons = source.cells(REASON) if REASON in names and column != REASON else [None] * source.n_rows
    where = f" in {source.origin}" if source.path is not None else ""
    rows = [_checked_row(cell, 1, table, parameter, where) for cell in source.cells(ROW)]
    drawn = [str(reason).strip() == RANDOM for reason in reasons]
    return list(zip(rows, source.cells(column).tolist(), drawn, strict=True))


def has_index(frame: Any) -> bool:
    """Whether rows are named by the index of this frame: one of pandas, and not a file or a frame of polars."""
    return frame is not None and hasattr(frame, "index")


def _positions(names: list[Any], frame: Any, parameter: str) -> list[int] | None:
    """Rows from 0 of entries of the frame's index; None where rows are counted and not named."""
    if not has_index(frame):
        return None
    if not frame.index.is_unique:
        raise RequestError(
            parameter,
            "cannot name rows by the index of the DataFrame, which has equal entries. Give a DataFrame with a column "
            f"{ROW!r}, counted from 1, and a column {LABEL!r}.",
        )
    places = {entry: place for place, entry in enumerate(frame.index)}
    unknown = [repr(name) for name in names if name not in places]
    if unknown:
        text = listed(unknown, LISTED, quoted=False)
        raise RequestError(parameter, f"name rows that the index of the DataFrame does not have: {text}.")
    return [places[name] for name in names]


def _checked_row(cell: Any, first: int, table: Table, parameter: str, where: str = "") -> int:
    """The row from 0, of a number that counts from `first`; `where` it stands, for messages."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = float("nan")
    row = int(number) - first if number.is_integer() else -1
    if isinstance(cell, (bool, np.bool_)) or not 0 <= row < table.n_rows:
        start = "1, without the header" if first else "0"
        raise RequestError(
            parameter,
            f"name the row {cell!r}{where}: {table.origin} has {table.n_rows} rows, counted from {start}.",
        )
    return row


def corrected_cells(
    cells: np.ndarray, corrections: Corrections, target: str, parameter: str = "corrections"
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The cells of the target (None: unlabelled) with the corrections in them, which of these are new, and notes."""
    known = {str(_plain(cell)): cell for cell in cells if cell is not None}
    kinds = {type(_plain(cell)) for cell in known.values()}
    new_cells, corrected = cells.copy(), np.zeros(len(cells), dtype=bool)
    new_classes: list[str] = []
    replaced: list[int] = []
    rewritten: dict[str, str] = {}
    given = list(known)
    for row, label in corrections.labels.items():
        text = str(label)
        if text not in known and (same := same_number(text, given)) is not None:
            known[text] = known[same]
            rewritten[text] = same
        elif text not in known:
            known[text] = _as_cell(label, kinds, row, target, parameter)
            if str(known[text]) not in {str(cell) for name, cell in known.items() if name != text}:
                new_classes.append(text)
        corrected[row] = str(cells[row]) != str(known[text])
        if corrected[row] and cells[row] is not None:
            replaced.append(row + 1)
        new_cells[row] = known[text]
    notes = list(corrections.notes)
    if new_classes and kinds:
        notes.append(f"labels of the corrections that {target!r} does not have: {listed(new_classes, LISTED)}")
    if rewritten and kinds == {str}:  # numbers of a typed column are not written in one way or another
        pairs = [f"{text!r} is {same!r}" for text, same in rewritten.items()]
        notes.append(f"labels of the corrections are matched as numbers: {listed(pairs, LISTED, quoted=False)}")
    return new_cells, corrected, [*notes, *_note_on_replaced(replaced)]


def _note_on_replaced(replaced: Sequence[int]) -> list[str]:
    if replaced:
        rows = listed(list(map(str, sorted(replaced))), LISTED, quoted=False)
        start = (
            f"corrections replace the given label of rows {rows} (counted from 1); the cells stay as they are without "
        )
        return [Hint(start, "fill")]
    return []


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _as_cell(label: Any, kinds: set[type], row: int, target: str, parameter: str) -> Any:
    """A new label in the type of the others."""
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
    if kind in (int, float, bool):
        raise RequestError(
            parameter,
            f"have the label {label!r} for row {row + 1} (counted from 1); {target!r} holds {kind.__name__}s.",
        )
    return str(label)


def issues_to_correct(issues: Sequence[LabelIssue], table: Table) -> Any:
    """A DataFrame of label issues with an empty label to fill in, in the shape that corrections have."""
    import pandas as pd  # optional, and slow to import

    columns = {
        ROW: [issue.row + 1 for issue in issues],
        LABEL: pd.Series([None] * len(issues), dtype=object),
        GIVEN: [str(issue.given) for issue in issues],
        SUGGESTED: [str(issue.suggested) for issue in issues],
        PROBABILITY: [round(issue.probability, 6) for issue in issues],
        DIGEST: [table.digest] * len(issues),
    }
    return pd.DataFrame(columns)


def chosen_rows(chosen: str | Sequence[Any], table: Table) -> np.ndarray:
    """Which labels were picked: from truth values, one a row, or from a column that says so."""
    named = isinstance(chosen, str)
    if isinstance(chosen, str):
        if chosen not in table.names:
            raise RequestError("chosen", unknown_name("column", chosen, table.names), chosen)
        cells: Iterable[Any] = table.cells(chosen)
    else:
        cells = chosen
        if len(chosen) != table.n_rows:
            raise RequestError("chosen", f"has {len(chosen)} values, {table.origin} has {table.n_rows} rows.")
    texts = ["" if cell is None or cell != cell else str(cell).strip().lower() for cell in cells]
    unknown = sorted(set(texts) - _YES - _NO)
    if unknown:
        where = f"the column {chosen!r}" if named else "it"
        raise RequestError(
            "chosen",
            "must tell chosen labels (true, 1, yes, chosen, reviewed) from drawn ones (false, 0, no, drawn, or empty); "
            f"{where} holds {listed(unknown, LISTED)}.",
        )
    return np.array([text in _YES for text in texts])
