"""Expected precision and recall of each class, with 90 % intervals.

The calibrated class probabilities of the rows say how many labels of a class are right and how many of its rows are
found. Held-out labels of the class, few as they are, correct that: a Beta distribution whose mean starts at what the
probabilities say. The constants were chosen on development tables; benchmarks/errors.py measures them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.propagation.error import GROUPED, SHIFTED, ErrorEvidence, effective_number, error_interval

PRIOR_LABELS = 20.0  # held-out labels of a class that count as much as what the probabilities say
PRECISION_CONCENTRATION, RECALL_CONCENTRATION = 3.0, 6.0  # where no label of the class was held out
LABEL_WORTH = 0.5  # independent trials that one held-out label is worth
FEW_FOUND, MIN_EXPECTED = 0.5, 5.0  # a class of which less than this share is labelled, with at least this many rows


@saved_as("otp.judged_labels")
@dataclass(frozen=True)
class JudgedLabels:
    """Held-out labels that were drawn at random, each judged by choices made without it.

    Attributes
    ----------
    rows : ndarray of int
    codes : ndarray of int, their classes
    distributions : ndarray of shape (n_labels, n_classes), cross-fitted class probabilities
    confidence : ndarray, calibrated probability of the best class
    weights : ndarray, how many rows each label stands for, at any scale
    worth : float, independent labels that one of them is worth: below 1 where labels were held out in groups
    """

    rows: np.ndarray
    codes: np.ndarray
    distributions: np.ndarray
    confidence: np.ndarray
    weights: np.ndarray
    worth: float = 1.0

    @classmethod
    def none(cls, n_classes: int) -> JudgedLabels:
        """No label at all."""
        return cls(np.empty(0, np.intp), np.empty(0, np.intp), np.empty((0, n_classes)), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class ClassErrors:
    """Expected errors of a class among the rows whose label was not given.

    Attributes
    ----------
    label : the class
    n_expected : float, rows expected to be of the class: the sum of their calibrated probabilities
    n_labelled : int, rows that were labelled so
    precision : float, expected share of these that are of the class; NaN where none was labelled so
    precision_range : tuple of float, 90 % interval of the real share
    recall : float, expected share of the rows of the class that were labelled so; NaN where no row is expected
    recall_range : tuple of float, 90 % interval of the real share
    n_held_out : int, labels of the class that were held out and drawn at random

    Examples
    --------
    >>> from otprop import OTP
    >>> model = OTP().fit([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None])
    >>> [(one.label, one.n_labelled, one.n_held_out) for one in model.class_errors()]
    [('a', 1, 2), ('b', 1, 2)]
    """

    label: Any
    n_expected: float
    n_labelled: int
    precision: float
    precision_range: tuple[float, float]
    recall: float
    recall_range: tuple[float, float]
    n_held_out: int

    @property
    def f1(self) -> float:
        """Expected F1 of the class; 0 where no row was labelled so, NaN where no row is expected."""
        if np.isnan(self.recall) or not self.n_labelled:
            return self.recall
        return 2.0 * self.precision * self.recall / max(self.precision + self.recall, 1e-12)

    @property
    def hardly_found(self) -> bool:
        """Whether far fewer rows were labelled so than are expected to be of the class."""
        return self.n_expected >= MIN_EXPECTED and self.n_labelled < FEW_FOUND * self.n_expected


def estimate_class_errors(
    classes: np.ndarray, counts: np.ndarray, judged: JudgedLabels, found: np.ndarray, evidence: ErrorEvidence
) -> list[ClassErrors]:
    """Precision and recall of every class.

    Parameters
    ----------
    classes : ndarray, the labels of the classes
    counts : ndarray of shape (3, n_classes), from `expected_counts` over the unlabelled rows
    judged : JudgedLabels
    found : ndarray of int, the class that each of the judged labels would have got, -1 for none
    evidence : ErrorEvidence, whether labels were held out apart from the others
    """
    right = found == judged.codes
    apart = SHIFTED if evidence.shifted else GROUPED if evidence.grouped else None
    most = np.inf if apart is None else apart.concentration
    known = len(judged.codes) > 0 and not np.isnan(evidence.held_out)

    def judge(
        of: np.ndarray, share: float, n_rows: float, prior: float, implied: float | None = None
    ) -> tuple[float, tuple[float, float]]:
        weights = judged.weights[of]
        n_labels = effective_number(weights) * judged.worth * LABEL_WORTH if weights.any() else 0.0
        rate = float(weights @ right[of] / weights.sum()) if n_labels else share
        expected = min((PRIOR_LABELS * share + n_labels * rate) / (PRIOR_LABELS + n_labels), 1.0)
        if implied is not None:
            expected = (expected + min(implied, 1.0)) / 2.0
        concentration = 1.0 / (1.0 / (prior + n_labels) + 1.0 / most) if known else 0.0
        low, high = error_interval(1.0 - expected, concentration, n_rows)
        low, high = 0.0 if expected * concentration < 1.0 else 1.0 - high, 1.0 - low
        return expected, (min(low, expected), max(high, expected))  # rounding may put it outside

    errors = []
    for code, (n_expected, n_labelled, n_right) in enumerate(counts.T):
        precision, precision_range = float("nan"), (0.0, 1.0)
        recall, recall_range = float("nan"), (0.0, 1.0)
        if n_labelled:
            precision, precision_range = judge(found == code, n_right / n_labelled, n_labelled, PRECISION_CONCENTRATION)
        if n_expected > 0 and n_labelled:
            own, n_rows = judged.codes == code, max(n_expected, 1.0)
            implied = (
                precision * n_labelled / n_expected
            )  # recall and precision must agree on the labels that are right
            recall, recall_range = judge(own, n_right / n_expected, n_rows, RECALL_CONCENTRATION, implied)
        elif n_expected > 0:
            recall, recall_range = 0.0, (0.0, 0.0)  # no row was labelled so
        errors.append(
            ClassErrors(
                label=classes[code].item() if isinstance(classes[code], np.generic) else classes[code],
                n_expected=float(n_expected),
                n_labelled=int(n_labelled),
                precision=float(precision),
                precision_range=precision_range,
                recall=float(recall),
                recall_range=recall_range,
                n_held_out=int(np.count_nonzero(judged.codes == code)),
            )
        )
    return errors
