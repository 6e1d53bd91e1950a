"""Rounds of labelling: the record of each, the certainty of a row (Eq. 12), and the labels given so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from otprop._labels import UNLABELED
from otprop._saving import saved_as

TIE = 1e-9  # certainties closer than this are equal (Eq. 15)
MANY_ROWS = 15_000  # a larger table has one graph and fewer rounds, to save time
MAX_DOUBLE_ENTRIES = 2**26  # class probabilities kept in double precision: half a gigabyte


@saved_as("otp.round", nan=("threshold", "threshold_gap", "class_gap", "source_error", "target_error"))
@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes
    ----------
    number : int, counted from 1
    rows : ndarray of int, the rows labelled in this round
    n_labeled, n_unlabeled : int, sizes of both sides at the start of the round (m and n of Eq. 14)
    threshold : float
        The certainty above which rows were labelled: alpha, or the largest certainty (Eq. 15). At class level the
        lowest certainty of a row labelled.
    lowered : bool
        No row exceeded alpha, so Eq. 15 was used; at class level, fewer rows than the minimum of a round did.
    epsilon : float
    iterations : int, of the solver
    source_error, target_error : float, L1 errors of the plan's marginals
    converged : bool, both errors are within the tolerance
    threshold_gap : float, the smallest distance of a certainty from the threshold
    class_gap : float, the smallest difference between the two most probable classes of a row labelled here
    seconds : float

    Examples
    --------
    >>> from otprop import OTP
    >>> model = OTP().fit([[0.0], [0.2], [1.0], [1.2]], ["left", None, "right", None])
    >>> first = model.rounds_[0]
    >>> first.number, first.n_labeled, first.n_unlabeled, first.converged
    (1, 2, 2, True)
    """

    number: int
    rows: np.ndarray = field(repr=False)
    n_labeled: int
    n_unlabeled: int
    threshold: float
    lowered: bool
    epsilon: float
    iterations: int
    source_error: float
    target_error: float
    converged: bool
    threshold_gap: float
    class_gap: float
    seconds: float


def certainty(shares: np.ndarray) -> np.ndarray:
    """Eq. 12: one minus the normalised entropy of each row of `shares`."""
    n_classes = shares.shape[1]
    if n_classes == 1:
        return np.ones(len(shares))
    bits = np.zeros_like(shares)
    np.log2(shares, out=bits, where=shares > 0)
    return np.clip(1.0 + (shares * bits).sum(axis=1) / np.log2(n_classes), 0.0, 1.0)


def nth_largest(values: np.ndarray, n: int) -> float:
    """The n-th largest value."""
    return float(np.partition(values, -n)[-n])


class Rounds(ABC):
    """The rows as they are labelled round by round.

    Parameters
    ----------
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    n_classes : int

    Attributes
    ----------
    codes, distributions, certainty, round : ndarrays, one entry per row, filled in as rows are labelled
    n_rounds : int, so far
    records : list of Round, set by `run`
    """

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        labeled = codes != UNLABELED
        self.codes = codes.copy()
        dtype = np.float64 if len(codes) * n_classes <= MAX_DOUBLE_ENTRIES else np.float32
        self.distributions = np.full((len(codes), n_classes), 1.0 / n_classes, dtype=dtype)
        self.distributions[labeled] = np.eye(n_classes)[codes[labeled]]
        self.certainty = labeled.astype(np.float64)
        self.round = np.where(labeled, 0, -1)
        self.n_rounds = 0
        self.records: list[Round] = []

    @property
    @abstractmethod
    def n_unlabeled(self) -> int:
        """Number of rows without a label so far."""

    @abstractmethod
    def step(self) -> Round:
        """Run one round."""

    def run(self, on_round: Callable[[Round], bool], epsilon: float) -> None:
        """Run rounds until every row has a label or `on_round` returns true; records hold `epsilon` in user's units."""
        for record in self:
            self.records.append(replace(record, epsilon=epsilon))
            if on_round(self.records[-1]):
                break

    def __iter__(self) -> Iterator[Round]:
        while self.n_unlabeled:
            yield self.step()

    def _label(self, rows: np.ndarray, shares: np.ndarray) -> float:
        """Eq. 13 for the rows chosen; returns the smallest gap between the two best classes of a row."""
        self.codes[rows] = shares.argmax(axis=1)
        self.round[rows] = self.n_rounds
        if shares.shape[1] == 1:
            return 1.0
        best = np.partition(shares, -2, axis=1)
        return float((best[:, -1] - best[:, -2]).min())
