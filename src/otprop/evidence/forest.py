"""Forest sources: extra trees and a random forest, with out-of-bag predictions for the held-out rows.

With 15 to 150 labels, at least three per class, half of the trees are bagged and try every column at a split: they find
the sharp threshold in one column of many, which the other trees often do not try.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn

from otprop._saving import saved_as
from otprop.evidence.base import NamedSource, SourceOutput, log_floored
from otprop.evidence.classifier import MANY_CLASSES_WARNING, PROBABILITY_FLOOR, predict_in_blocks, spread_over_classes
from otprop.evidence.held_out import MANY_LABELS, HeldOut
from otprop.evidence.scaling import ScaledRows
from otprop.evidence.weights import scale_to_mean_one
from otprop.geometry.parallel import Jobs, row_blocks
from otprop.geometry.scaling import narrow_indices

N_TREES = 100
MANY_LABELS_TREES = 0.6  # of these trees are enough with many labels
TREES_PER_BLOCK = 10  # grown by one thread at a time
ROWS_PER_BLOCK = 10_000  # predicted by one thread at a time
MAX_CLASSES = 100  # a tree holds one number per node and class; with more classes, forests are skipped
MANY_LABELS_PER_CLASS = 30  # from here on a random forest is better than extra trees, and takes half the time
MAX_LABELS = 20_000  # labelled rows that a forest is grown on: each takes about 17 kB
MAX_OUT_OF_BAG = 5000  # labelled rows that the out-of-bag twin of the extra trees is grown on
OUT_OF_BAG = 0.37  # share of the groups of rows that a tree does not see, as with a bootstrap
MAX_INDICATORS = 10  # classes up to which trees are grown as regressions
MIN_LEAF = 2  # rows in a leaf of the random forest
MIN_ENTRIES_FOR_THREADS = 200_000  # entries of X; with fewer, starting threads does not pay off
SPLIT_SHARE = (
    0.4  # of the columns tried at a split: most columns of a mixed table, such as rare categories, do not matter
)
MAX_SPLIT_COLUMNS = 40  # with hundreds of columns, as in images, neighbouring ones are redundant
MIN_LABELS_THOROUGH, MEAN_PER_CLASS_THOROUGH = 15, 3  # with fewer labels, a bag has too few of them
MAX_THOROUGH_COLUMNS = 300  # tried at a split by a tree that tries all
Grown = list[tuple[Any, np.ndarray]]  # trees, and which of their rows each may have seen


@saved_as("evidence.forest")
class ForestSource:
    """Class probabilities of extra trees grown on all labelled rows, whose bagged twins predict held-out rows.

    With 15 to 150 labels, at least three per class, half of the trees are thorough instead: bagged, and trying every
    column.
    """

    name = "forest"

    def __init__(self, scaled: ScaledRows, n_classes: int, seed: int, n_jobs: int | None) -> None:
        self._scaler, self._X, self._n_classes, self._seed = scaled.scaler, scaled.rows, n_classes, seed
        self._n_jobs = n_jobs if self._X.shape[0] * self._X.shape[1] >= MIN_ENTRIES_FOR_THREADS else 1

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the trees; return log-probabilities of all rows and, out of bag, of the held-out rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        grown_on = self._sample(labeled, held_out, MAX_LABELS) if len(labeled) > MAX_LABELS else labeled
        rows = self._sample(labeled, held_out, MAX_OUT_OF_BAG)
        bags, (seeds, thorough_seeds) = group_bags(held_out, rows), self._seeds(len(labeled))
        thorough = self._grow(rows, codes, weights, thorough_seeds, self._make_thorough_tree, bags)
        twins = self._grow(rows, codes, weights, seeds, self._make_tree, bags) if len(held_out) else []
        own = self._grow(grown_on, codes, weights, seeds, self._make_tree)
        self._forest = self._forest_of(own + thorough, codes[grown_on])
        return SourceOutput(self._predict_all(), self._out_of_bag(twins + thorough, codes, rows, held_out))

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows."""
        return self._log_proba(self._scaler.transform(rows))

    def use_threads(self, n_jobs: int | None) -> None:
        """Set the number of threads for prediction; results do not depend on it."""
        self._n_jobs = n_jobs

    def _predict_all(self) -> np.ndarray:
        return predict_in_blocks(self._log_proba, self._X, self._n_classes)

    def _log_proba(self, scaled: Any) -> np.ndarray:
        shares = mean_of_trees(self._forest.estimators_, scaled, self._n_jobs)
        return log_floored(spread_over_classes(shares, self._forest.classes_, self._n_classes), PROBABILITY_FLOOR)

    def _seeds(self, n_labels: int) -> tuple[list[int], list[int]]:
        """Seeds of the trees, those of the thorough ones apart."""
        n_trees = N_TREES if n_labels <= MANY_LABELS else round(MANY_LABELS_TREES * N_TREES)
        enough = n_labels >= max(MIN_LABELS_THOROUGH, MEAN_PER_CLASS_THOROUGH * self._n_classes)
        n_thorough = n_trees // 2 if enough and n_labels <= MANY_LABELS else 0  # with more labels, boosting does it
        seeds = draw_seeds(self._seed, n_trees)
        return seeds[: n_trees - n_thorough], seeds[n_trees - n_thorough :]

    def _make_forest(self, n_trees: int) -> Any:
        from sklearn.ensemble import ExtraTreesClassifier  # slow to import, here and below

        return ExtraTreesClassifier(n_trees)

    def _make_tree(self, seed: int) -> Any:
        from sklearn.tree import ExtraTreeClassifier

        return ExtraTreeClassifier(max_features=columns_per_split(self._X.shape[1]), random_state=seed)

    def _make_thorough_tree(self, seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        n_columns = min(self._X.shape[1], MAX_THOROUGH_COLUMNS)
        return DecisionTreeClassifier(max_features=n_columns, min_samples_leaf=MIN_LEAF, random_state=seed)

    def _grow(
        self,
        rows: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        seeds: list[int],
        make_tree: Callable[[int], Any],
        bags: np.ndarray | None = None,
    ) -> Grown:
        """Grow a tree for each seed.

        `bags` is the group of each row: whole groups are in or out of the bag of a tree. None: no bootstrap.
        This does what scikit-learn's forests do, without the overhead per tree, which dominates with few labels.
        """
        X, y = self._X[rows], codes[rows]
        if sp.issparse(X):
            X = narrow_indices(sp.csc_array(X))
            X.sort_indices()
        weights = scale_to_mean_one(weights[rows])
        alike = bool((weights == 1.0).all())  # without weights, scikit-learn grows the same trees with fewer checks
        classes, numbers = np.unique(y, return_inverse=True)
        indicators = np.eye(len(classes))[numbers] if len(classes) <= MAX_INDICATORS else None

        def grow(block: slice) -> Grown:
            grown = []
            with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
                for seed in seeds[block]:
                    counts, seen = None if alike else weights, np.ones(len(y), dtype=bool)
                    if bags is not None:
                        counts, seen = draw_bag(weights, bags, np.random.RandomState(seed))
                    grown.append((grow_tree(make_tree(seed), X, y, indicators, counts), seen))
            return grown

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", MANY_CLASSES_WARNING, UserWarning)
            blocks = list(Jobs(self._n_jobs).run(grow, row_blocks(len(seeds), TREES_PER_BLOCK)))
        return [tree for block in blocks for tree in block]

    def _forest_of(self, grown: Grown, codes: np.ndarray) -> Any:
        """A forest of trees grown on rows of these classes."""
        forest = self._make_forest(len(grown))
        forest.estimators_, forest.classes_ = [tree for tree, _ in grown], np.unique(codes)
        forest.n_classes_, forest.n_outputs_, forest.n_features_in_ = len(forest.classes_), 1, self._X.shape[1]
        return forest

    def _sample(self, labeled: np.ndarray, held_out: HeldOut, size: int) -> np.ndarray:
        """At most `size` labelled rows in order, including the held-out ones."""
        others = np.setdiff1d(labeled, held_out.rows)
        room = max(size - len(held_out), 0)
        if len(others) > room:
            others = np.random.default_rng(self._seed).choice(others, room, replace=False)
        return np.sort(np.concatenate([held_out.rows, others]))

    def _out_of_bag(self, grown: Grown, codes: np.ndarray, rows: np.ndarray, held_out: HeldOut) -> np.ndarray:
        """Log-probabilities of the held-out rows by the trees that did not see them; uniform where all did."""
        if not len(held_out):
            return np.empty((0, self._n_classes))
        shares = unseen_means(grown, self._X[rows])[np.searchsorted(rows, held_out.rows)]
        shares = spread_over_classes(shares, np.unique(codes[rows]), self._n_classes)
        shares *= held_out.leave_one_out_correction()
        total = shares.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / self._n_classes)
        return log_floored(shares, PROBABILITY_FLOOR)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_X"}  # only fitting needs the rows


