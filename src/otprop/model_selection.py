"""Choice of parameters on held-out labels.

Cross-validation removes rows, which changes the problem of a transductive method. Here all rows stay, part of the
labels is held out, and the labels found for those rows are compared with the held-out ones. This works for every
estimator with the interface of scikit-learn's semi-supervised estimators: `y` with a marker for unlabelled rows,
`transduction_`, `label_distributions_`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from otprop._labels import UNLABELED, Labels, encode_labels
from otprop._validation import InputError

__all__ = ["HiddenLabelSearch", "HiddenLabelSplit", "hidden_label_score"]

Scoring = Literal["accuracy", "log_loss", "nmi", "ari"] | Callable[[np.ndarray, np.ndarray], float]
Params = dict[str, Any]


@dataclass(frozen=True)
class HiddenLabelSplit:
    """Repeated random draws of labels to hold out.

    The same share of labels of each class is held out, rounded, and each class keeps at least one label. A single
    label of a class is never held out.

    Parameters
    ----------
    n_splits : int, default=5
        Number of draws.
    hidden : float, default=0.25
        Share of the labels to hold out, between 0 and 1. At least one label is held out.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    with_unlabeled : bool, default=False
        Whether the unlabelled rows are among the kept ones, as scikit-learn's `cross_validate` needs it to fit a
        semi-supervised estimator as it will be fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop.model_selection import HiddenLabelSplit
    >>> y = np.array(["a", "a", "b", "b", "b", "c", None, None], dtype=object)
    >>> for kept, hidden in HiddenLabelSplit(n_splits=3, random_state=0).split(None, y):
    ...     print(len(kept), set(y[kept]) == {"a", "b", "c"}, len(hidden))
    4 True 2
    4 True 2
    4 True 2
    """

    n_splits: int = 5
    hidden: float = 0.25
    random_state: Any = None
    with_unlabeled: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.n_splits, bool) or not hasattr(self.n_splits, "__index__") or self.n_splits < 1:
            raise InputError(f"n_splits must be an integer of at least 1, got {self.n_splits!r}.")
        if not isinstance(self.hidden, (float, np.floating)) or not 0 < self.hidden < 1:
            raise InputError(f"hidden must be a share of the labels between 0 and 1, both excluded: {self.hidden!r}.")

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of pairs that `split` yields.

        Returns
        -------
        int
        """
        return int(self.n_splits)

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs of labelled rows.

        Parameters
        ----------
        X : ignored
        y : array-like of shape (n_rows,)
            Labels, with -1, None or NaN where a row is unlabelled.
        groups : ignored

        Yields
        ------
        kept : ndarray of int
            Rows whose label is kept, in order.
        hidden : ndarray of int
            Rows whose label is hidden, in order. Both together are the labelled rows, or all rows `with_unlabeled`.
        """
        labels = encode_labels(y)
        counts = np.bincount(labels.codes[labels.labeled])
        if counts.max() < 2:
            raise InputError(
                f"no label of y can be hidden: each of the {len(counts)} classes has one label, "
                "which must be kept. Give at least one class two labels."
            )
        rng = check_random_state(self.random_state)
        members = [np.flatnonzero(labels.codes == code) for code in range(len(counts))]
        for _ in range(self.get_n_splits()):
            sizes = _hidden_counts(counts, self.hidden, rng)
            drawn = [rng.permutation(rows)[:size] for rows, size in zip(members, sizes, strict=True)]
            hidden = np.sort(np.concatenate(drawn))
            rows = np.arange(len(labels.codes)) if self.with_unlabeled else labels.labeled
            yield np.setdiff1d(rows, hidden), hidden


def _hidden_counts(counts: np.ndarray, share: float, rng: np.random.RandomState) -> np.ndarray:
    """Number of labels to hold out per class, never all of a class.

    Shares are rounded down; the remainder is drawn with the fractions as weights, then from classes with labels left.
    """
    room = counts - 1
    total = min(max(1, round(share * counts.sum())), room.sum())
    sizes = np.minimum(np.floor(share * counts).astype(int), room)
    wanted = np.maximum(share * counts - sizes, 0)
    while sizes.sum() < total:
        open_to = sizes < room
        weights = np.where(open_to, wanted, 0)
        if not weights.any():
            weights = open_to.astype(float)
        chosen = rng.choice(len(counts), p=weights / weights.sum())
        sizes[chosen] += 1
        wanted[chosen] = 0
    return sizes


def hidden_label_score(
    estimator: Any,
    X: Any,
    y: Any,
    splitter: Any = None,
    *,
    scoring: Scoring = "accuracy",
    n_jobs: int | None = None,
) -> np.ndarray:
    """Scores of an estimator on held-out labels.

    Parameters
    ----------
    estimator : object
        A semi-supervised estimator, or a pipeline that ends in one. It is cloned, not changed.
    X : array-like of shape (n_rows, n_features), or whatever the estimator takes
        Passed on unchanged, all rows at once.
    y : array-like of shape (n_rows,)
        Labels, with a marker where a row is unlabelled.
    splitter : HiddenLabelSplit or the like, optional
        Yields pairs (kept, hidden) of labelled rows. Default: ``HiddenLabelSplit(random_state=0)``.
    scoring : {"accuracy", "log_loss", "nmi", "ari"} or callable, default="accuracy"
        Greater is better, so "log_loss" is the mean log-probability of the held-out labels, the negative log loss. A
        callable is called with the true and the found labels of the held-out rows, like scikit-learn's metrics.
        A row left unlabelled counts as wrong. A distribution that is NaN or zero counts as probability 0.
    n_jobs : int, optional
        Processes to use, through joblib.

    Returns
    -------
    ndarray of float, one score per split

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.semi_supervised import LabelSpreading
    >>> from otprop.model_selection import hidden_label_score
    >>> X, y = load_iris(return_X_y=True)
    >>> y[np.arange(len(y)) % 5 != 0] = -1
    >>> scores = hidden_label_score(LabelSpreading(gamma=5), X, y)
    >>> len(scores), bool(scores.mean() > 0.8)
    (5, True)
    """
    _check_scoring(scoring)
    labels = encode_labels(y, _unlabeled_of(estimator))
    splits = _splits(splitter, X, labels)
    results = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(estimator, {}, X, labels, hidden, scoring) for hidden in splits
    )
    return np.array([score for score, _ in results])


def _splits(splitter: Any, X: Any, labels: Labels) -> list[np.ndarray]:
    """The held-out rows of all splits, the same for every candidate; the splitter gets class numbers and -1."""
    if splitter is None:
        splitter = HiddenLabelSplit(random_state=0)
    splits = [np.asarray(hidden) for _, hidden in splitter.split(X, labels.codes)]
    for hidden in splits:
        kept = np.delete(labels.codes, hidden)
        if len(hidden) == 0 or (labels.codes[hidden] == UNLABELED).any() or not np.isin(labels.codes, kept).all():
            splits = []
    if not splits:
        raise InputError(
            f"splitter={splitter!r} must yield pairs (kept, hidden) of labelled rows, with at least one hidden "
            "and one kept label of every class, as HiddenLabelSplit does."
        )
    return splits


def _unlabeled_of(estimator: Any) -> Any:
    """The estimator's parameter `unlabeled`; "auto" if it has none."""
    return getattr(_last_step(estimator), "unlabeled", "auto")


