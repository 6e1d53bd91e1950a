"""The outcome of labelling a table, in the order of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop._votes import Voter
from otprop.loop.label_issues import LOOKS_WRONG, LabelIssue
from otprop.propagation.calibration import Coverage
from otprop.propagation.class_errors import ClassErrors
from otprop.propagation.error import ErrorEstimate

LEAST_ERROR = 0.005  # expected error from which on labelling fewer rows is suggested
LEAST_SHARE = 0.3  # of the rows; fewer are not suggested
WIDEST = 0.99  # range of an error that says nothing


@dataclass(frozen=True)
class Outcome:
    """The label of every row, and how certain it is.

    Attributes
    ----------
    target : str, the column that was filled
    classes : list of str, the names of the classes
    codes : ndarray of int of shape (n_rows,), the class of each row by number, -1 where none was given to it
    given : ndarray of bool of shape (n_rows,), whether the label was in the file or in the corrections
    distributions : ndarray of shape (n_rows, n_classes), rows sum to 1
    certainty : ndarray of shape (n_rows,), Eq. 12 of the paper
    confidence : ndarray of shape (n_rows,) or None, probability that the label is right; None for methods without
    round : ndarray of int of shape (n_rows,), the round in which the row was labelled, 0 = given
    n_rounds : int
    n_hidden : int, labels drawn at random that were held out to calibrate the confidence; 0 without confidence
    error : ErrorEstimate or None, of all rows that were not given; None without confidence
    coverage : list of Coverage, expected error when only the most confident rows are labelled; empty without confidence
    sources : list of (name, weight, accuracy on held-out labels), the evidence; empty without
    method : str
    params : dict of str to str, the parameters as used
    seconds : float
    corrected : ndarray of bool of shape (n_rows,) or None, whether the label is that of a correction
    novelty : ndarray of shape (n_rows,) or None, how unlike all labelled classes a row is; None for methods without
    shifted : bool, whether the labelled rows differ from the others: the expected error is then a rough estimate
    confusion : (matrix of counts, classes) or None, held-out labels by given class (rows) and by the class found
    shares : dict of str to float or None, the estimated share of every class of all rows; None for methods without
    label_issues : list of LabelIssue, given labels that the evidence contradicts, the most doubtful first
    voters : list of Voter, those of the votes, judged by the given labels
    class_errors : list of ClassErrors, expected precision and recall by class; empty for methods without
    objective : str or dict, which errors count, by class numbers
    expected_cost : float or None, what the objective makes of the new labels, as in `OTP`
    explanations : dict of row to {"sources": {source: {class: probability}}, "nearest": [(row, label, distance)]}
    """

    target: str
    classes: list[str]
    codes: np.ndarray
    given: np.ndarray
    distributions: np.ndarray
    certainty: np.ndarray
    confidence: np.ndarray | None
    round: np.ndarray
    n_rounds: int
    n_hidden: int
    error: ErrorEstimate | None
    coverage: list[Coverage]
    sources: list[tuple[str, float, float]]
    method: str
    params: dict[str, str]
    seconds: float
    corrected: np.ndarray | None = None
    novelty: np.ndarray | None = None
    shifted: bool = False
    confusion: tuple[np.ndarray, list[str]] | None = None
    shares: dict[str, float] | None = None
    label_issues: list[LabelIssue] = field(default_factory=list)
    class_errors: list[ClassErrors] = field(default_factory=list)
    objective: Any = "accuracy"
    expected_cost: float | None = None
    explanations: dict[int, dict[str, Any]] = field(default_factory=dict)
    voters: list[Voter] = field(default_factory=list)

    @property
    def n_judged(self) -> int:
        """How many given labels were held out, drawn or chosen."""
        return 0 if self.confusion is None else int(self.confusion[0].sum())

    @property
    def wrong_looking(self) -> list[LabelIssue]:
        """The label issues that are probable enough to be shown."""
        return [issue for issue in self.label_issues if issue.probability >= LOOKS_WRONG]

    @property
    def sureness(self) -> np.ndarray:
        """The confidence of each row, or its certainty where the method has no confidence."""
        return self.certainty if self.confidence is None else self.confidence

    @property
    def abstained(self) -> np.ndarray:
        """Rows without a label."""
        return np.asarray(self.codes < 0)

    @property
    def expected_error(self) -> float | None:
        """Expected error rate of the new labels; None without confidence."""
        new = ~self.given & ~self.abstained
        if self.confidence is None or not new.any():
            return None
        return float(1.0 - self.confidence[new].mean())

    @property
    def error_range(self) -> tuple[float, float] | None:
        """90 % interval of that error rate; None without confidence."""
        expected = self.expected_error
        if expected is None or self.error is None:
            return None
        return self.error.of_part(expected, int((~self.abstained[~self.given]).sum())).interval

    @property
    def half_error_coverage(self) -> Coverage | None:
        """The largest coverage at half the expected error of all rows; None where there is none."""
        whole = max(self.coverage, key=lambda one: one.share, default=None)
        if whole is None or whole.expected_error < LEAST_ERROR:
            return None
        half = whole.expected_error / 2
        known = (one for one in self.coverage if one.high - one.low < WIDEST)
        offers = (one for one in known if one.expected_error <= half and one.share >= LEAST_SHARE)
        return max(offers, key=lambda one: one.share, default=None)
