"""Error rate of the propagated labels: estimate and 90 % interval.

The error on held-out labels is a biased estimate of the error on the unlabelled rows, for four reasons:

- weights, powers and settings are chosen on the held-out labels: so each label is judged by choices made without its
  group (cross-fitting);
- classes that no label has shown have rows, which all get a wrong label: their share is estimated by the share of the
  labels whose class was seen once (Good and Turing);
- with few labels, held-out labels look easier than the rows;
- the fit varies with the draw of the labels, so that the error varies more than independent trials would.

The first two are computed. The last two are constants learnt on development tables (benchmarks/error_prior.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit

from otprop._saving import saved_as

LEVEL = 0.9  # of the intervals
SHIFT_LABELS = 20.0  # number of labels at which the shift of the prior applies in full
MIN_SHIFT_LABELS = 14.0  # with fewer labels the shift does not grow further
CHOSEN_WORTH = 0.2  # of a label that was chosen, in labels drawn at random, for the width of the interval


@dataclass(frozen=True)
class ErrorPrior:
    """Constants learnt on development tables.

    Attributes
    ----------
    trust : float, weight of the held-out error, in log-odds; the rest is that of the class probabilities
    shift : float, added to the log-odds of the error with SHIFT_LABELS labels; half of it with twice as many
    worth : float, how many independent trials one label is worth
    partial : float, by how much less is known about half of the rows than half of the labels could tell
    """

    trust: float
    shift: float
    worth: float
    partial: float


PRIOR = ErrorPrior(trust=0.2, shift=0.34, worth=0.75, partial=0.4)


@saved_as("otp.error_evidence", nan=("held_out", "doubt", "unseen"))
@dataclass(frozen=True)
class ErrorEvidence:
    """What a fit knows about its error.

    Attributes
    ----------
    held_out : float, cross-fitted error rate of the held-out labels; NaN where there is none
    doubt : float, mean over the unlabelled rows of the probability of all classes but the best
    unseen : float, share of the rows whose class no label shows
    n_labels : float, effective number of labels behind the estimate
    n_classes : int
    n_rows : int, number of unlabelled rows
    n_chosen : float, number of labels that were chosen: the fit learns from them, the held-out error does not
    """

    held_out: float
    doubt: float
    unseen: float
    n_labels: float
    n_classes: int
    n_rows: int
    n_chosen: float = 0.0


@saved_as("otp.error_estimate", infinite=("concentration",))
@dataclass(frozen=True)
class ErrorEstimate:
    """Expected error rate of some rows, and how well it is known.

    Attributes
    ----------
    expected : float
    concentration : float
        The error rate has a Beta distribution with the mean `expected` and this concentration; 0: nothing is known.
    n_rows : int, number of the rows; with few of them their error varies about the rate
    evidence : ErrorEvidence or None, what it was estimated from

    Examples
    --------
    >>> from otprop import OTP
    >>> model = OTP().fit([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None])
    >>> model.error_.n_rows, model.error_.interval == model.error_range_
    (2, True)
    """

    expected: float
    concentration: float
    n_rows: int
    evidence: ErrorEvidence | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the error rate of these rows."""
        return error_interval(self.expected, self.concentration, self.n_rows)

    def of_part(self, expected: float, n_rows: int) -> ErrorEstimate:
        """The estimate for a part of the rows with a known expected error.

        A part of the rows has that part of the labels to tell its error, and how the error is divided between it and
        the rest is known less well than the whole.
        """
        share = min(n_rows / max(self.n_rows, 1), 1.0)  # rows may have come later
        known = self.concentration * share / (1.0 + 4.0 * PRIOR.partial * share * (1.0 - share))
        return ErrorEstimate(expected, known, n_rows)


def unseen_share(n_once: int, n_drawn: int) -> float:
    """Share of the rows whose class no label shows: that of the labels whose class was seen once (Good 1953).

    0 where every class has one label: such labels were hardly drawn at random.
    """
    return n_once / n_drawn if n_once < n_drawn else 0.0