def _last_step(estimator: Any) -> Any:
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def _fit_and_score(
    estimator: Any, params: Params, X: Any, labels: Labels, hidden: np.ndarray, scoring: Scoring
) -> tuple[float, float]:
    """Fit with some labels held out; return the score on them, and the seconds of the fit."""
    codes = labels.codes.copy()
    codes[hidden] = UNLABELED
    start = time.perf_counter()
    try:
        fitted = clone(estimator).set_params(**params).fit(X, labels.decode(codes))
    except Exception as error:
        error.add_note(f"while {type(estimator).__name__} was fitted with {params} and hidden labels")
        raise
    seconds = time.perf_counter() - start
    score = _score(_last_step(fitted), labels, hidden, scoring)
    if np.isnan(score):
        raise InputError(f"scoring={scoring!r} gave NaN for {params}: there is no best of such scores.")
    return score, seconds


def _score(fitted: Any, labels: Labels, hidden: np.ndarray, scoring: Scoring) -> float:
    true = labels.codes[hidden]
    if scoring == "log_loss":
        return _mean_log_probability(np.asarray(fitted.label_distributions_), true, hidden, len(labels.classes))
    found = np.asarray(fitted.transduction_)[hidden]
    if callable(scoring):
        return float(scoring(labels.classes[true], found))
    number = {label: code for code, label in enumerate(labels.classes.tolist())}
    codes = np.array([number.get(label, UNLABELED) for label in found.tolist()])
    if scoring == "accuracy":
        return float(np.mean(codes == true))
    return float((normalized_mutual_info_score if scoring == "nmi" else adjusted_rand_score)(true, codes))