@saved_as("evidence.random_forest")
class RandomForestSource(ForestSource):
    """Class probabilities of a random forest, which finds the sharp thresholds that extra trees miss.

    With few labels, half of the trees try every column.
    """

    name = "random_forest"

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Grow the forest; its own out-of-bag predictions serve the held-out rows."""
        labeled = np.flatnonzero((codes >= 0) & (weights > 0))
        rows = self._sample(labeled, held_out, MAX_LABELS)
        bags, (seeds, thorough_seeds) = group_bags(held_out, rows), self._seeds(len(labeled))
        grown = self._grow(rows, codes, weights, seeds, self._make_tree, bags)
        grown += self._grow(rows, codes, weights, thorough_seeds, self._make_thorough_tree, bags)
        self._forest = self._forest_of(grown, codes[rows])
        return SourceOutput(self._predict_all(), self._out_of_bag(grown, codes, rows, held_out))

    def _make_forest(self, n_trees: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_trees, min_samples_leaf=MIN_LEAF)

    def _make_tree(self, seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(
            max_features=columns_per_split(self._X.shape[1]), min_samples_leaf=MIN_LEAF, random_state=seed
        )


def grow_tree(tree: Any, X: Any, y: np.ndarray, indicators: np.ndarray | None, sample_weight: np.ndarray | None) -> Any:
    """Fit a classification tree, as a regression on the `indicators` of its classes if they are given.

    Least squares choose the splits that Gini impurity chooses, and the means in a leaf are the class shares. This skips
    scikit-learn's checks of class labels, which take longer than growing a small tree.
    """
    from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
    from sklearn.tree._tree import Tree

    if indicators is None:
        return tree.fit(X, y, sample_weight=sample_weight, check_input=False)
    regressor = (DecisionTreeRegressor if tree.splitter == "best" else ExtraTreeRegressor)(
        max_features=tree.max_features, min_samples_leaf=tree.min_samples_leaf, random_state=tree.random_state
    )
    grown = regressor.fit(X, indicators, sample_weight=sample_weight, check_input=False).tree_
    n_columns, n_classes = X.shape[1], indicators.shape[1]
    state = grown.__getstate__()
    tree.tree_ = Tree(n_columns, np.array([n_classes], dtype=np.intp), 1)
    tree.tree_.__setstate__(state | {"values": state["values"].reshape(-1, 1, n_classes)})
    tree.classes_, tree.n_classes_, tree.n_outputs_ = np.unique(y), np.intp(n_classes), 1
    tree.n_features_in_, tree.max_features_ = n_columns, regressor.max_features_
    return tree


def mean_of_trees(trees: list[Any], X: Any, n_jobs: int | None = 1) -> np.ndarray:
    """Mean class shares of rows over the trees in single precision, in blocks, summed in the order of the trees."""

    def predict(block: slice) -> np.ndarray:
        rows = X[block]
        with sklearn.config_context(assume_finite=True):
            total = trees[0].predict_proba(rows, check_input=False)
            for tree in trees[1:]:
                total += tree.predict_proba(rows, check_input=False)
        return np.asarray(total / len(trees))

    blocks = row_blocks(X.shape[0], ROWS_PER_BLOCK) or [slice(0)]
    return np.concatenate(list(Jobs(n_jobs).run(predict, blocks)))


def draw_seeds(seed: int, n: int) -> list[int]:
    """Seeds of trees, drawn as scikit-learn's forests draw them."""
    return [int(one) for one in np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n)]


