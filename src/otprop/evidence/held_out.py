"""Held-out labels: each source is judged on labelled rows whose labels it did not see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from otprop._saving import saved_as

MANY_ROWS = 30_000  # from here on only two folds of five are held out, to save time
N_FOLDS, N_FOLDS_MANY_ROWS = 5, 2
MANY_LABELS = 150  # with more labels, costly sources are trained in less time
FEW_TRAININGS = 3  # training on 60 or 80 % of many labels is enough to judge a source
GROUP_CORRELATION = 0.3  # assumed at least between the labels of a group, for what they are worth
MAX_HELD_OUT = 2000
MIN_LABELS_FEW_FOLDS = 500  # from this many labels on, two folds of five are enough
MIN_DRAWN = 20  # with this many random labels, chosen ones are ignored for weights and shares
MAX_LEAVE_ONE_OUT = 50  # up to this many labels, each is held out alone; more if classes have few labels
MAX_LEAVE_ONE_OUT_MANY_CLASSES = 500  # each held-out label costs as much as a class


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
    counts : ndarray of int of shape (n_classes,), total number of labels of each class
    drawn : ndarray of bool, whether the label was drawn at random and not chosen
    weights : ndarray, how much each label counts
    hidden_fold : ndarray of int of shape (n_all_rows,) or None
        The fold that each labelled row is held out with, -1 for the others, if whole groups of rows are held out;
        None if a fold holds out only its own rows.
    groups : ndarray of int of shape (n_all_rows,) or None, the group of each row; None: each row is its own
    all_codes : ndarray of int of shape (n_all_rows,) or None, the class number of every row; set with `groups`
    worth : float, how many independent labels each label is worth: below 1 with `groups`
    """

    rows: np.ndarray
    fold: np.ndarray
    codes: np.ndarray
    n_folds: int
    counts: np.ndarray
    drawn: np.ndarray
    weights: np.ndarray
    hidden_fold: np.ndarray | None = None
    groups: np.ndarray | None = None
    all_codes: np.ndarray | None = None
    worth: float = 1.0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def leave_one_out(self) -> bool:
        """Whether every fold is a single row."""
        return self.hidden_fold is None and self.n_folds == len(self.rows)

    @property
    def few_per_class(self) -> bool:
        """Whether classes have so few labels that their numbers are mostly luck if labels were drawn at random."""
        return self.leave_one_out and bool(self.counts.sum() <= N_FOLDS * len(self.counts))

    @property
    def enough_drawn(self) -> bool:
        """Whether there are enough random labels to learn from them alone."""
        return bool(np.count_nonzero(self.drawn) >= MIN_DRAWN)

    def hidden_with(self, here: np.ndarray) -> np.ndarray:
        """The rows whose labels a source must not see when it predicts the held-out rows `here`: whole folds."""
        if self.hidden_fold is None:
            return self.rows[here]
        return np.flatnonzero(np.isin(self.hidden_fold, np.unique(self.fold[here])))

    @property
    def weighting(self) -> np.ndarray:
        """Which labels the sources are weighted on: those drawn at random, since chosen ones are harder; all if few."""
        return self.drawn if self.enough_drawn else np.ones(len(self.rows), dtype=bool)

    @property
    def group(self) -> np.ndarray:
        """The group of each row for cross-fitting: its fold, or several folds together if there are many."""
        return np.asarray(self.fold % N_FOLDS)

    def class_mass_correction(self) -> np.ndarray:
        """Factor per held-out row and class that restores the label mass its fold took from the class.

        A class that loses one label of two would otherwise look half as probable as it is.
        """
        removed = np.zeros((max(self.n_folds, 1), len(self.counts)))
        if self.all_codes is None or self.hidden_fold is None:
            np.add.at(removed, (self.fold, self.codes), 1)
        else:
            hidden = self.hidden_fold >= 0
            np.add.at(removed, (self.hidden_fold[hidden], self.all_codes[hidden]), 1)
        left = self.counts - removed
        return np.asarray(np.where(left > 0, self.counts / np.where(left > 0, left, 1.0), 1.0)[self.fold])

    def leave_one_out_correction(self) -> np.ndarray:
        """The same factors if each row is held out alone (out of bag): only its own class lost a label."""
        if self.groups is not None and self.all_codes is not None:
            return self._group_correction(self.groups, self.all_codes)
        factors = np.ones((len(self.rows), len(self.counts)))
        own = self.counts[self.codes]
        factors[np.arange(len(self.rows)), self.codes] = own / np.maximum(own - 1, 1)
        return factors

    def _group_correction(self, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The same factors if each group is held out alone."""
        labeled = np.flatnonzero(codes >= 0)
        names, number = np.unique(groups[labeled], return_inverse=True)
        lost = np.zeros((len(names), len(self.counts)))
        np.add.at(lost, (number, codes[labeled]), 1)
        left = self.counts - lost[np.searchsorted(names, groups[self.rows])]
        return np.asarray(np.where(left > 0, self.counts / np.where(left > 0, left, 1.0), 1.0))


def make_folds(
    codes: np.ndarray,
    n_classes: int,
    seed: int,
    chosen: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> HeldOut:
    """Choose the labels to hold out, among classes that keep at least one other label.

    Few labels are held out one at a time, many in folds stratified by class. If there are also many rows, two folds of
    five are used. With many classes of few labels each, a sample of the labels is held out.

    Parameters
    ----------
    codes : ndarray of int, the class number of every row, -1 where unlabelled
    n_classes : int
    seed : int
    chosen : ndarray of bool or None, the rows whose label was chosen and not drawn at random
    weights : ndarray or None, how much the label of each row counts; None: all alike
    groups : ndarray of int or None, the group of each row: whole groups are held out, never a part of one

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
    if groups is not None:
        return _fold_groups(codes, counts, seed, chosen, weights, groups)
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


def _fold_groups(
    codes: np.ndarray, counts: np.ndarray, seed: int, chosen: np.ndarray, weights: np.ndarray, groups: np.ndarray
) -> HeldOut:
    """Folds of whole groups, about equally large; rows are held out if another group has a label of their class."""
    labeled = np.flatnonzero(codes >= 0)
    names, number = np.unique(groups[labeled], return_inverse=True)
    hidden_fold = np.full(len(codes), -1)
    hidden_fold[labeled] = balanced_folds(number, seed)
    groups_of_class = np.zeros((len(names), len(counts)), dtype=bool)
    groups_of_class[number, codes[labeled]] = True
    rows = labeled[groups_of_class.sum(axis=0)[codes[labeled]] >= 2]
    if len(rows) > MAX_HELD_OUT:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MAX_HELD_OUT, replace=False))
    n_folds = int(hidden_fold.max(initial=-1)) + 1
    worth = 1.0 / design_effect(groups[rows], label_correlation(codes[labeled], number))
    fold, counted = hidden_fold[rows], worth * weights[rows]
    return HeldOut(rows, fold, codes[rows], n_folds, counts, ~chosen[rows], counted, hidden_fold, groups, codes, worth)