def weighted_error(right: np.ndarray, rows_per_label: np.ndarray) -> float:
    """Error rate of held-out labels, each weighted by the rows it stands for; NaN without labels."""
    total = rows_per_label.sum()
    return float((1.0 - right) @ rows_per_label / total) if total > 0 else float("nan")


def effective_number(weights: np.ndarray) -> float:
    """The number of equal weights that are worth as much as these."""
    return float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0


def without_chosen(error: float, n_left: int, n_chosen: int, n_missed: float) -> float:
    """Error rate of the rows that are left once some were chosen and labelled.

    Labels drawn at random tell the error of the rows left and the chosen ones together; `n_missed` of the chosen
    ones would have been wrong.
    """
    if n_left == 0 or n_chosen == 0 or np.isnan(error):
        return error
    return min(max(((n_left + n_chosen) * error - n_missed) / n_left, 0.0), 1.0)


def estimate_error(evidence: ErrorEvidence, prior: ErrorPrior = PRIOR) -> ErrorEstimate:
    """Expected error of the unlabelled rows; by the class probabilities alone where no label was held out."""
    if np.isnan(evidence.held_out):
        return ErrorEstimate(evidence.doubt, 0.0, evidence.n_rows, evidence)
    expected = expected_error(
        evidence.held_out,
        evidence.doubt,
        evidence.unseen,
        evidence.n_labels,
        evidence.n_classes,
        evidence.n_chosen,
        prior=prior,
    )
    n_labels = evidence.n_labels + CHOSEN_WORTH * evidence.n_chosen
    return ErrorEstimate(float(expected), prior.worth * n_labels, evidence.n_rows, evidence)


def expected_error(
    held_out: Any,
    doubt: Any,
    unseen: Any,
    n_labels: Any,
    n_classes: Any,
    n_chosen: Any = 0.0,
    *,
    prior: ErrorPrior = PRIOR,
) -> np.ndarray:
    """Expected error from the values of `ErrorEvidence`, numbers or arrays.

    A weighted mean, in log-odds, of the held-out error and of the doubt in the probabilities, both with the rows of
    unseen classes counted as wrong, plus a shift that fades with the number of labels. At most that of a guess. The
    probabilities come from a fit to all labels, so that chosen ones count for the doubt and the shift.
    """
    n_all = n_labels + n_chosen
    log_odds = [_log_odds(unseen + (1.0 - unseen) * error, n) for error, n in ((held_out, n_labels), (doubt, n_all))]
    shift = SHIFT_LABELS / np.maximum(n_all, MIN_SHIFT_LABELS) * prior.shift
    guess = 1.0 - (1.0 - unseen) / np.maximum(n_classes, 2)
    return np.minimum(expit(np.dot((prior.trust, 1.0 - prior.trust), log_odds) + shift), guess)


def _log_odds(error: Any, n_labels: Any) -> np.ndarray:
    """Log-odds of an error rate, with half a label added to either side."""
    return np.asarray(logit((error * n_labels + 0.5) / (n_labels + 1.0)))


def error_interval(expected: float, concentration: float, n_rows: float, level: float = LEVEL) -> tuple[float, float]:
    """Central interval of the error rate of some rows.

    The rate has a Beta distribution and the rows' error is binomial about it; the interval is that of the Beta
    distribution with the mean and variance of both together. It starts at 0 where less than one wrong label was to be
    seen, and is (0, 1) where nothing is known.
    """
    if concentration <= 0 or n_rows <= 0:
        return 0.0, 1.0
    mean = min(max(expected, 1e-9), 1.0 - 1e-9)
    variance = 1.0 / (concentration + 1.0)
    both = max(1.0 / (variance + (1.0 - variance) / n_rows) - 1.0, 1e-3)  # the concentration with that variance
    tail = (1.0 - level) / 2
    low, high = betaincinv(mean * both, (1.0 - mean) * both, np.array([tail, 1.0 - tail]))
    if mean * concentration < 1.0:
        low = 0.0
    return float(min(low, expected)), float(max(high, expected))
