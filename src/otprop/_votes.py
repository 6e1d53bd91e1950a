"""Votes: labels by voters that err, such as a language model, annotators or rules; what they are, and
how good, judged by labels or, with Dawid and Skene's model, by their agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv, softmax

from otprop._labels import class_list, class_numbers, encode_given_labels
from otprop._saving import saved_as
from otprop._validation import ParameterError, is_missing

SILENT = -1  # the code of a voter that does not vote on a row
MAX_VOTERS = 1000
MAX_PROBABILITY_SUM = 1.02  # of a row, which rounding may exceed


@dataclass(frozen=True)
class Votes:
    """Votes as class numbers."""

    codes: np.ndarray  # of shape (n_rows, n_voters), -1 where a voter is silent; the most probable class
    names: list[str]  # of the voters
    # by the number of the voter, of those who give a probability per class; NaN where one is silent
    probabilities: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def spoken(self) -> np.ndarray:
        """Whether each voter voted on each row."""
        return np.asarray(self.codes != SILENT)


@saved_as("votes.voter", nan=("accuracy",))
@dataclass(frozen=True)
class Voter:
    """How often a voter is right, judged by labelled rows.

    Attributes
    ----------
    name : str
    accuracy : float, share of the labelled rows on which it voted that it got right; NaN where there is none
    low, high : float, the 90 % interval of the real accuracy; 0 and 1 where it cannot be judged
    n_judged : int, labelled rows on which it voted
    n_votes : int, rows on which it voted
    by_class : dict of class to Voter, the same for the rows of one class; classes without such a row are missing

    Examples
    --------
    >>> from otprop import OTP
    >>> X, y = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None]
    >>> model = OTP().fit(X, y, votes=[["a"], ["b"], ["a"], ["b"], ["b"], [None]])
    >>> voter = model.voters_[0]
    >>> voter.accuracy, voter.n_judged, voter.n_votes
    (0.75, 4, 5)
    >>> voter.by_class["b"].accuracy
    1.0
    """

    name: str
    accuracy: float
    low: float
    high: float
    n_judged: int
    n_votes: int
    by_class: dict[Any, Voter] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbabilityVotes:
    """What a voter says that gives a probability per class."""

    name: str
    values: np.ndarray  # of shape (n_rows, n_columns)
    labels: list[Any] | None  # the class of each column; None: all classes in order

    def of_classes(self, classes: np.ndarray) -> np.ndarray:
        """Probabilities of all classes, NaN where the voter is silent; raises ParameterError."""
        numbers = np.arange(self.values.shape[1])
        if self.labels is not None:
            numbers = np.asarray(class_numbers(_as_classes(np.array(self.labels, dtype=object), classes), classes))
            if (numbers < 0).any():
                raise _unknown_class(self.name, self.labels[int(np.argmin(numbers))], classes, "have a column for")
        elif len(numbers) != len(classes):
            raise ParameterError(
                "votes",
                f"of {self.name} have {len(numbers)} columns of probabilities, and there are {len(classes)} classes: "
                f"{_some(class_list(classes))}. Give one column per class in this order, or a DataFrame whose columns "
                "are named after the classes.",
            )
        found = np.zeros((len(self.values), len(classes)))
        found[:, numbers] = check_probabilities(self.values, self.name)
        return found


def check_probabilities(values: np.ndarray, name: str) -> np.ndarray:
    """Probabilities that sum to one in each row, all NaN where the voter is silent: its row is empty or zero."""
    silent = np.isnan(values).all(axis=1) | (values == 0).all(axis=1)
    total = np.nansum(values, axis=1)
    with np.errstate(invalid="ignore"):
        wrong = ~silent & ~((values >= 0).all(axis=1) & (total <= MAX_PROBABILITY_SUM))
    if wrong.any():
        row = int(np.argmax(wrong))
        numbers = ", ".join(f"{value:g}" for value in values[row][:8])
        raise ParameterError(
            "votes",
            f"of {name} are not probabilities in {int(wrong.sum())} rows; row {row} has {numbers}. Give numbers from 0 "
            "to 1 for all classes that sum to at most 1, or leave all of them empty.",
        )
    return np.where(silent[:, None], np.nan, values / np.where(silent, 1.0, total)[:, None])


def read_votes(votes: Any, classes: np.ndarray, n_rows: int, marker: Any = None) -> Votes:
    """Votes as class numbers.

    `votes` are of shape (n_rows, n_voters), or (n_rows,) for one voter, or a mapping: labels of `classes`; None, NaN,
    NA, NaT or the marker of unlabelled rows where a voter is silent. A mapping has for the name of each voter its
    labels, one per row, or probabilities of shape (n_rows, n_classes); see `voter_columns`. Refuses votes that have
    another number of rows, are silent throughout, or hold a class that no label has.
    """
    columns = voter_columns(votes, n_rows)
    codes = np.full((n_rows, len(columns)), SILENT, dtype=np.intp)
    probabilities: dict[int, np.ndarray] = {}
    for number, (name, column) in enumerate(columns):
        if isinstance(column, ProbabilityVotes):
            probabilities[number] = column.of_classes(classes)
            spoken = np.flatnonzero(~np.isnan(probabilities[number][:, 0]))
            codes[spoken, number] = probabilities[number][spoken].argmax(axis=1)
        else:
            spoken = np.flatnonzero(~_missing(column, marker))
            codes[spoken, number] = class_numbers(_as_classes(column[spoken], classes), classes)
        if len(spoken) == 0:
            raise ParameterError("votes", f"of {name} are empty: the voter has no vote. Remove it.")
        unknown = spoken[codes[spoken, number] < 0]
        if len(unknown) and not isinstance(column, ProbabilityVotes):
            rows = f"({len(unknown)} rows, the first of them row {unknown[0]})"
            raise _unknown_class(name, column[unknown[0]], classes, "hold", rows)
    return Votes(codes, [name for name, _ in columns], probabilities)


def _unknown_class(name: str, label: Any, classes: np.ndarray, verb: str, rows: str = "") -> ParameterError:
    return ParameterError(
        "votes",
        f"of {name} {verb} {label!r}{' ' if rows else ''}{rows}, which no labelled row has. The classes are "
        f"{_some(class_list(classes))}. Label a row of that class, or make these votes empty.",
    )


def voter_columns(votes: Any, n_rows: int) -> list[tuple[str, np.ndarray | ProbabilityVotes]]:
    """The name of each voter with its labels as an array of objects, or its probabilities.

    In a mapping, values of two dimensions are probabilities: a data frame with a column per class, named after it, or
    an array with a column for each class in order.
    """
    columns: list[tuple[str, Any]]
    if isinstance(votes, Mapping):
        columns = [(str(name), _one_voter(str(name), given)) for name, given in votes.items()]
    elif isinstance(votes, (str, bytes)) or not hasattr(votes, "__iter__") or sp.issparse(votes):
        raise ParameterError("votes", f"must be a table of labels, one column per voter; got {type(votes).__name__}.")
    elif hasattr(votes, "columns"):
        names = [str(name) for name in votes.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ParameterError("votes", f"have more than one column {twice!r}; give every voter its own name.")
        columns = [(str(name), _objects(votes[name])) for name in votes.columns]
    else:
        values = _objects(votes)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise ParameterError(
                "votes", f"must have one row per row of X and one column per voter; got {values.ndim}-D."
            )
        columns = [(f"voter {number}", column) for number, column in enumerate(values.T, start=1)]
        if getattr(votes, "name", None) is not None:
            columns = [(str(votes.name), columns[0][1])]
    if not columns:
        raise ParameterError("votes", "have no column; omit them, or pass one column per voter.")
    if len(columns) > MAX_VOTERS:
        raise ParameterError(
            "votes", f"have {len(columns)} columns; at most {MAX_VOTERS} voters are accepted. One column is one voter."
        )
    for name, column in columns:
        n_given = len(column.values if isinstance(column, ProbabilityVotes) else column)
        if not isinstance(column, ProbabilityVotes):
            _refuse_collections(name, column)
        if n_given != n_rows:
            of = f"of {name} " if isinstance(votes, Mapping) else ""
            raise ParameterError(
                "votes", f"{of}have {n_given} rows, and X has {n_rows}. Give one row of votes per row."
            )
    return columns


def _refuse_collections(name: str, column: np.ndarray) -> None:
    """A list or a dict in a cell is not a label."""
    if all(kind.__hash__ is not None for kind in set(map(type, column))):
        return
    row, kind = next((row, type(value)) for row, value in enumerate(column) if type(value).__hash__ is None)
    raise ParameterError("votes", f"of {name} hold a {kind.__name__} in row {row}; give one label per row, or None.")


def _one_voter(name: str, given: Any) -> np.ndarray | ProbabilityVotes:
    """An entry of a mapping: labels, or a table of probabilities."""
    if isinstance(given, (str, bytes)) or not (hasattr(given, "__len__") or hasattr(given, "__array__")):
        raise ParameterError("votes", f"of {name} must be one label per row; got {type(given).__name__}.")
    if hasattr(given, "columns"):
        labels = list(given.columns)
        cells = [_objects(given[label]) for label in labels]
        table = np.stack(cells, axis=1) if cells else np.empty((len(given), 0), dtype=object)
    else:
        labels, table = None, _objects(given)
    if table.ndim == 1:
        return table
    if table.ndim != 2 or table.shape[1] == 0:
        raise ParameterError(
            "votes", f"of {name} must be one label per row, or one probability per row and class; got {table.ndim}-D."
        )
    try:
        values = np.where(_missing(table.ravel()).reshape(table.shape), np.nan, table).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("votes", f"of {name} have two dimensions, but are not probabilities: {error}") from error
    return ProbabilityVotes(name, values, labels)


def judge_voters(votes: Votes, codes: np.ndarray, classes: np.ndarray) -> list[Voter]:
    """The accuracy of each voter on the rows whose class number in `codes` is not -1."""
    found, labels = [], class_list(classes)
    for number, name in enumerate(votes.names):
        spoken = votes.codes[:, number] != SILENT
        judged = spoken & (codes >= 0)
        right = votes.codes[:, number] == codes
        by_class = {labels[code]: _voter(name, right[judged & (codes == code)], 0) for code in np.unique(codes[judged])}
        found.append(_voter(name, right[judged], int(spoken.sum()), by_class))
    return found


def _voter(name: str, right: np.ndarray, n_votes: int, by_class: dict[Any, Voter] | None = None) -> Voter:
    n, hits = len(right), int(right.sum())
    low = float(betaincinv(hits + 0.5, n - hits + 0.5, 0.05)) if hits else 0.0
    high = float(betaincinv(hits + 0.5, n - hits + 0.5, 0.95)) if hits < n else 1.0
    return Voter(name, hits / n if n else float("nan"), low, high, n, n_votes or n, by_class or {})


def _objects(values: Any) -> np.ndarray:
    """An array that keeps each entry's own type; what is masked is None."""
    if hasattr(values, "to_list") and not isinstance(getattr(values, "dtype", None), np.dtype):
        values = values.to_list()  # nullable columns of pandas and polars
    if isinstance(values, np.ma.MaskedArray):
        masked, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[masked] = None
    if not isinstance(values, np.ndarray) and not hasattr(values, "__array__"):
        values = [list(row) if isinstance(row, (list, tuple)) else row for row in values]
        if len({len(row) if isinstance(row, list) else -1 for row in values}) > 1:
            raise ParameterError("votes", "have rows of different lengths; give every row one entry per voter.")
    return np.asarray(values, dtype=object)


