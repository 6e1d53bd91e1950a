"""Notes on how the labels were drawn: labelled rows that differ from the others, groups, first rows, new classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from otprop.evidence.shift import Shift
from otprop.files import listed
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.features import ColumnUse

MIN_IMPORTANCE = 0.15  # of a column for telling labelled from unlabelled rows, to be named
MAX_NAMED = 3  # columns
GROUP_ROLES = ("category", "boolean", "text", "number", "left out")  # of columns that may name groups
MAX_COVERED = 0.6  # of the values that random labels would cover: with fewer, the column may be that of groups
MIN_VALUES = 3  # of a column of groups
MIN_ROWS_PER_VALUE = 2.0
MIN_BLOCK = 0.95  # share of the labels that are consecutive rows, to be called so
RANDOM_LABELS = 30  # that settle how large the error is
FEW_GROUPS = 2


def sampling_notes(job: Any) -> list[str]:
    """What a user should know of how the labels were drawn, once the estimator of the job is fitted."""
    fitted = job.estimator
    shift: Shift | None = getattr(fitted, "shift_", None)
    notes: list[str] = []
    if job.groups is not None:
        notes += _note_on_groups(job.groups, job.target.given)
    elif shift is not None and shift.found:
        notes += _note_on_shift(job, shift)
    notes += _note_on_novelty(fitted)
    return notes


def group_values(groups: str | Sequence[Any], table: Any, target: str, given: np.ndarray) -> np.ndarray:
    """The group of each row, from a column or from a value per row."""
    if isinstance(groups, str):
        if groups == target:
            raise RequestError("groups", "is the target; name the column that says which rows belong together.", groups)
        if groups not in table.names:
            raise RequestError("groups", unknown_name("column", groups, table.names), groups)
        values = np.asarray(table.cells(groups), dtype=object)
    else:
        if not hasattr(groups, "__len__") or isinstance(groups, (bytes, dict)):
            what = type(groups).__name__
            raise RequestError("groups", f"must name a column, or be a list with the group of each row; got {what}.")
        values = np.empty(len(groups), dtype=object)
        values[:] = list(groups)
        if len(values) != table.n_rows:
            raise RequestError("groups", f"has {len(values)} values, {table.origin} has {table.n_rows} rows.")
    where = f"the column {groups!r}" if isinstance(groups, str) else "it"
    missing = [row for row in np.flatnonzero(given) if values[row] is None or values[row] != values[row]]
    if missing:
        raise RequestError(
            "groups",
            f"names the group of every labelled row; {where} is empty in {len(missing)} of them, the first being row "
            f"{missing[0] + 1}. Fill them: a row that belongs to no group gets a group of its own.",
        )
    names = [str(value) for value in values]
    if len(set(names)) == 1:
        raise RequestError("groups", f"must tell groups apart; {where} has one value, {names[0]!r}, for all rows.")
    return np.array(names, dtype=object)


def _note_on_shift(job: Any, shift: Shift) -> list[str]:
    given, columns = job.target.given, important_columns(job.columns, shift.importance)
    where = f", most of all in {listed(columns, MAX_NAMED)}" if columns else ""
    rows = _consecutive_rows(np.flatnonzero(given), job.table.n_rows)
    why = f" ({rows})" if rows else ""
    text = (
        f"the labelled rows differ from the others{where}{why}, so that the expected error is a rough estimate with a "
        f"wide range. Label about {RANDOM_LABELS} rows drawn at random to know it better"
    )
    group = None if rows else group_column(job.table, job.columns, given, job.request.target)
    if group is None:
        return [Hint(text + ", or name the groups that were labelled whole with ", "groups")]
    name, n_covered, n_values = group
    cover = f"the labels cover {n_covered} of {n_values} values of {name!r}: if whole groups were labelled, add "
    return [text, Hint(cover, "groups", name)]


def _note_on_groups(groups: np.ndarray, given: np.ndarray) -> list[str]:
    rows = np.flatnonzero(given)
    names = {str(groups[row]) for row in rows}
    if len(names) == len(rows):
        return ["without effect: groups, since each labelled row has its own"]
    if len(names) > FEW_GROUPS:
        return []
    return [
        f"all labels are in {'one group' if len(names) == 1 else 'two groups'}: how wrong the labels of other groups "
        f"are can hardly be told. Label rows of more groups"
    ]


def _note_on_novelty(fitted: Any) -> list[str]:
    share = getattr(fitted, "novel_share_", 0.0)
    if share <= 0:
        return []
    low, high = fitted.novel_range_
    return [
        f"about {share:.0%} of the rows without a label ({low:.0%} to {high:.0%}) look like no class that has one, and "
        f"count as wrong in the expected error. Look at the rows with the highest novelty, and label some"
    ]


def important_columns(columns: Sequence[ColumnUse], importance: np.ndarray) -> list[str]:
    """The columns of the table that tell labelled from unlabelled rows, the most important first."""
    used = [use for use in columns if use.width]
    if sum(use.width for use in used) != len(importance):
        return []
    ends = np.cumsum([use.width for use in used])
    sums = np.array([part.sum() for part in np.split(importance, ends[:-1])])
    order = np.argsort(-sums, kind="stable")[:MAX_NAMED]
    return [used[place].name for place in order if sums[place] >= MIN_IMPORTANCE]


def group_column(
    table: Any, columns: Sequence[ColumnUse], given: np.ndarray, target: str
) -> tuple[str, int, int] | None:
    """The column whose values the labels cover least, the number covered and all; None where none stands out."""
    best: tuple[float, str, int, int] | None = None
    for use in columns:
        if use.role not in GROUP_ROLES or use.name == target or use.name not in table.names:
            continue
        values, number, counts = np.unique(table.cells(use.name).astype(str), return_inverse=True, return_counts=True)
        if len(values) < MIN_VALUES or len(given) / len(values) < MIN_ROWS_PER_VALUE:
            continue
        n_covered = len(np.unique(number[given]))
        expected = _expected_values(counts, int(given.sum()))
        if n_covered < MAX_COVERED * expected and (best is None or n_covered / expected < best[0]):
            best = n_covered / expected, use.name, n_covered, len(values)
    return None if best is None else best[1:]


def _expected_values(counts: np.ndarray, n_labels: int) -> float:
    """How many different values as many rows drawn at random have."""
    n_rows = int(counts.sum())
    left = n_rows - counts
    possible = left >= n_labels
    log_none = (
        gammaln(np.where(possible, left, n_labels) + 1.0)
        - gammaln(np.where(possible, left - n_labels, 0) + 1.0)
        - gammaln(n_rows + 1.0)
        + gammaln(n_rows - n_labels + 1.0)
    )
    return float(len(counts) - np.exp(log_none[possible]).sum())


def _consecutive_rows(rows: np.ndarray, n_rows: int) -> str | None:
    """What to call labels that are nearly all in one run of rows; None where they are not."""
    if len(rows) < 2 or len(rows) > MIN_BLOCK * n_rows:
        return None
    wanted = int(np.ceil(MIN_BLOCK * len(rows)))
    spans = rows[wanted - 1 :] - rows[: len(rows) - wanted + 1] + 1
    place = int(spans.argmin())
    if wanted < MIN_BLOCK * spans[place]:
        return None
    first = int(rows[place])
    return "they are the first rows" if first == 0 else f"they are consecutive, from row {first + 1} on"
