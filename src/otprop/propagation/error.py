"""Error rate of the propagated labels: estimate and 90 % interval.

The error on held-out labels is a biased estimate of the error on the unlabelled rows, for five reasons:

- weights, powers and settings are chosen on the held-out labels; each label is therefore judged by choices made
  without its group (cross-fitting);
- rows of classes without any label all get a wrong label; their share is estimated by the share of the labels whose
  class was seen once (Good and Turing);
- a right answer to a wrong label counts as an error; the share of wrong labels is estimated (see `wrong_labels`);
- with few labels, held-out labels look easier than the rows;
- the fit varies with the draw of the labels, so the error varies more than independent trials would.

The first three are computed. The last two are constants learnt on development tables (benchmarks/error_prior.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit

from otprop._saving import saved_as
from otprop.evidence.held_out import anova_correlation
from otprop.propagation.wrong_labels import NONE_WRONG, WrongLabels

LEVEL = 0.9  # of the intervals
SHIFT_LABELS = 20.0  # number of labels at which the shift of the prior applies in full
MIN_SHIFT_LABELS = 14.0  # with fewer labels, the shift is that of this many
USUAL_CORRELATION, USUAL_GROUPS = 0.2, 5.0  # prior correlation of errors within a group, and its weight in groups
CHOSEN_WORTH = 0.2  # of a chosen label, in random labels, for the width of the interval


@dataclass(frozen=True)
class ErrorPrior:
    """Constants learnt on development tables.

    Attributes
    ----------
    trust : float, weight of the held-out error, in log-odds; the class probabilities have the rest
    shift : float, added to the log-odds of the error with SHIFT_LABELS labels; half of it with twice as many
    worth : float, how many independent trials one label is worth
    partial : float, how much less is known about half of the rows than half of the labels would tell
    """

    trust: float
    shift: float
    worth: float
    partial: float


PRIOR = ErrorPrior(trust=0.23, shift=0.26, worth=0.7, partial=0.4)


@dataclass(frozen=True)
class ApartPrior:
    """Constants for labels held out in groups or clusters, learnt on tables whose labels were not drawn at random.

    Attributes
    ----------
    trust, shift : float, as in `ErrorPrior`; the shift does not fade with the number of labels
    concentration : float, of the error rate with any number of labels: how much two parts of a table differ in error
    """

    trust: float
    shift: float
    concentration: float


GROUPED = ApartPrior(trust=0.4, shift=0.35, concentration=20.0)  # labels held out in the user's groups
SHIFTED = ApartPrior(trust=0.5, shift=0.6, concentration=15.0)  # labelled rows differ from the others
CONTRADICTED = 2.5  # if the held-out error exceeds the doubt by more standard errors, it alone counts


@saved_as("otp.error_evidence", nan=("held_out", "doubt", "unseen"))
@dataclass(frozen=True)
class ErrorEvidence:
    """The input of the error estimate.

    Attributes
    ----------
    held_out : float, cross-fitted error rate of the held-out labels; NaN without held-out labels
    doubt : float, mean over the unlabelled rows of the probability of all classes but the best
    unseen : float, share of the rows whose class has no label
    n_labels : float, effective number of labels behind the estimate
    n_classes : int
    n_rows : int, number of unlabelled rows
    n_chosen : float, number of labels that were chosen: the fit learns from them, the held-out error does not
    grouped : bool, whether labels were held out in whole groups
    shifted : bool, whether labelled and unlabelled rows differ by more than chance
    explained : bool, whether rows differ from the labelled ones, and class shares or new classes explain it
    wrong_share : float, estimated share of wrong labels
    """

    held_out: float
    doubt: float
    unseen: float
    n_labels: float
    n_classes: int
    n_rows: int
    n_chosen: float = 0.0
    grouped: bool = False
    shifted: bool = False
    explained: bool = False
    wrong_share: float = 0.0


@saved_as("otp.error_estimate", infinite=("concentration",))
@dataclass(frozen=True)
class ErrorEstimate:
    """Expected error rate of some rows, and its uncertainty.

    Attributes
    ----------
    expected : float
    concentration : float
        The error rate has a Beta distribution with the mean `expected` and this concentration; 0: nothing is known.
    n_rows : int, number of the rows; the error of few rows varies around the rate
    evidence : ErrorEvidence or None, the input of the estimate

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

        A part of the rows has only that part of the labels to estimate its error. How the error is divided between the
        part and the rest is less certain than the total.
        """
        share = min(n_rows / max(self.n_rows, 1), 1.0)  # rows may have been added later
        known = self.concentration * share / (1.0 + 4.0 * PRIOR.partial * share * (1.0 - share))
        return ErrorEstimate(expected, known, n_rows)


def unseen_share(n_once: int, n_drawn: int) -> float:
    """Share of the rows whose class has no label: the share of labels whose class was seen once (Good 1953).

    0 if every class has one label: such labels were probably not drawn at random.
    """
    return n_once / n_drawn if n_once < n_drawn else 0.0


def weighted_error(right: np.ndarray, rows_per_label: np.ndarray) -> float:
    """Error rate of held-out labels, each weighted by the rows it represents; NaN without labels."""
    total = rows_per_label.sum()
    return float((1.0 - right) @ rows_per_label / total) if total > 0 else float("nan")


def effective_number(weights: np.ndarray) -> float:
    """The number of equal weights that are worth as much as these."""
    return float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0


def intraclass_correlation(wrong: np.ndarray, groups: np.ndarray) -> float:
    """Correlation of the errors within a group, 0 to 1: one-way analysis of variance, shrunk towards a prior value.

    The prior `USUAL_CORRELATION` counts as much as `USUAL_GROUPS` groups.
    """
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_rows, n_groups = len(wrong), len(sizes)
    found = 0.0
    if 1 < n_groups < n_rows:
        means = np.bincount(number, wrong) / sizes
        between, within = float(sizes @ (means - wrong.mean()) ** 2), float(((wrong - means[number]) ** 2).sum())
        correlation = anova_correlation(between, within, sizes)
        found = USUAL_CORRELATION if correlation is None else max(correlation, 0.0)
    return (n_groups * found + USUAL_GROUPS * USUAL_CORRELATION) / (n_groups + USUAL_GROUPS)


def without_chosen(error: float, n_left: int, n_chosen: int, n_missed: float) -> float:
    """Error rate of the rows left after some were chosen and labelled.

    Random labels estimate the error of the rows left and the chosen rows together. Of the chosen rows, `n_missed`
    would have been wrong.
    """
    if n_left == 0 or n_chosen == 0 or np.isnan(error):
        return error
    return min(max(((n_left + n_chosen) * error - n_missed) / n_left, 0.0), 1.0)


def estimate_error(
    evidence: ErrorEvidence, prior: ErrorPrior = PRIOR, wrong_labels: WrongLabels = NONE_WRONG
) -> ErrorEstimate:
    """Expected error of the unlabelled rows; from the class probabilities alone if no label was held out.

    Held-out labels of a single class say nothing either. `wrong_labels` do not count if labels were held out in groups
    or clusters.
    """
    if np.isnan(evidence.held_out) or evidence.n_classes < 2:
        return ErrorEstimate(evidence.doubt, 0.0, evidence.n_rows, evidence)
    if evidence.grouped or evidence.shifted:
        return _estimate_apart(evidence, SHIFTED if evidence.shifted else GROUPED, prior.worth)
    found = _expected_with_wrong_labels(evidence, wrong_labels.shares, prior)
    expected = float(wrong_labels.weights @ found)
    concentration = prior.worth * (evidence.n_labels + CHOSEN_WORTH * evidence.n_chosen)
    if evidence.explained and concentration > 0:
        concentration = 1.0 / (1.0 / concentration + 1.0 / SHIFTED.concentration)
    spread = expected * (1.0 - expected)
    if spread > 0 and len(found) > 1:
        of_shares = float(wrong_labels.weights_in_range @ (found - expected) ** 2)
        variance = spread / (concentration + 1.0) + of_shares
        concentration = max(spread / variance - 1.0, 0.0)
    return ErrorEstimate(expected, concentration, evidence.n_rows, evidence)


def _expected_with_wrong_labels(evidence: ErrorEvidence, shares: np.ndarray, prior: ErrorPrior) -> np.ndarray:
    """Expected errors, given shares of wrong labels.

    Held-out labels count a right answer to a wrong label as an error, and the probabilities were fitted to wrong
    labels. With a share r of wrong labels, each of any other class, an error e shows as ``e + r (1 - e K / (K - 1))``.
    """
    others = evidence.n_classes / max(evidence.n_classes - 1.0, 1.0)
    held_out, doubt = (
        np.clip((each - shares) / (1.0 - shares * others), 0.0, 1.0) for each in (evidence.held_out, evidence.doubt)
    )
    n_labels, n_chosen = evidence.n_labels, evidence.n_chosen
    return expected_error(held_out, doubt, evidence.unseen, n_labels, evidence.n_classes, n_chosen, prior=prior)


def _estimate_apart(evidence: ErrorEvidence, apart: ApartPrior, worth: float) -> ErrorEstimate:
    """Expected error if labels were held out in groups or clusters."""
    unseen, n_labels = evidence.unseen, evidence.n_labels
    log_odds = [_log_odds(unseen + (1.0 - unseen) * each, n_labels) for each in (evidence.held_out, evidence.doubt)]
    expected = expit(np.dot((apart.trust, 1.0 - apart.trust), log_odds) + apart.shift)
    concentration = 1.0 / (1.0 / max(worth * n_labels, 1e-9) + 1.0 / apart.concentration)
    return ErrorEstimate(float(expected), concentration, evidence.n_rows, evidence)


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

    It is a weighted mean, in log-odds, of the held-out error and the doubt of the probabilities, plus a shift that
    fades with the number of labels. Rows of unseen classes count as wrong in both. It is at most the error of a random
    guess. The probabilities come from a fit to all labels, so chosen labels count for the doubt and the shift. A
    held-out error far above the doubt contradicts the probabilities and is used alone.
    """
    spread = np.sqrt(
        np.maximum(held_out * (1.0 - held_out), 1.0 / np.maximum(n_labels, 1.0)) / np.maximum(n_labels, 1.0)
    )
    contradicted = held_out - doubt > CONTRADICTED * spread
    n_all = n_labels + n_chosen
    log_odds = [_log_odds(unseen + (1.0 - unseen) * error, n) for error, n in ((held_out, n_labels), (doubt, n_all))]
    shift = SHIFT_LABELS / np.maximum(n_all, MIN_SHIFT_LABELS) * prior.shift
    guess = 1.0 - (1.0 - unseen) / np.maximum(n_classes, 2)
    found = np.minimum(expit(np.dot((prior.trust, 1.0 - prior.trust), log_odds) + shift), guess)
    return np.where(contradicted, np.maximum(expit(log_odds[0]), found), found)


def _log_odds(error: Any, n_labels: Any) -> np.ndarray:
    """Log-odds of an error rate, with half a label added to either side."""
    return np.asarray(logit((error * n_labels + 0.5) / (n_labels + 1.0)))


def error_interval(expected: float, concentration: float, n_rows: float, level: float = LEVEL) -> tuple[float, float]:
    """Central interval of the error rate of some rows.

    The rate has a Beta distribution, and the number of wrong rows is binomial given the rate. The interval is that of
    the Beta distribution with the mean and variance of both together. It starts at 0 if less than one wrong label was
    to be expected, and is (0, 1) if nothing is known.
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
