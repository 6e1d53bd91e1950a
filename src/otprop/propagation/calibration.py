"""Confidence: the probability that a label is right, calibrated on held-out labels; coverage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from otprop._saving import saved_as
from otprop.geometry.parallel import single_threaded_blas
from otprop.propagation.error import ErrorEstimate

START_SLOPE = 0.9  # of the log-odds, on development tables
SLOPE_PENALTY = 20.0  # weight of START_SLOPE, in held-out labels
SHIFT_PENALTY = 2.0
MAX_SHIFT, N_BISECTIONS = 16.0, 40
MIN_PROBABILITY = 1e-6
SHARES = (1.0, 0.98, 0.95, 0.92, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


@saved_as("otp.calibration")
@dataclass(frozen=True)
class Calibration:
    """A linear map of the log-odds: ``logit(confidence) = slope * logit(probability) + shift``.

    Attributes
    ----------
    slope, shift : float
    knows_unreached : bool
        Whether held-out labels are unreached by other labels about as often as the rows are. The calibration was then
        fitted to unreached rows too.
    """

    slope: float = 1.0
    shift: float = 0.0
    knows_unreached: bool = False

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """The confidence of labels with these probabilities."""
        return np.asarray(
            expit(self.slope * logit(np.clip(probability, MIN_PROBABILITY, 1 - MIN_PROBABILITY)) + self.shift)
        )


def calibrate(probabilities: np.ndarray, right: np.ndarray, weights: np.ndarray | None = None) -> Calibration:
    """Fit the calibration to held-out labels.

    Parameters
    ----------
    probabilities : ndarray of shape (n_held_out,), of the most probable class of each held-out row
    right : ndarray of shape (n_held_out,), 1 where that is the true class; 1/n where n classes tie
    weights : ndarray of shape (n_held_out,) or None, how many rows each label represents, up to a common factor

    Returns
    -------
    Calibration
    """
    if len(right) == 0 or (weights is not None and not weights.any()):
        return Calibration()
    odds = logit(np.clip(probabilities, MIN_PROBABILITY, 1 - MIN_PROBABILITY))
    right = np.asarray(right, dtype=np.float64)
    each = np.ones(len(right)) if weights is None else weights * (weights.sum() / (weights @ weights))

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = line[0] * odds + line[1]
        penalty = np.array([SLOPE_PENALTY * (line[0] - START_SLOPE), SHIFT_PENALTY * line[1]])
        slope = each * (expit(margin) - right)
        value = each @ (np.logaddexp(0.0, margin) - right * margin)
        value += 0.5 * (penalty @ np.array([line[0] - START_SLOPE, line[1]]))
        return float(value), np.array([slope @ odds, slope.sum()]) + penalty

    start, bounds = np.array([START_SLOPE, 0.0]), [(0.05, 5.0), (-3.0, 3.0)]
    with single_threaded_blas():  # for two numbers, waking threads takes most of the time
        found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return Calibration(float(found[0]), float(found[1]))


@dataclass(frozen=True)
class Coverage:
    """The expected error if only the most confident rows are labelled.

    Attributes
    ----------
    share : float, of the unlabelled rows that would get a label
    n_rows : int, number of these rows
    confidence : float, the lowest confidence among them: ``abstain_below`` for this share
    expected_error : float, the expected share of wrong labels among them
    low, high : float, 90 % interval of the real share

    Examples
    --------
    >>> from otprop import OTP
    >>> model = OTP().fit([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None])
    >>> every_row = model.coverage()[0]
    >>> every_row.share, every_row.n_rows, every_row.low <= every_row.expected_error <= every_row.high
    (1.0, 2, True)
    """

    share: float
    n_rows: int
    confidence: float
    expected_error: float
    low: float
    high: float


def coverage_table(
    confidence: np.ndarray, error: ErrorEstimate | None = None, shares: tuple[float, ...] = SHARES
) -> list[Coverage]:
    """The expected error at each share of labelled rows, with the most confident rows labelled first.

    Rows of equal confidence stay together, since `abstain_below` cannot separate them; the share is then larger.

    Parameters
    ----------
    confidence : ndarray of shape (n_rows,), of the rows whose label was not given
    error : ErrorEstimate or None, of all these rows; None if it is unknown
    shares : tuple of float

    Returns
    -------
    list of Coverage
    """
    ordered = np.sort(confidence)[::-1]
    last = np.flatnonzero(np.diff(ordered, append=-1.0))  # of each confidence
    return coverage_of_groups(ordered[last], last + 1, np.cumsum(1.0 - ordered)[last], error, shares)


def coverage_of_groups(
    confidence: np.ndarray,
    counts: np.ndarray,
    doubts: np.ndarray,
    error: ErrorEstimate | None = None,
    shares: tuple[float, ...] = SHARES,
) -> list[Coverage]:
    """As `coverage_table`, of groups of rows that stay together, the most confident first.

    Parameters
    ----------
    confidence : ndarray of shape (n_groups,), the lowest of each group
    counts, doubts : ndarray of shape (n_groups,), rows up to the end of each group, and the sum of their ``1 -
        confidence``
    error, shares : as in `coverage_table`

    Returns
    -------
    list of Coverage
    """
    table: list[Coverage] = []
    for share in shares:
        wanted = round(share * int(counts[-1])) if len(counts) else 0
        if not wanted:
            continue
        last = int(np.searchsorted(counts, wanted))
        n_rows = int(counts[last])
        if not table or n_rows < table[-1].n_rows:
            actual = share if n_rows == wanted else n_rows / int(counts[-1])
            expected = float(doubts[last] / n_rows)
            low, high = error.of_part(expected, n_rows).interval if error is not None else (0.0, 1.0)
            table.append(Coverage(actual, n_rows, float(confidence[last]), expected, low, high))
    return table


def shift_to_error(
    calibration: Calibration, confidence: Callable[[Calibration], np.ndarray], expected_error: float
) -> Calibration:
    """The calibration, shifted so that one minus the mean confidence of the rows is the expected error.

    `confidence` returns the confidence of the rows for a calibration. If it is bounded for some rows and no shift
    agrees, the nearest one is used.
    """
    low, high = -MAX_SHIFT, MAX_SHIFT
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        if 1.0 - confidence(replace(calibration, shift=middle)).mean() > expected_error:
            low = middle
        else:
            high = middle
    return replace(calibration, shift=(low + high) / 2)


def label_confidence(
    distributions: np.ndarray, reached: np.ndarray, calibration: Calibration, prior: np.ndarray, unseen: float
) -> np.ndarray:
    """Confidence of each row's most probable class.

    It is at most the share of that class if no label reaches the row, unless the calibration knows such rows.

    `unseen` is the share of rows of classes without a label. The confidence is at least an equal share of the rest.
    """
    return best_class_confidence(
        distributions.max(axis=1), distributions.argmax(axis=1), reached, calibration, prior, unseen
    )


def best_class_confidence(
    sure: np.ndarray,
    best_class: np.ndarray,
    reached: np.ndarray,
    calibration: Calibration,
    prior: np.ndarray,
    unseen: float,
) -> np.ndarray:
    """The same from the probability and the number of each row's most probable class."""
    found = calibration(sure)
    if not calibration.knows_unreached:
        far = np.flatnonzero(~reached)
        found[far] = np.minimum(found[far], prior[best_class[far]])
    return np.maximum(found, (1.0 - unseen) / len(prior))
