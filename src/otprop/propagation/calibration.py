"""How probable is it that a label is right: learnt from labels that were hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaincinv, expit, logit

from otprop._saving import saved_as

PULL_SLOPE = 8.0  # how many hidden labels' worth of trust the probabilities start with
PULL_SHIFT = 2.0
CLIP = 1e-6
SHARES = (1.0, 0.98, 0.95, 0.92, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


@saved_as("otp.calibration")
@dataclass(frozen=True)
class Calibration:
    """A line through the log-odds: ``logit(confidence) = slope * logit(probability) + shift``."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """The confidence of labels with these probabilities."""
        return np.asarray(expit(self.slope * logit(np.clip(probability, CLIP, 1 - CLIP)) + self.shift))


def calibrate(probabilities: np.ndarray, right: np.ndarray, weights: np.ndarray | None = None) -> Calibration:
    """Fit the line to labels that were hidden.

    Parameters
    ----------
    probabilities : ndarray of shape (n_hidden,), of the label each hidden row would have got
    right : ndarray of shape (n_hidden,), whether it was the true one; a part of 1 where several were as probable
    weights : ndarray of shape (n_hidden,) or None, how many of all rows each stands for; their scale does not matter

    Returns
    -------
    Calibration
    """
    if len(right) == 0 or (weights is not None and not weights.any()):
        return Calibration()
    odds = logit(np.clip(probabilities, CLIP, 1 - CLIP))
    right = np.asarray(right, dtype=np.float64)
    each = np.ones(len(right)) if weights is None else weights * (weights.sum() / (weights @ weights))

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = line[0] * odds + line[1]
        pull = np.array([PULL_SLOPE * (line[0] - 1.0), PULL_SHIFT * line[1]])
        slope = each * (expit(margin) - right)
        value = each @ (np.logaddexp(0.0, margin) - right * margin)
        value += 0.5 * (pull @ np.array([line[0] - 1.0, line[1]]))
        return float(value), np.array([slope @ odds, slope.sum()]) + pull

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=[(0.05, 5.0), (-3.0, 3.0)], method="L-BFGS-B").x
    return Calibration(float(found[0]), float(found[1]))


@dataclass(frozen=True)
class Coverage:
    """What labelling only the most confident rows would cost.

    Attributes
    ----------
    share : float, of the unlabelled rows that would get a label
    n_rows : int, how many that are
    confidence : float, the least confidence among them: ``abstain_below`` for this share
    expected_error : float, the share of wrong labels to expect among them
    low, high : float, where the real share is nine times in ten, as far as the number of hidden labels can tell
    """

    share: float
    n_rows: int
    confidence: float
    expected_error: float
    low: float
    high: float


def likely_errors(error: float, n_hidden: float) -> tuple[float, float]:
    """Where a share of wrong labels that was learnt from so many hidden labels is nine times in ten.

    The interval is that of a share `error` seen in `n_hidden` trials, by Jeffreys' prior; from 0 where that is less
    than one wrong label, and from 0 to 1 where there were no trials. What makes hidden labels unlike the other rows,
    such as how they were drawn, is not in it.

    Parameters
    ----------
    error : float
    n_hidden : float

    Returns
    -------
    low, high : float
    """
    if n_hidden <= 0:
        return 0.0, 1.0
    a, b = error * n_hidden + 0.5, (1.0 - error) * n_hidden + 0.5
    low, high = betaincinv(a, b, np.array([0.05, 0.95]))
    if error * n_hidden < 1.0:  # less than one wrong label was to be seen: there may be none
        low = 0.0
    return float(min(low, error)), float(max(high, error))


def coverage_table(confidence: np.ndarray, n_hidden: float = 0, shares: tuple[float, ...] = SHARES) -> list[Coverage]:
    """The expected error at each share of the rows labelled, the most confident first.

    Rows of the same confidence go together, since no `abstain_below` could part them: the share is then larger.

    Parameters
    ----------
    confidence : ndarray of shape (n_rows,), of the rows whose label was not given
    n_hidden : float, how many hidden labels it was learnt from; a share of the rows has that share of them
    shares : tuple of float

    Returns
    -------
    list of Coverage
    """
    ordered = np.sort(confidence)[::-1]
    errors = np.cumsum(1.0 - ordered) / np.arange(1, len(ordered) + 1)
    table: list[Coverage] = []
    for share in shares:
        wanted = round(share * len(ordered))
        if not wanted:
            continue
        n_rows = int(np.searchsorted(-ordered, -ordered[wanted - 1], side="right"))  # with all that are as confident
        if not table or n_rows < table[-1].n_rows:
            actual = share if n_rows == wanted else n_rows / len(ordered)
            error = float(errors[n_rows - 1])
            low, high = likely_errors(error, actual * n_hidden)
            table.append(Coverage(actual, n_rows, float(ordered[n_rows - 1]), error, low, high))
    return table
