"""Votes: labels by voters that err, such as a language model, annotators or rules; what they are and how good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import beta

from otprop._labels import class_list, class_numbers, encode_given_labels
from otprop._saving import saved_as
from otprop._validation import ParameterError

SILENT = -1  # the code of a voter that does not vote on a row
MAX_VOTERS = 1000
PRIOR_RIGHT, PRIOR_WRONG = 4.0, 1.0  # pseudo-counts of a voter's votes, where its accuracy is learnt without labels
PRIOR_ROWS = 4.0  # pseudo-counts of each row of its confusion, as if it were equally accurate in all classes
PRIOR_SHARE = 0.01  # by which the classes' shares are drawn towards equal ones


@dataclass(frozen=True)
class Votes:
    """Votes as class numbers.

    Attributes
    ----------
    codes : ndarray of int of shape (n_rows, n_voters), -1 where a voter is silent
    names : list of str, of the voters
    """

    codes: np.ndarray
    names: list[str]

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


def read_votes(votes: Any, classes: np.ndarray, n_rows: int, marker: Any = None) -> Votes:
    """Votes as class numbers.

    Parameters
    ----------
    votes : array-like or data frame of shape (n_rows, n_voters), or (n_rows,) for one voter
        Labels of `classes`; None, NaN, NA or NaT where a voter is silent.
    classes : ndarray, the label of each class number
    n_rows : int
    marker : what stands for an unlabelled row in y, and for silence here, too

    Raises
    ------
    ParameterError
        The votes have another number of rows, are silent throughout, or hold a class that no label has.
    """
    columns, names = vote_columns(votes, n_rows)
    codes = np.full((n_rows, len(columns)), SILENT, dtype=np.intp)
    for number, (column, name) in enumerate(zip(columns, names, strict=True)):
        spoken = np.flatnonzero(~_missing(column, marker))
        if len(spoken) == 0:
            raise ParameterError("votes", f"of {name} are empty: it is silent on every row. Leave it out.")
        codes[spoken, number] = class_numbers(_as_classes(column[spoken], classes), classes)
        unknown = spoken[codes[spoken, number] < 0]
        if len(unknown):
            raise ParameterError(
                "votes",
                f"of {name} hold {column[unknown[0]]!r} ({len(unknown)} rows, the first of them row "
                f"{unknown[0]}), which no labelled row has. The classes are {_some(class_list(classes))}. Label a row "
                "of that class, or make these votes empty.",
            )
    return Votes(codes, names)


def vote_columns(votes: Any, n_rows: int) -> tuple[list[np.ndarray], list[str]]:
    """The columns of votes as arrays of objects, and the names of the voters."""
    if isinstance(votes, (str, bytes, dict)) or not hasattr(votes, "__iter__") or sp.issparse(votes):
        raise ParameterError("votes", f"must be a table of labels, one column per voter; got {type(votes).__name__}.")
    if hasattr(votes, "columns"):
        names = [str(name) for name in votes.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ParameterError("votes", f"have more than one column {twice!r}; give every voter its own name.")
        columns = [_objects(votes[name]) for name in votes.columns]
    else:
        values = _objects(votes)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2:
            raise ParameterError(
                "votes", f"must have one row per row of X and one column per voter; got {values.ndim}-D."
            )
        columns, names = list(values.T), [f"voter {number}" for number in range(1, values.shape[1] + 1)]
        if getattr(votes, "name", None) is not None:
            names = [str(votes.name)]
    if not columns:
        raise ParameterError("votes", "have no column; leave them out, or give one column per voter.")
    if len(columns) > MAX_VOTERS:
        raise ParameterError(
            "votes", f"have {len(columns)} columns; at most {MAX_VOTERS} voters are accepted. One column is one voter."
        )
    if len(columns[0]) != n_rows:
        raise ParameterError(
            "votes", f"have {len(columns[0])} rows, and X has {n_rows}. Give one row of votes per row."
        )
    return columns, names


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
    low = float(beta.ppf(0.05, hits + 0.5, n - hits + 0.5)) if hits else 0.0
    high = float(beta.ppf(0.95, hits + 0.5, n - hits + 0.5)) if hits < n else 1.0
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
    return np.array([_is_missing(value) or (type(marker) is not bool and value == marker) for value in column])


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _as_classes(values: np.ndarray, classes: np.ndarray) -> Sequence[Any]:
    """Votes as the labels are written: numbers that are whole become integers where the classes are."""
    if classes.dtype.kind in "iu":  # a column with silent rows is one of floats
        return [int(value) if _is_whole(value) else value for value in values]
    return list(values)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and float(value).is_integer()


def _some(values: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


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

    What a voter says of how sure it is may depend on nothing else; it is right more or less often for each.
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


def classes_of_votes(columns: Sequence[np.ndarray], marker: Any) -> np.ndarray:
    """The classes that any voter names."""
    spoken = [value for column in columns for value in column[~_missing(column, marker)]]
    if not spoken:
        raise ParameterError("votes", "are empty, and y has no label: give at least one row a label or a vote.")
    try:
        return encode_given_labels(spoken).classes
    except (TypeError, ValueError) as error:
        raise ParameterError("votes", f"cannot be read as labels: {error}") from error