def group_bags(held_out: HeldOut, rows: np.ndarray) -> np.ndarray:
    """The group of each row, numbered from 0; each row is its own group if rows are held out one at a time."""
    if held_out.groups is None:
        return np.arange(len(rows))
    return np.asarray(np.unique(held_out.groups[rows], return_inverse=True)[1])


def draw_bag(weights: np.ndarray, bags: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """How often a tree sees each row, and which rows it may see: about a third of the groups are out of its bag.

    If each row is its own group, this is the bootstrap: rows are drawn with replacement.
    """
    n_rows, n_groups = len(weights), int(bags.max()) + 1
    shares = weights / weights.sum()
    if n_groups == n_rows:
        counts = np.bincount(rng.choice(n_rows, n_rows, p=shares), minlength=n_rows).astype(np.float64)
        return counts, counts > 0
    out = rng.permutation(n_groups)[: max(1, round(OUT_OF_BAG * n_groups))]
    seen = ~np.isin(bags, out) if n_groups > 1 else np.ones(n_rows, dtype=bool)
    rows = np.flatnonzero(seen)
    drawn = rows[rng.choice(len(rows), len(rows), p=shares[rows] / shares[rows].sum())]
    return np.bincount(drawn, minlength=n_rows).astype(np.float64), seen


def unseen_means(grown: list[tuple[Any, np.ndarray]], X: Any) -> np.ndarray:
    """Mean class shares, or values, of the rows over the trees that did not see them; 0 where all did."""
    total, n_trees = np.zeros((X.shape[0], grown[0][0].tree_.value[0].size)), np.zeros((X.shape[0], 1))
    for tree, seen in grown:
        unseen = np.flatnonzero(~seen)
        if len(unseen):
            total[unseen] += tree.tree_.predict(X[unseen]).reshape(len(unseen), -1)
            n_trees[unseen] += 1
    return np.asarray(total / np.maximum(n_trees, 1))


def columns_per_split(n_columns: int) -> int:
    """Columns that a tree tries at each split: two in five up to a maximum, but not fewer than their square root."""
    return max(1, int(np.sqrt(n_columns)), min(int(SPLIT_SHARE * n_columns), MAX_SPLIT_COLUMNS))


def _few_labels(n_labels: int, n_classes: int) -> bool:
    return n_labels < MANY_LABELS_PER_CLASS * n_classes


FOREST = NamedSource(
    "forest",
    ForestSource,
    start_weight=0.6,
    pays=lambda n_labels, n_classes, X: n_classes <= MAX_CLASSES and _few_labels(n_labels, n_classes),
)
RANDOM_FOREST = NamedSource(
    "random_forest",
    RandomForestSource,
    start_weight=0.6,
    pays=lambda n_labels, n_classes, X: n_classes <= MAX_CLASSES and not _few_labels(n_labels, n_classes),
)
