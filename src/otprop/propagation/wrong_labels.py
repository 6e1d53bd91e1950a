"""How many of the given labels are wrong, from the class probabilities of held-out labels.

A wrong label is any of the other classes with equal probability. Two signs tell wrong labels from hard rows:

- Wrong labels lower even the highest probabilities, hard rows do not. So if labels are wrong, the labels fit
  better to a model in which the probabilities are sharper and some labels are wrong than to the probabilities as they
  are.
- Wrong labels are contradicted by the surest predictions as often as by the others. Right labels of a table with an
  error e are contradicted by the surest fifth of the predictions at a rate of about e^2, and by the next two fifths at
  about e^1.5 and e^1.2 (development tables).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, logsumexp, softmax, xlog1py, xlogy

MIN_LABELS = 50  # fewer held-out labels cannot show that labels are wrong
MAX_LABELS = 2000  # of more, a part is used
MAX_SHARE = 0.6  # of wrong labels, relative to that of random labels
N_SHARES = 30  # shares that are considered
POWERS = np.geomspace(0.5, 8.0, 17)  # by which the probabilities may be sharper
USUAL_POWER, POWER_SPREAD = 2.0, 1.0  # its prior is log-normal
MIN_PROBABILITY = 1e-6
N_PARTS = 5  # the labels in the order of their probabilities, in parts of equal size
MAX_OF_CHANCE = 0.7  # of the contradictions of a guess by class shares; with more, the columns tell too little
HARD_EXPONENTS = (2.0, 1.5, 1.2)  # right labels of the first parts are contradicted at the error to this power
HARD_CONCENTRATION = 35.0  # of the Beta distribution of that rate
N_QUANTILES = 30  # of that distribution
LABEL_WORTH = 0.75  # of a held-out label, in independent ones: the probabilities were fitted to these labels
MAX_WORTH = 400.0  # of any number of labels for the first sign: no table follows its model exactly
PROBABILITY = 0.05  # that a table has wrong labels, before any label is looked at
PROBABILITY_IN_RANGE = 0.3  # the same for the interval of the error


@dataclass(frozen=True)
class WrongLabels:
    """Shares of wrong labels, and how well each explains the held-out labels.

    Attributes
    ----------
    shares : ndarray, the first is 0
    log_likelihood : ndarray of the same shape
    like_a_guess : bool, whether the probabilities are hardly better than a guess; all labels then count as right in the
        expected error, but not in its interval
    """

    shares: np.ndarray
    log_likelihood: np.ndarray
    like_a_guess: bool = False

    @property
    def weights(self) -> np.ndarray:
        """Posterior probabilities of the shares, for the expected error."""
        return self._posterior(0.0 if self.like_a_guess else PROBABILITY)

    @property
    def weights_in_range(self) -> np.ndarray:
        """The same for the interval, which should hold for tables with and without wrong labels."""
        return self._posterior(PROBABILITY_IN_RANGE)

    @property
    def share(self) -> float:
        """Expected share of wrong labels; 0 unless it is more probable than not that there are any."""
        return float(self.weights @ self.shares) if self.weights[0] < 0.5 else 0.0

    def _posterior(self, probability: float) -> np.ndarray:
        """Posterior probabilities, given that of any wrong labels before any label is looked at."""
        prior = np.full(len(self.shares), probability / max(len(self.shares) - 1, 1))
        prior[0] = 1.0 - probability
        with np.errstate(divide="ignore"):
            return np.asarray(softmax(np.log(prior) + self.log_likelihood))


NONE_WRONG = WrongLabels(np.zeros(1), np.zeros(1))


def find_wrong_labels(probabilities: np.ndarray, codes: np.ndarray) -> WrongLabels:
    """The shares of wrong labels that explain these labels.

    Parameters
    ----------
    probabilities : ndarray of shape (n_labels, n_classes), of rows drawn at random, each without its own label
    codes : ndarray of int of shape (n_labels,), their labels

    Returns
    -------
    WrongLabels, `NONE_WRONG` if the labels are too few
    """
    n_labels, n_classes = probabilities.shape
    if n_labels < MIN_LABELS or n_classes < 2:
        return NONE_WRONG
    if n_labels > MAX_LABELS:
        used = np.linspace(0, n_labels - 1, MAX_LABELS).astype(np.intp)
        probabilities, codes = probabilities[used], codes[used]
    best = probabilities.argmax(axis=1)
    contradicted = best != codes
    surest_first = np.argsort(-probabilities.max(axis=1), kind="stable")
    surest = surest_first[: int(np.ceil(len(codes) / N_PARTS))]
    by_chance = 1.0 - (np.bincount(codes, minlength=n_classes) / len(codes))[best[surest]]
    like_a_guess = bool(contradicted[surest].sum() > MAX_OF_CHANCE * by_chance.sum())
    shares = np.append(0.0, np.arange(1, N_SHARES + 1) / N_SHARES * MAX_SHARE * (1.0 - 1.0 / n_classes))
    found = MAX_WORTH / (MAX_WORTH + len(codes)) * _log_likelihood_of_sharper(probabilities, codes, shares)
    found += LABEL_WORTH * _log_likelihood_of_order(contradicted[surest_first], n_classes, shares)
    return WrongLabels(shares, found, like_a_guess)


def _log_likelihood_of_sharper(probabilities: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Log-likelihood of the labels, given shares of wrong ones, mean over the powers of the probabilities."""
    logs = np.log(np.maximum(probabilities, MIN_PROBABILITY))
    own = logs[np.arange(len(codes)), codes]
    fits = np.empty((len(shares), len(POWERS)))
    for place, power in enumerate(POWERS):
        sharper = np.exp(power * own) / np.exp(power * logs).sum(axis=1)
        others = (1.0 - sharper) / (probabilities.shape[1] - 1)
        with_wrong = (1.0 - shares[:, None]) * sharper + shares[:, None] * others
        fits[:, place] = np.log(np.maximum(with_wrong, MIN_PROBABILITY)).sum(axis=1)
    prior = np.exp(-0.5 * (np.log(POWERS / USUAL_POWER) / POWER_SPREAD) ** 2)
    return np.asarray(logsumexp(fits, axis=1, b=prior / prior.sum()))


def _log_likelihood_of_order(contradicted: np.ndarray, n_classes: int, shares: np.ndarray) -> np.ndarray:
    """Log-likelihood of which labels are contradicted, the surest probabilities first, given shares of wrong labels."""
    n_labels = len(contradicted)
    shown = 1.0 - shares * n_classes / (n_classes - 1)  # part of the errors that shows through wrong labels
    error = np.clip((contradicted.mean() - shares) / shown, 0.0, 1.0)
    error = ((error * n_labels + 0.5) / (n_labels + 1.0))[:, None]
    quantiles = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    found = np.zeros(len(shares))
    for exponent, part in zip(HARD_EXPONENTS, np.array_split(contradicted, N_PARTS), strict=False):
        mean, n_wrong = error**exponent, int(np.count_nonzero(part))
        of_right = betaincinv(HARD_CONCENTRATION * mean, HARD_CONCENTRATION * (1.0 - mean), quantiles)
        rates = shares[:, None] + shown[:, None] * of_right
        log_likelihood = xlogy(n_wrong, rates) + xlog1py(len(part) - n_wrong, -rates)
        found += logsumexp(log_likelihood, axis=1) - np.log(N_QUANTILES)
    return found
