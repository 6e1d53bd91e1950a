"""From calibrated class probabilities to labels: which errors count, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from otprop._validation import ParameterError, check_number, did_you_mean

OBJECTIVES = ("accuracy", "balanced")
TIE = 1e-9  # by which the best class stays ahead
MAX_COST = 1e100  # sums of costs over many rows must stay finite
MIN_SHARE = 1e-6  # of a class, where errors are divided by it
POWERS = np.linspace(0.0, 1.2, 13)  # of the share by which "balanced" divides errors; 1 would balance the recalls
USUAL_POWER = 2 / 3  # where there is no row to choose the power on
MAX_ENTRIES = 2_000_000  # probabilities on which the power is chosen


def class_probabilities(distributions: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Calibrated class probabilities: the best class has the confidence, the others share the rest as before.

    No other class gets more than the best one; what is left then is the probability of classes without a label.
    """
    best = distributions.argmax(axis=1)
    rows = np.arange(len(best))
    others = distributions.astype(np.float64)
    others[rows, best] = 0.0
    total = others.sum(axis=1, keepdims=True)
    np.divide(others, total, out=others, where=total > 0)  # first: the reciprocal of a tiny total overflows
    found = np.minimum(others * (1.0 - confidence[:, None]), (1.0 - TIE) * confidence[:, None])
    found[rows, best] = confidence
    return found


def check_objective(name: str, value: Any) -> None:
    """Refuse `value` unless it is a known word or a mapping of pairs of classes to costs."""
    accepted = "'accuracy', 'balanced', or costs by pair, as in {('yes', 'no'): 10} (true class, label given)"
    if isinstance(value, str) and value in OBJECTIVES:
        return
    if not isinstance(value, Mapping):
        hint = did_you_mean(value, OBJECTIVES) or "."
        raise ParameterError(name, f"must be {accepted}; got {value!r}{hint}")
    if not value:
        raise ParameterError(name, "is an empty mapping: name the cost of at least one pair, or use 'accuracy'.")
    for pair, cost in value.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ParameterError(name, f"must be {accepted}; got the key {pair!r}.")
        check_number(f"{name}[{pair!r}]", cost, least=0, most=MAX_COST)
        if pair[0] == pair[1] and cost:
            raise ParameterError(name, f"has a cost of {cost!r} for the right label of {pair[0]!r}; only errors cost.")


def cost_matrix(objective: Mapping[tuple[Any, Any], float], classes: np.ndarray) -> np.ndarray:
    """The cost of each label (column) for each true class (row): as the mapping says, and 1 for other errors."""
    costs = 1.0 - np.eye(len(classes))
    known = {value: code for code, value in enumerate(classes.tolist())}
    for (true, given), cost in objective.items():
        for value in (true, given):
            if value not in known:
                hint = did_you_mean(value, [one for one in known if isinstance(one, str)]) or "."
                raise ParameterError(
                    "objective",
                    f"names the class {value!r}, which no label shows; the classes are "
                    f"{', '.join(map(repr, list(known)[:10]))}{hint}",
                )
        costs[known[true], known[given]] = cost
    return costs


def balanced_costs(probabilities: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Costs with which the labels of the rows have the largest expected macro-F1.

    An error costs the less the more frequent its true class is: one divided by a power of the share of the class. The
    power is the one of `POWERS` with the largest expected macro-F1, which follows from the probabilities alone.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes), calibrated, of the unlabelled rows or a sample of them
    shares : ndarray of shape (n_classes,), of the classes where there is no row

    Returns
    -------
    ndarray of shape (n_classes, n_classes), the cost of each label (column) for each true class (row)
    """
    power = USUAL_POWER
    if len(probabilities):
        shares = probabilities.mean(axis=0)
        found = [expected_f1(probabilities, (probabilities * _worth(shares, one)).argmax(axis=1)) for one in POWERS]
        power = float(POWERS[int(np.argmax(found))])
    return np.asarray((1.0 - np.eye(len(shares))) * _worth(shares, power)[:, None])


def _worth(shares: np.ndarray, power: float) -> np.ndarray:
    return np.asarray(np.maximum(shares, MIN_SHARE) ** -power)


def expected_f1(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Expected macro-F1 of labels: per class, twice the labels expected to be right by the labels and rows of it."""
    n_expected, n_labelled, n_right = expected_counts(probabilities, codes)
    total = n_expected + n_labelled
    return float(np.divide(2.0 * n_right, total, out=np.zeros(len(total)), where=total > 0).mean())


def expected_counts(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Per class: rows expected, rows labelled so, and those of them expected to be right; shape (3, n_classes)."""
    n_classes = probabilities.shape[1]
    found = np.flatnonzero(codes >= 0)
    right = probabilities[found, codes[found]]
    return np.vstack(
        [
            probabilities.sum(axis=0),
            np.bincount(codes[found], minlength=n_classes),
            np.bincount(codes[found], weights=right, minlength=n_classes),
        ]
    )


def decide(probabilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The label of least expected cost of each row; the more probable one where two cost the same."""
    expected = probabilities @ costs
    least = expected <= expected.min(axis=1, keepdims=True) + TIE * 1e-3
    return np.asarray(np.where(least, probabilities, -1.0).argmax(axis=1))