def _missing(column: np.ndarray, marker: Any = None) -> np.ndarray:
    """Where an entry is None, NaN, NaT, NA or the marker."""
    is_marked = not is_missing(marker) and type(marker) is not bool  # NA cannot be compared
    return np.array([is_missing(value) or (is_marked and value == marker) for value in column], dtype=bool)


def _as_classes(values: np.ndarray, classes: np.ndarray) -> Sequence[Any]:
    """Votes as the labels are written: numbers that are whole become integers where the classes are."""
    if classes.dtype.kind in "iu":  # a column with silent rows is one of floats
        floats = float, np.floating
        return [int(value) if isinstance(value, floats) and float(value).is_integer() else value for value in values]
    return list(values)


def _some(values: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def classes_of_votes(votes: Any, n_rows: int, marker: Any) -> np.ndarray:
    """The classes that any voter names."""
    spoken: list[Any] = []
    for name, column in voter_columns(votes, n_rows):
        if not isinstance(column, ProbabilityVotes):
            spoken += list(column[~_missing(column, marker)])
        elif column.labels is not None:
            spoken += column.labels
        else:
            raise ParameterError(
                "votes",
                f"of {name} do not name their classes, and y has no label: give a DataFrame whose columns are named "
                "after the classes.",
            )
    if not spoken:
        raise ParameterError("votes", "are empty, and y has no label: give at least one row a label or a vote.")
    try:
        return encode_given_labels(spoken).classes
    except (TypeError, ValueError) as error:
        raise ParameterError("votes", f"cannot be read as labels: {error}") from error


PRIOR_RIGHT, PRIOR_WRONG = 4.0, 1.0  # pseudo-counts of a voter's votes, where its accuracy is learnt without labels
PRIOR_ROWS = 4.0  # pseudo-counts of each row of its confusion, as if it were equally accurate in all classes
PRIOR_SHARE = 0.01  # by which the classes' shares are drawn towards equal ones


def dawid_skene(codes: np.ndarray, n_classes: int, max_iter: int = 100, tol: float = 1e-5) -> np.ndarray:
    """Class probabilities of the rows from votes alone, by Dawid and Skene's expectation-maximisation.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows, n_voters), -1 where a voter is silent
        A voter may also say how sure it is: a vote for class c is any of c, c + n_classes, c + 2 n_classes, ...
    n_classes, max_iter : int
    tol : float, the largest change of a probability at which it stops

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
    """
    n_rows, n_voters = codes.shape
    n_outcomes = n_classes * (int(codes.max(initial=0)) // n_classes + 1)
    shown = np.zeros((n_voters, n_rows, n_outcomes))
    for voter in range(n_voters):
        rows = np.flatnonzero(codes[:, voter] != SILENT)
        shown[voter, rows, codes[rows, voter]] = 1.0
    found = shown.sum(axis=0) @ np.eye(n_classes)[np.arange(n_outcomes) % n_classes] + 1e-9
    found /= found.sum(axis=1, keepdims=True)
    for _ in range(max_iter):
        counts = np.einsum("rc,vrk->vck", found, shown)
        confusions = counts + PRIOR_ROWS * _one_accuracy(counts)
        confusions /= confusions.sum(axis=2, keepdims=True)
        shares = found.mean(axis=0) + PRIOR_SHARE / n_classes
        logs = np.log(shares / shares.sum()) + np.einsum("vrk,vck->rc", shown, np.log(confusions))
        before, found = found, softmax(logs, axis=1)
        if np.abs(found - before).max(initial=0.0) < tol:
            break
    return np.asarray(found)


def _one_accuracy(counts: np.ndarray) -> np.ndarray:
    """P(outcome | class) of voters that are equally accurate in all classes, from expected counts of that shape.

    The certainty that a voter states is treated as an outcome of its own, with its own accuracy.
    """
    n_voters, n_classes, n_outcomes = counts.shape
    levels = counts.reshape(n_voters, n_classes, -1, n_classes)  # class, how sure, vote
    right = np.einsum("vclc->vl", levels) + PRIOR_RIGHT
    votes = levels.sum(axis=(1, 3)) + PRIOR_RIGHT + PRIOR_WRONG
    accuracy, share = right / votes, votes / votes.sum(axis=1, keepdims=True)
    same, other = share * accuracy, share * (1.0 - accuracy) / max(n_classes - 1, 1)
    eye = np.eye(n_classes)[None, :, None, :]
    found = same[:, None, :, None] * eye + other[:, None, :, None] * (1.0 - eye)
    return np.asarray(found.reshape(n_voters, n_classes, n_outcomes))
