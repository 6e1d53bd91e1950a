"""What every way of propagating has in rounds: a record of each, how certain a row is, and who was labelled when."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from otprop._labels import UNLABELED
from otprop._saving import saved_as

TIE = 1e-9  # certainties this near to each other are equal (Eq. 15)


@saved_as("otp.round", nan=("threshold", "threshold_gap", "class_gap", "source_error", "target_error"))
@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes
    ----------
    number : int, counted from 1
    rows : ndarray of int, the rows labelled in this round
    n_labeled, n_unlabeled : int, sizes of both sides when the round began (m and n of Eq. 14)
    threshold : float
        The certainty above which rows were labelled: alpha, or by Eq. 15 the largest there was. With classes that ship
        as a whole, the least certainty of a row labelled.
    lowered : bool
        No row exceeded alpha and Eq. 15 was used; with classes that ship as a whole, fewer than the least number.
    epsilon : float
    iterations : int, of the solver
    source_error, target_error : float, L1 errors of the plan's marginals
    converged : bool, both are within the tolerance
    threshold_gap : float, how near to the threshold the nearest certainty was
    class_gap : float, the smallest difference between the two most probable classes of a row labelled here
    seconds : float
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
    """Eq. 12: one minus the entropy of each line of `shares` over the largest it can be."""
    n_classes = shares.shape[1]
    if n_classes == 1:
        return np.ones(len(shares))
    bits = np.zeros_like(shares)
    np.log2(shares, out=bits, where=shares > 0)
    return np.clip(1.0 + (shares * bits).sum(axis=1) / np.log2(n_classes), 0.0, 1.0)


def nth_largest(values: np.ndarray, n: int) -> float:
    """The least of the `n` largest."""
    return float(np.partition(values, -n)[-n])


class Rounds:
    """The rows as they are labelled round by round.

    Parameters
    ----------
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    n_classes : int

    Attributes
    ----------
    codes, distributions, certainty, round : ndarrays, one entry a row, filled in as rows are labelled
    n_rounds : int, so far
    """

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        given = codes != UNLABELED
        self.codes = codes.copy()
        self.distributions = np.full((len(codes), n_classes), 1.0 / n_classes)
        self.distributions[given] = np.eye(n_classes)[codes[given]]
        self.certainty = given.astype(np.float64)
        self.round = np.where(given, 0, -1)
        self.n_rounds = 0

    def _label(self, rows: np.ndarray, shares: np.ndarray) -> float:
        """Eq. 13 for the rows chosen; returns how near their two best classes came to each other."""
        self.codes[rows] = shares.argmax(axis=1)
        self.round[rows] = self.n_rounds
        if shares.shape[1] == 1:
            return 1.0
        best = np.partition(shares, -2, axis=1)
        return float((best[:, -1] - best[:, -2]).min())