def _check_scoring(scoring: Any) -> None:
    if not callable(scoring) and scoring not in ("accuracy", "log_loss", "nmi", "ari"):
        accepted = "'accuracy', 'log_loss', 'nmi', 'ari' or a callable (true, found)"
        raise InputError(f"scoring={scoring!r} is not a score. Accepted: {accepted}.")


def _mean_log_probability(distributions: np.ndarray, true: np.ndarray, rows: np.ndarray, n_classes: int) -> float:
    if distributions.ndim != 2 or distributions.shape[1] != n_classes:
        raise InputError(f"label_distributions_ should have {n_classes} columns, found shape {distributions.shape}.")
    chosen = np.nan_to_num(distributions[rows].astype(np.float64), nan=0.0)
    sums = chosen.sum(axis=1)
    probability = chosen[np.arange(len(rows)), true] / np.where(sums > 0, sums, 1)
    return float(np.mean(np.log(np.maximum(probability, np.finfo(np.float64).eps))))


def _results(candidates: list[Params], scores: np.ndarray, seconds: np.ndarray) -> dict[str, Any]:
    """The candidates and their scores, with the names of ``GridSearchCV``."""
    means = scores.mean(axis=1)
    results: dict[str, Any] = {"params": candidates, "mean_fit_time": seconds.mean(axis=1)}
    for name in sorted({name for params in candidates for name in params}):
        column = np.ma.masked_all(len(candidates), dtype=object)
        for i, params in enumerate(candidates):
            if name in params:
                column[i] = params[name]
        results[f"param_{name}"] = column
    results |= {f"split{i}_test_score": scores[:, i] for i in range(scores.shape[1])}
    rounding = 1e-12 * np.maximum(1, np.abs(means))
    ranks = 1 + np.sum(means[None, :] > (means + rounding)[:, None], axis=1)
    return results | {"mean_test_score": means, "std_test_score": scores.std(axis=1), "rank_test_score": ranks}


def _best(candidates: list[Params], ranks: np.ndarray, default: Params) -> int:
    """The first of the best, or the default if it is one of them: with few labels there are many ties."""
    best = np.flatnonzero(ranks == 1)
    same = (i for i in best if all(np.all(default[name] == value) for name, value in candidates[i].items()))
    return int(next(same, best[0]))


def _delegates(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), method)

    return check


