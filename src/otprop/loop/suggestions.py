"""Which rows to label next: uncertain and typical rows of different regions, and some at random."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.random_projection import GaussianRandomProjection

MAX_CLUSTERED = 10_000  # rows that are clustered; from more rows, half are the most uncertain, half random
MAX_FEATURES = 64  # more are projected at random before clustering
MAX_COVERED = 200  # labelled rows whose regions are skipped
MIN_UNCERTAINTY = 1e-3
UNCERTAINTY_POWER = 3.0  # how much more an uncertain row counts in the clustering, with very many labels
LABELS_PER_CLASS = 10.0  # labels per class at which the power is half of that
RANDOM, UNCERTAIN, TYPICAL = "random", "uncertain", "typical"


@dataclass(frozen=True)
class Suggestion:
    """A row to label.

    Attributes
    ----------
    row : int
    reason : {"uncertain", "typical", "random"}
        Mark rows that were not drawn at random as chosen when you pass their labels to a fit.
    uncertainty : float, one minus the gap between the two most probable classes; NaN without a fit

    Examples
    --------
    >>> from otprop import OTP
    >>> X, y = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None]
    >>> suggestion = OTP().fit(X, y).suggest(1, random_share=0)[0]
    >>> suggestion.row in (2, 5), suggestion.chosen
    (True, True)
    """

    row: int
    reason: str
    uncertainty: float

    @property
    def chosen(self) -> bool:
        """Whether the row was picked and not drawn at random."""
        return self.reason != RANDOM


def suggest_rows(
    X: Any,
    candidates: np.ndarray,
    n: int,
    *,
    distributions: np.ndarray | None = None,
    labeled: np.ndarray | None = None,
    typicality: np.ndarray | None = None,
    novelty: np.ndarray | None = None,
    random_share: float = 0.2,
    seed: int | Sequence[int] = 0,
) -> list[Suggestion]:
    """Choose `n` rows to label.

    The rows are clustered into regions, one for each label and requested row, with each row weighted by its
    uncertainty (Zhdanov 2019). In every region without a label, the row with the largest product of uncertainty and
    typicality is suggested (Hacohen, Dekel and Weinshall 2022). With few labels the class probabilities are unreliable,
    and uncertain rows in an overlap of classes teach little, so the weight of uncertainty grows with the number of
    labels. Without class probabilities all rows are equally uncertain. A share of the suggestions is drawn at random
    and spread over the list, so that the expected error can be estimated from them.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    candidates : ndarray of int, the unlabelled rows
    n : int
    distributions : ndarray of shape (n_rows, n_classes) or None, class probabilities of all rows
    labeled : ndarray of int or None, the labelled rows that these were learnt from
    typicality : ndarray of shape (n_rows,) or None, larger in dense regions
    novelty : ndarray of shape (n_rows,) or None, near 1 where a row looks like no labelled class: as good as uncertain
    random_share : float in [0, 1]
    seed : int or sequence of int

    Returns
    -------
    list of Suggestion, at most `n`, in the order in which to label
    """
    rng = np.random.default_rng(seed)
    n = min(n, len(candidates))
    n_random = round(random_share * n)
    uncertainty = np.ones(X.shape[0])
    power = UNCERTAINTY_POWER
    if distributions is not None:
        uncertainty = label_uncertainty(distributions)
        if labeled is not None:
            power *= len(labeled) / (len(labeled) + LABELS_PER_CLASS * distributions.shape[1])
    if novelty is not None:
        uncertainty = np.maximum(uncertainty, novelty)
    drawn = rng.choice(candidates, n_random, replace=False)
    left = np.setdiff1d(candidates, drawn)
    weights = np.maximum(uncertainty, MIN_UNCERTAINTY) ** power
    if labeled is None:
        labeled = np.empty(0, dtype=np.intp)
    elif len(labeled) > MAX_COVERED:
        labeled = rng.choice(labeled, MAX_COVERED, replace=False)
    picked = _pick(X, left, labeled, n - n_random, weights, typicality, rng)
    reason = TYPICAL if distributions is None else UNCERTAIN
    known = distributions is not None
    found = [(int(row), reason) for row in picked]
    for number, row in enumerate(drawn.tolist()):  # spread evenly, so that any first part of the list has its share
        found.insert(round((number + 0.5) * n / max(n_random, 1)), (row, RANDOM))
    return [Suggestion(row, why, float(uncertainty[row]) if known else float("nan")) for row, why in found]


def label_uncertainty(distributions: np.ndarray) -> np.ndarray:
    """One minus the gap between the two most probable classes of each row."""
    if distributions.shape[1] < 2:
        return np.ones(len(distributions))
    best = np.partition(distributions, -2, axis=1)
    return np.asarray(1.0 - (best[:, -1] - best[:, -2]))


def _pick(
    X: Any,
    candidates: np.ndarray,
    labeled: np.ndarray,
    n: int,
    weights: np.ndarray,
    typicality: np.ndarray | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """`n` of the candidates from different regions without a label, those with the largest weight first."""
    if n == 0:
        return np.empty(0, dtype=np.intp)
    if n >= min(len(candidates), MAX_CLUSTERED):  # all of them, or too many for regions
        value = _values(candidates, weights, typicality)
        return candidates[np.argsort(-value, kind="stable")[:n]]
    if len(candidates) > MAX_CLUSTERED:
        half = MAX_CLUSTERED // 2
        order = np.argsort(-weights[candidates], kind="stable")
        candidates = np.concatenate(
            [candidates[order[:half]], rng.choice(candidates[order[half:]], half, replace=False)]
        )
    value = _values(candidates, weights, typicality)
    seed = int(rng.integers(2**31 - 1))
    rows = np.concatenate([candidates, labeled])
    n_regions = min(n + len(labeled), len(candidates))
    from sklearn.cluster import KMeans  # a tenth of a second, which only suggestions need

    model = KMeans(n_regions, n_init=1, max_iter=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer regions than requested, if rows are equal
        region = model.fit_predict(_for_clustering(X[rows], seed), sample_weight=weights[rows])
    n_labels = np.bincount(region[len(candidates) :], minlength=n_regions)
    region = region[: len(candidates)]
    order = np.lexsort((-value, region))
    first = order[np.flatnonzero(np.diff(region[order], prepend=-1))]  # the most valuable row of every region
    mass = np.bincount(region, weights[candidates], minlength=n_regions)
    first = first[np.lexsort((-mass[region[first]], n_labels[region[first]]))]
    rest = np.setdiff1d(order, first)
    more = rest[np.argsort(-value[rest], kind="stable")]  # equal rows make fewer regions
    return candidates[np.concatenate([first, more])[:n]]


def _values(candidates: np.ndarray, weights: np.ndarray, typicality: np.ndarray | None) -> np.ndarray:
    """The value of labelling each candidate: higher for uncertain and typical rows."""
    value = np.sqrt(weights[candidates])
    return np.asarray(value if typicality is None else value * _ranks(typicality[candidates]))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks between 0 and 1, so that a few extreme values do not dominate."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks / len(values)


def _for_clustering(rows: Any, seed: int) -> np.ndarray:
    """Dense rows of bounded width and size."""
    exponent = np.clip(np.frexp(abs(rows).max())[1], -1021, 1023)
    rows = rows / np.ldexp(1.0, exponent)  # exact, and sums of the largest numbers do not overflow
    if rows.shape[1] > MAX_FEATURES:
        rows = GaussianRandomProjection(MAX_FEATURES, random_state=seed).fit_transform(rows)
    rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    largest = np.abs(rows).max(initial=0.0)
    return rows / largest if largest > 0 else rows
