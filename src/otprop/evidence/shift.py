"""Shift: how the labelled rows differ from the unlabelled ones.

Held-out labels estimate the error of the unlabelled rows only if both have the same distribution. A small forest is
trained to separate labelled from unlabelled rows; its out-of-bag score shows whether they differ. If they do, labels
are held out in whole clusters, so that they are as far from the remaining labels as the unlabelled rows are from all
labels (k-fold nearest neighbour distance matching; Linnenbrink, Milà, Ludwig and Meyer 2024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn
from scipy.spatial.distance import cdist

from otprop._saving import saved_as
from otprop.evidence.forest import unseen_means
from otprop.evidence.held_out import balanced_folds
from otprop.evidence.scaling import ScaledRows

MAX_ROWS = 300  # labelled and unlabelled rows each that are compared
N_TREES = 40
MIN_LEAF = 3
MIN_LABELS = 10  # fewer cannot show a difference
Z = 4.0  # standard errors of the AUC beyond which rows differ; out of bag it varies 1.3 times as much as a rank test
MAX_CLUSTERED = 1000  # labelled rows that are clustered; the others join the cluster of the nearest one
N_CUTS = 14  # numbers of clusters that are tried
MAX_COMPARED = 600  # unlabelled rows whose distance to the labels is measured
MAX_COLUMNS = 50  # distances use at most this many columns, the most important ones


@saved_as("evidence.shift")
@dataclass(frozen=True)
class Shift:
    """How well a forest separates labelled from unlabelled rows.

    Attributes
    ----------
    auc : float, out of bag; 0.5 if they do not differ
    z : float, its distance from 0.5 in standard errors
    importance : ndarray of shape (n_columns,), of each column for separating them; sums to one
    explained : bool, whether class shares or rows of new classes explain the difference
    """

    auc: float
    z: float
    importance: np.ndarray
    explained: bool = False

    @property
    def found(self) -> bool:
        """Whether the rows differ by more than chance, without an explanation."""
        return self.z > Z and not self.explained


def measure_shift(scaled: ScaledRows, codes: np.ndarray, weights: np.ndarray, seed: int) -> Shift | None:
    """Compare labelled with unlabelled rows, with weights; None if there are too few."""
    labeled, others = (np.flatnonzero(part & (weights > 0)) for part in (codes >= 0, codes < 0))
    if len(labeled) < MIN_LABELS or len(others) < MIN_LABELS:
        return None
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.sort(rng.permutation(part)[:MAX_ROWS]) for part in (labeled, others)])
    given = codes[rows] >= 0
    balance = weights[rows]
    balance /= np.where(given, balance[given].sum(), balance[~given].sum())
    X = scaled.rows[rows]
    if sp.issparse(X):
        X = sp.csc_array(X)
    from sklearn.tree import DecisionTreeRegressor  # slow to import

    sign = np.where(given, 1.0, -1.0)  # least squares splits as Gini does, and a regression skips the checks of classes
    trees: list[tuple[DecisionTreeRegressor, np.ndarray]] = []
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for tree_seed in np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=N_TREES).tolist():
            drawn = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
            tree = DecisionTreeRegressor(max_features="sqrt", min_samples_leaf=MIN_LEAF, random_state=tree_seed)
            trees.append((tree.fit(X, sign, sample_weight=drawn * balance, check_input=False), drawn > 0))
    auc, spread = weighted_auc(unseen_means(trees, scaled.rows[rows])[:, 0], given, balance)
    importance = np.mean([tree.feature_importances_ for tree, _ in trees], axis=0)
    return Shift(auc, (auc - 0.5) / spread, importance / max(importance.sum(), np.finfo(float).tiny))


def weighted_auc(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Weighted area under the ROC curve, and its standard error for uninformative scores."""
    values, place = np.unique(scores, return_inverse=True)
    mass = [np.bincount(place[part], weights[part], len(values)) for part in (positive, ~positive)]
    mass = [each / each.sum() for each in mass]
    auc = float(mass[0] @ (np.cumsum(mass[1]) - mass[1] / 2))
    n = [weights[part].sum() ** 2 / (weights[part] ** 2).sum() for part in (positive, ~positive)]
    return auc, float(np.sqrt((n[0] + n[1] + 1) / (12 * n[0] * n[1])))


def matched_groups(scaled: ScaledRows, codes: np.ndarray, importance: np.ndarray, seed: int) -> np.ndarray | None:
    """Groups of labelled rows that are as far from each other as the unlabelled rows are from the labelled ones.

    Distances are measured in the columns in which labelled and unlabelled rows differ. The labelled rows are clustered,
    and the number of clusters is chosen for which the distances from held-out to remaining labels are most like those
    from unlabelled rows to labels (in Wasserstein distance).

    Returns
    -------
    ndarray of int of shape (n_rows,), -1 where unlabelled; None if single rows match best
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # few fits need it
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(seed)
    labeled, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    kept = np.sort(rng.permutation(labeled)[:MAX_CLUSTERED])
    columns = np.argsort(-importance, kind="stable")[:MAX_COLUMNS]

    def place(rows: np.ndarray) -> np.ndarray:
        found = scaled.rows[rows][:, columns]
        found = found.toarray() if sp.issparse(found) else found
        return np.asarray(found * np.sqrt(importance[columns]), dtype=np.float64)

    here = place(kept)
    wanted = cdist(place(rng.permutation(others)[:MAX_COMPARED]), here).min(axis=1)
    apart = cdist(here, here)
    np.fill_diagonal(apart, np.inf)
    best, distance = None, wasserstein_distance(apart.min(axis=1), wanted)
    tree = linkage(here, "average")
    for n_clusters in np.unique(np.geomspace(3, max(0.9 * len(kept), 3), N_CUTS).round().astype(int))[::-1]:
        clusters = fcluster(tree, n_clusters, "maxclust")
        fold = balanced_folds(clusters, seed)
        if fold.max() == 0:
            continue
        found = wasserstein_distance(np.where(fold[:, None] != fold, apart, np.inf).min(axis=1), wanted)
        if found < distance:
            best, distance = clusters, found
    if best is None:
        return None
    groups = np.full(len(codes), -1)
    groups[kept] = best
    left = labeled[groups[labeled] < 0]
    if len(left):
        groups[left] = best[cdist(place(left), here).argmin(axis=1)]
    return groups
