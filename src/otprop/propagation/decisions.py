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
BALANCE = 2 / 3  # power of the share by which errors are divided: with 1, overlapping classes all become the rare one


def class_probabilities(distributions: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Calibrated class probabilities: the best class has the confidence, the others share the rest as before.

    No other class gets more than the best one; what is left then is the probability of classes without a label.
    """
    best = distributions.argmax(axis=1)
    rows = np.arange(len(best))
    others = distributions.astype(np.float64)
    others[rows, best] = 0.0
    total = others.sum(axis=1)
    scale = np.divide(1.0 - confidence, total, out=np.zeros(len(total)), where=total > 0)
    found = np.minimum(others * scale[:, None], (1.0 - TIE) * confidence[:, None])
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


def cost_matrix(objective: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The cost of each label (column) for each true class (row).

    "accuracy": every error costs 1. "balanced": an error costs the less the more frequent its true class is, by a power
    of its share between the 1 of the mean recall and what the F1 of rare classes asks for, chosen on development tables
    (benchmarks/errors.py measures it). A mapping: as it says, and 1 for other errors.
    """
    costs = 1.0 - np.eye(len(classes))
    if isinstance(objective, str):
        if objective == "balanced":
            costs /= np.maximum(shares, MIN_SHARE)[:, None] ** BALANCE
        return costs
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


def decide(probabilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The label of least expected cost of each row; the more probable one where two cost the same."""
    expected = probabilities @ costs
    least = expected <= expected.min(axis=1, keepdims=True) + TIE * 1e-3
    return np.asarray(np.where(least, probabilities, -1.0).argmax(axis=1))
