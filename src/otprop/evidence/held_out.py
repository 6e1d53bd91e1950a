"""Held-out labels: each source is judged on labelled rows whose labels it did not see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from otprop._saving import saved_as

MANY_ROWS = 30_000  # from here on only two folds of five are held out, to save time
N_FOLDS, N_FOLDS_MANY_ROWS = 5, 2
MAX_HELD_OUT = 2000
MIN_LABELS_FEW_FOLDS = 500  # labels from which on two folds of five are enough
MIN_DRAWN = 20  # labels drawn at random from which on chosen ones neither weight the sources nor tell the shares
MAX_LEAVE_ONE_OUT = 50  # labels up to which each one is held out alone; more where classes have few
MAX_LEAVE_ONE_OUT_MANY_CLASSES = 500  # each one costs as much as a class


@saved_as("evidence.held_out")
@dataclass(frozen=True)
class HeldOut:
    """Labelled rows whose labels are held out, fold by fold.

    Attributes
    ----------
    rows : ndarray of int, each row is in one fold
    fold : ndarray of int, the fold of each row
    codes : ndarray of int, the class number of each row
    n_folds : int
    counts : ndarray of int of shape (n_classes,), labels of each class in all
    drawn : ndarray of bool, whether the label was drawn at random, and not chosen
    weights : ndarray, how much each label counts
    """

    rows: np.ndarray
    fold: np.ndarray
    codes: np.ndarray
    n_folds: int
    counts: np.ndarray
    drawn: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def leave_one_out(self) -> bool:
        """Whether every fold is a single row."""
        return self.n_folds == len(self.rows)

    @property
    def enough_drawn(self) -> bool:
        """Whether labels drawn at random are enough to learn from them alone."""
        return bool(np.count_nonzero(self.drawn) >= MIN_DRAWN)

    @property
    def weighting(self) -> np.ndarray:
        """Which labels the sources are weighted on: those drawn at random, since chosen ones are harder; all if few."""
        return self.drawn if self.enough_drawn else np.ones(len(self.rows), dtype=bool)

    @property
    def group(self) -> np.ndarray:
        """The group of each row for cross-fitting: its fold, or several folds together where they are many."""
        return np.asarray(self.fold % N_FOLDS)

    def class_mass_correction(self) -> np.ndarray:
        """Factor per held-out row and class that restores the label mass its fold took from the class.

        A class that loses one label of two would otherwise look half as probable as it is.
        """
        removed = np.zeros((max(self.n_folds, 1), len(self.counts)))
        np.add.at(removed, (self.fold, self.codes), 1)
        left = self.counts - removed
        return np.asarray(np.where(left > 0, self.counts / np.where(left > 0, left, 1.0), 1.0)[self.fold])

    def leave_one_out_correction(self) -> np.ndarray:
        """The same factors where each row is held out alone (out of bag): only its own class lost a label."""
        factors = np.ones((len(self.rows), len(self.counts)))
        own = self.counts[self.codes]
        factors[np.arange(len(self.rows)), self.codes] = own / np.maximum(own - 1, 1)
        return factors


def make_folds(
    codes: np.ndarray,
    n_classes: int,
    seed: int,
    chosen: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> HeldOut:
    """Choose the labels to hold out, among classes that keep at least one other label.

    Few labels are held out one at a time, many in folds stratified by class. With many rows, too, two folds of five
    are used; where classes are many and have few labels each, a sample of the labels is held out.

    Parameters
    ----------
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    n_classes : int
    seed : int
    chosen : ndarray of bool or None, the rows whose label was chosen and not drawn at random
    weights : ndarray or None, how much the label of each row counts; None: all the same

    Returns
    -------
    HeldOut
    """
    if chosen is None:
        chosen = np.zeros(len(codes), dtype=bool)
    if weights is None:
        weights = np.ones(len(codes))
    labeled = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[labeled], minlength=n_classes)
    rows = labeled[counts[codes[labeled]] >= 2]
    rng = np.random.default_rng(seed)
    rows = rows[np.lexsort((rng.random(len(rows)), codes[rows]))]  # by class, in random order within it
    if len(rows) <= max(MAX_LEAVE_ONE_OUT, N_FOLDS * n_classes):
        if len(rows) > MAX_LEAVE_ONE_OUT_MANY_CLASSES:
            rows = rows[np.sort(rng.choice(len(rows), MAX_LEAVE_ONE_OUT_MANY_CLASSES, replace=False))]
        return HeldOut(rows, np.arange(len(rows)), codes[rows], len(rows), counts, ~chosen[rows], weights[rows])
    fold = np.arange(len(rows)) % N_FOLDS
    n_folds = N_FOLDS
    if len(codes) > MANY_ROWS and len(rows) > MIN_LABELS_FEW_FOLDS:
        n_folds = N_FOLDS_MANY_ROWS
        rows, fold = rows[fold < n_folds], fold[fold < n_folds]
    if len(rows) > MAX_HELD_OUT:
        kept = np.sort(rng.choice(len(rows), MAX_HELD_OUT, replace=False))
        rows, fold = rows[kept], fold[kept]
    return HeldOut(rows, fold, codes[rows], n_folds, counts, ~chosen[rows], weights[rows])
