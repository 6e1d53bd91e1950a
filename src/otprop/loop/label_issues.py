"""Given labels that look wrong, from the class probabilities of rows whose label was held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._saving import saved_as

SUREST = 0.2  # share of the labels with the surest class; a contradiction there is a wrong label, not a hard row
PRIOR_WRONG, PRIOR_RIGHT = 1.0, 24.0  # Beta prior of the share of wrong labels: 4 %, worth 25 labels
MAX_WRONG = 0.4  # upper bound of the estimated share of wrong labels
NOISE_DISCOUNT = 0.8  # part of the share of wrong labels to subtract; the classifiers smooth away the rest
LOOKS_WRONG = 0.3  # a given label looks wrong from this probability on
DOWNWEIGHT_FROM = 0.2  # a label counts less from this probability of being wrong on
MIN_SHARE_KEPT = 0.02  # of the probability of a class, after the share of wrong labels is subtracted


@saved_as("otp.label_issue")
@dataclass(frozen=True)
class LabelIssue:
    """A given label that the evidence contradicts.

    Attributes
    ----------
    row : int, counted from 0; in `LabelResult.label_issues` the entry of the DataFrame's index
    given : the label in y
    suggested : the most probable class without it
    probability : float, that the given label is wrong

    Examples
    --------
    >>> import numpy as np
    >>> from otprop import OTP
    >>> X = np.linspace(0, 1, 20)[:, None] + np.repeat([0, 5], 10)[:, None]
    >>> y = np.repeat(["left", "right"], 10)
    >>> y[3] = "right"  # wrong
    >>> issue = OTP().fit(X, y).label_issues_[0]
    >>> issue.row, str(issue.given), str(issue.suggested)
    (3, 'right', 'left')
    """

    row: Any
    given: Any
    suggested: Any
    probability: float


def wrong_label_probabilities(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Probability that each given label is wrong.

    A label is wrong with probability r, and is then any of the other classes with equal probability. The class
    probabilities were fitted to such labels. Subtracting the share of wrong labels gives the probabilities of the true
    class.

    Parameters
    ----------
    probabilities : ndarray of shape (n_labels, n_classes), class probabilities of each row without its own label
    codes : ndarray of int of shape (n_labels,), the given classes

    Returns
    -------
    ndarray of shape (n_labels,)
    """
    n_classes = probabilities.shape[1]
    if n_classes < 2 or len(codes) == 0:
        return np.zeros(len(codes))
    rate = wrong_share(probabilities, codes)
    as_given = probabilities[np.arange(len(codes)), codes]
    own = _without_wrong_labels(as_given, NOISE_DISCOUNT * rate / (n_classes - 1), n_classes)
    wrong = rate * (1.0 - own) / (n_classes - 1)
    return np.asarray(wrong / np.maximum(wrong + (1.0 - rate) * own, np.finfo(float).tiny))


def wrong_share(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """The share of wrong labels: those that contradict the surest class probabilities, with a prior of 4 %.

    If classes overlap, right labels contradict the probabilities too. The surest rows are outside the overlap.
    """
    surest = np.argsort(-probabilities.max(axis=1), kind="stable")[: int(np.ceil(SUREST * len(probabilities)))]
    n_contradicted = int(np.count_nonzero(probabilities[surest].argmax(axis=1) != codes[surest]))
    return min((n_contradicted + PRIOR_WRONG) / (len(surest) + PRIOR_WRONG + PRIOR_RIGHT), MAX_WRONG)


def label_trust(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """How much each given label counts: 1, or the probability that it is right if the others contradict it.

    A class with half of its labels contradicted is rare or hard, not mislabelled: its labels count in full.
    """
    if len(codes) == 0:
        return np.ones(0)
    wrong = wrong_label_probabilities(probabilities, codes)
    contradicted = probabilities.argmax(axis=1) != codes
    n_classes = probabilities.shape[1]
    counts, n_contradicted = (np.bincount(codes[rows], minlength=n_classes) for rows in (slice(None), contradicted))
    is_hard = 2 * n_contradicted >= counts
    return np.where((wrong >= DOWNWEIGHT_FROM) & contradicted & ~is_hard[codes], 1.0 - wrong, 1.0)


def _without_wrong_labels(as_given: np.ndarray, share: float, n_classes: int) -> np.ndarray:
    """Probability that the given class is the true one, each other class being written with probability `share`."""
    return np.clip((as_given - share) / (1.0 - n_classes * share), MIN_SHARE_KEPT * as_given, 1.0)


def find_label_issues(
    rows: np.ndarray, probabilities: np.ndarray, codes: np.ndarray, classes: np.ndarray
) -> list[LabelIssue]:
    """The labels that the evidence contradicts, the most doubtful first."""
    wrong = wrong_label_probabilities(probabilities, codes)
    best = probabilities.argmax(axis=1)
    doubtful = np.flatnonzero(best != codes)
    doubtful = doubtful[np.argsort(-wrong[doubtful], kind="stable")]
    return [
        LabelIssue(int(rows[place]), classes[codes[place]], classes[best[place]], float(wrong[place]))
        for place in doubtful
    ]
