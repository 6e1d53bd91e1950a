"""What held-out labels guarantee: sets of classes that hold the true one, and a confidence that bounds the error.

Both assume that the labels were drawn at random from the rows (exchangeable): what holds for a label that was held out
then holds for a row. Chosen labels are skipped; labels of a group count as fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from otprop.propagation.class_errors import JudgedLabels
from otprop.propagation.error import effective_number

N_BISECTIONS = 40


@dataclass(frozen=True)
class LabelSets:
    """A set of classes for each row that holds the true class with a given probability.

    The labels must have been drawn at random from the rows. For classes in `by_class` the probability holds for the
    rows of the class; else for all rows together.

    Attributes
    ----------
    members : ndarray of bool of shape (n_rows, n_classes), in the order of ``classes_``; at least one class per row
    coverage : float, the probability
    by_class : ndarray of bool of shape (n_classes,), classes with enough held-out labels for their own threshold
    thresholds : ndarray of shape (n_classes,), least calibrated probability with which a class is in a set
    n_held_out : int, labels that this rests on

    Examples
    --------
    >>> from otprop import OTP
    >>> model = OTP().fit([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None])
    >>> model.label_sets(0.6).members.sum(axis=1).tolist()  # four labels allow no more than 0.8
    [1, 1, 1, 1, 1, 1]
    """

    members: np.ndarray
    coverage: float
    by_class: np.ndarray
    thresholds: np.ndarray
    n_held_out: int


def set_thresholds(judged: JudgedLabels, probabilities: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Least probability of each class in a set, and whether labels of that class alone decided it.

    `probabilities` are the calibrated ones of the judged labels. A threshold of 0 puts the class into every set.
    """
    n_classes = probabilities.shape[1]
    of_true = probabilities[np.arange(len(judged.codes)), judged.codes]
    thresholds = np.full(n_classes, _threshold(of_true, judged.weights, judged.worth, coverage))
    by_class = np.zeros(n_classes, dtype=bool)
    for code in range(n_classes):
        own = judged.codes == code
        if _level(int(own.sum()) * judged.worth, coverage) <= 1.0:
            by_class[code] = True
            thresholds[code] = _threshold(of_true[own], judged.weights[own], judged.worth, coverage)
    return thresholds, by_class


def label_sets(probabilities: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Which classes are in the set of each row; the best one where no other is."""
    members = probabilities >= thresholds
    members[np.arange(len(members)), probabilities.argmax(axis=1)] = True
    return np.asarray(members)


def _level(n_labels: float, coverage: float) -> float:
    """Quantile of the scores of `n_labels` labels that one more label exceeds with probability 1 - coverage."""
    return coverage * (n_labels + 1.0) / n_labels if n_labels > 0 else np.inf


def _threshold(of_true: np.ndarray, weights: np.ndarray, worth: float, coverage: float) -> float:
    level = _level(effective_number(weights) * worth, coverage)
    if level > 1.0:
        return 0.0
    order = np.argsort(-of_true, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(of_true[order][np.searchsorted(reached, level - 1e-12)])


def error_bound(n_wrong: Any, n_labels: Any, level: float) -> np.ndarray:
    """Upper bound of an error rate that holds with probability `level` (Clopper and Pearson), of numbers or arrays."""
    n_right = np.maximum(np.subtract(n_labels, n_wrong), 0.0)
    return np.where(n_right > 0, betaincinv(np.add(n_wrong, 1.0), np.maximum(n_right, 1e-9), level), 1.0)


def labels_for_risk(risk: float, level: float) -> int:
    """How many labels, all of them right, it takes to promise an error of at most `risk`."""
    return int(np.ceil(np.log1p(-level) / np.log1p(-risk) - 1e-9))


def share_for_risk(
    confidence: np.ndarray, right: np.ndarray, judged: JudgedLabels, n_rows: int, risk: float, level: float
) -> float | None:
    """The largest share of the most confident rows whose error is at most `risk` with probability `level`.

    The first share to be tested is the one that would pass most probably if the confidence were true; larger ones
    follow until the first that fails, so that testing many does not weaken the promise. None where the first fails or
    no share has enough labels. With `n_rows` rows in all, their error varies about the rate that the labels bound,
    which counts as fewer labels.
    """
    if not len(confidence):  # no label could be held out
        return None
    order = np.argsort(-confidence, kind="stable")
    weights, ranked = judged.weights[order], confidence[order]
    reached = np.cumsum(weights)
    missed, expected = (np.cumsum(weights * each) / reached for each in (1.0 - right[order], 1.0 - ranked))
    n_labels = reached**2 / np.cumsum(weights**2) * judged.worth
    n_labels = 1.0 / (1.0 / n_labels + reached[-1:] / (reached * max(n_rows, 1)))
    ends = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], True)[: len(ranked)])
    ends = ends[n_labels[ends] >= labels_for_risk(risk, level)]
    if len(ends) == 0:
        return None
    ends = ends[np.argmax(_pass_probability(expected[ends], n_labels[ends], risk, level)) :]
    failed = np.flatnonzero(error_bound(missed[ends] * n_labels[ends], n_labels[ends], level) > risk)
    n_passed = failed[0] if len(failed) else len(ends)
    return float(reached[ends[n_passed - 1]] / reached[-1]) if n_passed else None


def _pass_probability(error: np.ndarray, n_labels: np.ndarray, risk: float, level: float) -> np.ndarray:
    """Probability that this many labels with this error rate prove an error of at most `risk`."""
    low, high = np.zeros(len(n_labels)), n_labels.copy()
    for _ in range(N_BISECTIONS):  # the most wrong labels with which it is proven
        middle = (low + high) / 2
        proven = error_bound(middle, n_labels, level) <= risk
        low, high = np.where(proven, middle, low), np.where(proven, high, middle)
    most = np.floor(low + 1e-6)
    return np.asarray(betainc(n_labels - most, most + 1.0, 1.0 - error))
