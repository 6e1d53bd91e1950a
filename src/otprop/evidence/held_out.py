"""Labels hidden in turn: what a source says of a row whose label it was not shown is what it is weighed by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from otprop._saving import saved_as

MANY_ROWS = 30_000  # from here on only some of the labels are hidden, for the sake of time
FOLDS, FEW_FOLDS = 5, 2
MOST_HIDDEN = 2000
ENOUGH = 500  # labels from which on two folds of five say enough
LEAVE_ONE_OUT = 50  # labels up to which each is hidden alone


@saved_as("evidence.held_out")
@dataclass(frozen=True)
class HeldOut:
    """Labelled rows whose labels are hidden, fold by fold.

    Attributes
    ----------
    rows : ndarray of int, the rows, each in one fold
    fold : ndarray of int, its fold
    codes : ndarray of int, its class number
    n_folds : int
    counts : ndarray of int of shape (n_classes,), how many labels each class has in all
    """

    rows: np.ndarray
    fold: np.ndarray
    codes: np.ndarray
    n_folds: int
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def alone(self) -> bool:
        """Whether each label is hidden by itself."""
        return self.n_folds == len(self.rows)

    def lift(self) -> np.ndarray:
        """For each hidden row and class, what the labels left must be multiplied by to weigh as much as all did.

        A class that lost one label of two would otherwise seem half as probable as it is, and every source bad.
        """
        gone = np.zeros((max(self.n_folds, 1), len(self.counts)))
        np.add.at(gone, (self.fold, self.codes), 1)
        left = self.counts - gone
        return np.asarray(np.where(left > 0, self.counts / np.where(left > 0, left, 1.0), 1.0)[self.fold])

    def own_lift(self) -> np.ndarray:
        """The same where each row was hidden alone: its own class lost one label."""
        found = np.ones((len(self.rows), len(self.counts)))
        own = self.counts[self.codes]
        found[np.arange(len(self.rows)), self.codes] = own / np.maximum(own - 1, 1)
        return found


def make_folds(codes: np.ndarray, n_classes: int, seed: int) -> HeldOut:
    """Choose the labels to hide: of classes that keep at least one other label.

    Parameters
    ----------
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    n_classes : int
    seed : int

    Returns
    -------
    HeldOut
        Each by itself where labels are few; in folds that share out every class evenly where they are many, and two
        folds of five where rows are many too.
    """
    labeled = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[labeled], minlength=n_classes)
    rows = labeled[counts[codes[labeled]] >= 2]
    rng = np.random.default_rng(seed)
    rows = rows[np.lexsort((rng.random(len(rows)), codes[rows]))]  # by class, in random order within it
    if len(rows) <= max(LEAVE_ONE_OUT, FOLDS * n_classes):
        return HeldOut(rows, np.arange(len(rows)), codes[rows], len(rows), counts)
    fold = np.arange(len(rows)) % FOLDS
    n_folds = FOLDS
    if len(codes) > MANY_ROWS and len(rows) > ENOUGH:
        n_folds = FEW_FOLDS
        rows, fold = rows[fold < n_folds], fold[fold < n_folds]
    if len(rows) > MOST_HIDDEN:
        kept = np.sort(rng.choice(len(rows), MOST_HIDDEN, replace=False))
        rows, fold = rows[kept], fold[kept]
    return HeldOut(rows, fold, codes[rows], n_folds, counts)
