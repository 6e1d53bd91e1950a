"""Which rows are labelled: the splits that all methods share, and the labels hidden from them for tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from otprop._labels import UNLABELED
from otprop.model_selection import HiddenLabelSplit

PROTOCOL = 1  # part of every key: raise it when splits, draws or scores change
PERCENTS = (5, 15, 25, 35)
N_SPLITS = 10
HIDDEN_SHARE = 0.25  # of the given labels, hidden in each draw
MOST_DRAWS = 5
ENOUGH_HIDDEN = 250  # hidden labels in all draws together that are enough to compare two candidates
LEAST_TO_TUNE = 2  # labels of every class; with fewer the declared default is used

LABEL_DRAWS = ("stratified", "random", "equal")


class ProtocolError(ValueError):
    """The protocol cannot be run on a data set."""


@dataclass(frozen=True)
class Cell:
    """One draw of labels of a data set.

    Attributes
    ----------
    percent : float, share of the rows that are labelled, in percent
    split : int, the seed of the draw
    labels : {"stratified", "random", "equal"}, how they are drawn
    """

    percent: float
    split: int
    labels: str = "stratified"


def n_labels(n_rows: int, percent: float) -> int:
    """Number of labelled rows, rounded down as in `train_test_split`."""
    return int(np.floor(n_rows * percent / 100 + 1e-9))


def draw(y: np.ndarray, cell: Cell) -> np.ndarray:
    """The class numbers of the rows that a cell labels, -1 for the others.

    "stratified" is `train_test_split` with the split as seed, "random" any rows but at least one of each class, "equal"
    the same number of each class as far as half of its rows allow.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop_paper.benchmark.protocol import Cell, draw
    >>> y = np.repeat([0, 1], [30, 10])
    >>> [np.bincount(draw(y, Cell(20, 0, how)) + 1)[1:].tolist() for how in ("stratified", "equal")]
    [[6, 2], [4, 4]]
    """
    size = n_labels(len(y), cell.percent)
    if cell.labels == "stratified":
        chosen, _ = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=cell.split)
    elif cell.labels == "random":
        chosen = _random_rows(y, size, np.random.default_rng(cell.split))
    else:
        chosen = _equal_rows(y, size, np.random.default_rng(cell.split))
    codes = np.full(len(y), UNLABELED, dtype=np.intp)
    codes[chosen] = y[chosen]
    return codes


def _random_rows(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """One row of each class, then any others."""
    order = rng.permutation(len(y))
    _, first = np.unique(y[order], return_index=True)
    needed = order[first]
    rest = order[~np.isin(order, needed)]
    return np.concatenate([needed, rest[: size - len(needed)]])


def _equal_rows(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """One row of each class in turn until `size` are drawn, at most half of the rows of a class."""
    members = [rng.permutation(np.flatnonzero(y == code)) for code in range(int(y.max()) + 1)]
    members = [rows[: max(1, len(rows) // 2)] for rows in members]
    order = rng.permutation(len(members))
    turns = [rows[turn] for turn in range(max(map(len, members))) for k in order if turn < len(rows := members[k])]
    return np.array(turns[:size], dtype=np.intp)


def n_draws(n_labeled: int) -> int:
    """Number of draws of hidden labels: enough to hide 250 in all, at most five."""
    per_draw = max(1, round(HIDDEN_SHARE * n_labeled))
    return int(np.clip(np.ceil(ENOUGH_HIDDEN / per_draw), 1, MOST_DRAWS))


def hidden_draws(codes: np.ndarray, split: int, most: int = MOST_DRAWS) -> list[np.ndarray]:
    """The rows with a hidden label, for each draw; no draw where a class has a single label."""
    given = codes[codes != UNLABELED]
    if np.bincount(given).min() < LEAST_TO_TUNE:
        return []
    splitter = HiddenLabelSplit(min(n_draws(len(given)), most), HIDDEN_SHARE, split)
    return [hidden for _, hidden in splitter.split(None, codes)]


def check_drawable(
    name: str,
    y: np.ndarray,
    percents: tuple[float, ...],
    n_splits: int,
    labels: str,
    class_names: Sequence[str] | None = None,
) -> None:
    """Refuse a data set if some split cannot be drawn; `class_names` are for the message."""
    counts = np.bincount(y)
    called = [f"class {code}" for code in range(len(counts))] if class_names is None else [repr(n) for n in class_names]
    if np.count_nonzero(counts) < 2:
        raise ProtocolError(f"the data set {name!r} has one class only; at least two are needed.")
    small = int(counts[counts > 0].min())
    if small < 2:
        raise ProtocolError(
            f"the data set {name!r} has a class with {small} row ({called[int(counts.argmin())]}); a split needs at "
            "least 2 of every class, one to label and one to find. Leave the row out, or join the class to another."
        )
    for percent in percents:
        size = n_labels(len(y), percent)
        if size < len(counts) or len(y) - size < len(counts):
            raise ProtocolError(
                f"{percent:g} % of the {len(y)} rows of {name!r} are {size} labels: too "
                f"{'few' if size < len(counts) else 'many'} for {len(counts)} classes, of which each needs one "
                "labelled and one unlabelled row."
            )
        for split in range(n_splits):
            drawn = draw(y, Cell(percent, split, labels))
            lacking = np.setdiff1d(np.unique(y), drawn)
            if len(lacking):
                code = int(lacking[0])
                raise ProtocolError(
                    f"{percent:g} % of {name!r}, drawn {labels}, leaves {called[code]} ({counts[code]} rows) without a "
                    f"label in split {split}. Use a larger percentage, or labels 'random' or 'equal'."
                )
            n_drawn = int(np.count_nonzero(drawn >= 0))
            if n_drawn < size:
                raise ProtocolError(
                    f"{percent:g} % of {name!r} are {size} labels, but drawn {labels} there are only {n_drawn}: a "
                    "class gives half its rows at most. Use a smaller percentage, or labels 'stratified' or 'random'."
                )