class HiddenLabelSearch(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Search for the parameters with the best score on held-out labels.

    Like scikit-learn's ``GridSearchCV``, but every candidate is fitted on all rows, with part of the labels
    held out. If there are too few labels to hold out any, the default is used and `chosen_by_` is "default".

    Parameters
    ----------
    estimator : object
        A semi-supervised estimator, or a pipeline that ends in one.
    param_grid : dict or list of dict
        Values to try for each parameter, as in ``ParameterGrid``.
    splitter : HiddenLabelSplit or the like, optional
        Chooses the labels to hold out. Default: ``HiddenLabelSplit(random_state=0)``.
    scoring : {"accuracy", "log_loss", "nmi", "ari"} or callable, default="accuracy"
        See `hidden_label_score`; greater is better.
    default : dict, optional
        Parameters to use if there are too few labels, and to prefer among equally good ones. Default: those of
        `estimator`.
    min_labels : int, default=1
        The search takes place only if every class has this many labels. With 1, classes with a single label
        are allowed (it is never held out) as long as another class has two.
    refit : bool, default=True
        Fit the chosen parameters with all labels at the end.
    n_jobs : int, optional
        Processes to use, through joblib. The result does not depend on it.

    Attributes
    ----------
    chosen_by_ : {"hidden labels", "default"}
    best_params_ : dict
    best_score_ : float
        Mean score of the chosen candidate, NaN if the default was used.
    cv_results_ : dict of arrays
        As in ``GridSearchCV``, one entry per candidate; no entries if the default was used.
    n_splits_ : int
    best_estimator_ : object
        Fitted with all labels; only with `refit`, like the next three.
    transduction_, label_distributions_, classes_ : ndarray
        Of `best_estimator_`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.semi_supervised import LabelSpreading
    >>> from otprop.model_selection import HiddenLabelSearch
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(len(truth)) % 5 == 0, truth, -1)
    >>> search = HiddenLabelSearch(LabelSpreading(), {"gamma": [1e-6, 5.0]}).fit(X, y)
    >>> search.best_params_, search.chosen_by_
    ({'gamma': 5.0}, 'hidden labels')
    >>> bool(np.mean(search.transduction_ == truth) > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        splitter: Any = None,
        scoring: Scoring = "accuracy",
        default: Mapping[str, Any] | None = None,
        min_labels: int = 1,
        refit: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.splitter = splitter
        self.scoring = scoring
        self.default = default
        self.min_labels = min_labels
        self.refit = refit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the parameters, then label every row with them.

        Parameters
        ----------
        X, y
            As the estimator takes them; `y` with a marker where a row is unlabelled.

        Returns
        -------
        self
        """
        _check_scoring(self.scoring)
        candidates = list(ParameterGrid(self.param_grid))
        default = dict(self.default or {})
        for params in [default, *candidates]:  # refuse unknown parameters before anything runs
            clone(self.estimator).set_params(**params)
        labels = encode_labels(y, _unlabeled_of(self.estimator))
        counts = np.bincount(labels.codes[labels.labeled])
        if counts.max() < 2 or counts.min() < self.min_labels:
            self.chosen_by_, self.best_params_ = "default", default
            self.best_score_, self.n_splits_ = float("nan"), 0
            self.cv_results_: dict[str, Any] = {"params": []}
        else:
            self._search(X, labels, candidates, default)
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y)
        return self

    def _search(self, X: Any, labels: Labels, candidates: list[Params], default: Params) -> None:
        splits = _splits(self.splitter, X, labels)
        results = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_score)(self.estimator, params, X, labels, hidden, self.scoring)
            for params in candidates
            for hidden in splits
        )
        scores, seconds = np.array(results).reshape(len(candidates), len(splits), 2).transpose(2, 0, 1)
        self.cv_results_ = _results(candidates, scores, seconds)
        best = _best(candidates, self.cv_results_["rank_test_score"], self.estimator.get_params() | default)
        self.chosen_by_, self.best_params_ = "hidden labels", candidates[best]
        self.best_score_, self.n_splits_ = float(self.cv_results_["mean_test_score"][best]), len(splits)

    @property
    def classes_(self) -> np.ndarray:
        return self._refitted().classes_

    @property
    def transduction_(self) -> np.ndarray:
        return self._refitted().transduction_

    @property
    def label_distributions_(self) -> np.ndarray:
        return self._refitted().label_distributions_

    @property
    def n_features_in_(self) -> int:
        self._refitted()
        return self.best_estimator_.n_features_in_

    def _refitted(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("there is no fitted estimator: this search was made with refit=False.")
        return _last_step(self.best_estimator_)

    @available_if(_delegates("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row of `X`, by `best_estimator_`."""
        self._refitted()
        return self.best_estimator_.predict(X)

    @available_if(_delegates("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of each row of `X`, by `best_estimator_`."""
        self._refitted()
        return self.best_estimator_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags = inner.classifier_tags
        tags.input_tags = inner.input_tags
        return tags