def n_trainings(n_labels: int) -> int:
    """Number of groups of folds that a costly source is trained without."""
    return N_FOLDS if n_labels <= MANY_LABELS else FEW_TRAININGS


def label_correlation(codes: np.ndarray, groups: np.ndarray) -> float:
    """Correlation of the labels of a group (one-way analysis of variance), at least `GROUP_CORRELATION`.

    Near 1 if the rows of a group nearly always have the same class, as repeated measurements do.
    """
    sizes = np.bincount(groups)
    n_groups, n_labels = len(sizes), len(codes)
    if not 1 < n_groups < n_labels:
        return GROUP_CORRELATION
    counts = np.zeros((n_groups, codes.max() + 1))
    np.add.at(counts, (groups, codes), 1.0)
    within = n_labels - (counts**2 / sizes[:, None]).sum()
    between = (counts**2 / sizes[:, None]).sum() - (counts.sum(axis=0) ** 2).sum() / n_labels
    found = anova_correlation(float(between), float(within), sizes)
    return GROUP_CORRELATION if found is None else max(found, GROUP_CORRELATION)


def anova_correlation(between: float, within: float, sizes: np.ndarray) -> float | None:
    """Intraclass correlation from the sums of squares between and within groups of these sizes.

    None without any variance. There must be more than one group, and fewer groups than rows.
    """
    n_rows, n_groups = int(sizes.sum()), len(sizes)
    between, within = between / (n_groups - 1), within / (n_rows - n_groups)
    size = (n_rows - float(sizes @ sizes) / n_rows) / (n_groups - 1)
    total = between + (size - 1.0) * within
    return (between - within) / total if total > 0 else None


def design_effect(groups: np.ndarray, correlation: float) -> float:
    """Number of labels that are worth one independent label, given the correlation of labels within a group."""
    sizes = np.unique(groups, return_counts=True)[1]
    return float(1.0 + ((sizes**2).sum() / max(sizes.sum(), 1) - 1.0) * correlation) if len(sizes) else 1.0


def balanced_folds(groups: np.ndarray, seed: int) -> np.ndarray:
    """A fold for each row: whole groups together, at most `N_FOLDS` folds of about the same size."""
    names, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    fold, filled = np.zeros(len(names), dtype=np.intp), np.zeros(min(N_FOLDS, len(names)))
    for one in np.lexsort((np.random.default_rng(seed).random(len(names)), -sizes)):
        fold[one] = filled.argmin()
        filled[fold[one]] += sizes[one]
    return fold[number]
