"""What was found for the rows of a table, in their order: of any rows, and of a whole table that was labelled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from otprop._votes import Voter
from otprop.labelling.methods import class_shares, is_class_level, parameter_texts
from otprop.loop.label_issues import LOOKS_WRONG, LabelIssue
from otprop.propagation.calibration import Coverage
from otprop.propagation.class_errors import ClassErrors
from otprop.propagation.error import ErrorEstimate
from otprop.propagation.rounds import certainty
from otprop.table.target import Target

if TYPE_CHECKING:
    from otprop.labelling.job import Job

MIN_ERROR = 0.005  # expected error from which on labelling fewer rows is suggested
MIN_SHARE = 0.3  # of the rows; fewer are not suggested
MAX_RANGE = 0.99  # range of an error that says nothing
MIN_BLOCK = 0.95  # share of the labels that are consecutive rows, to be called so
SORTED_BY_CHANCE = 0.025  # probability that labels in random order have one run per class, to be called sorted
MIN_ONE_CLASS = 10  # labels of a single class that look sorted


@dataclass(frozen=True, kw_only=True)
class RowLabels:
    """Labels of rows, one entry per row: of a whole table, of one file of many, or of rows that come later."""

    codes: np.ndarray  # the class by number, -1 where it has none
    given: np.ndarray | None = None  # whether the label was given; None for rows that come later
    distributions: np.ndarray | None = None  # of shape (n_rows, n_classes), rows sum to 1
    certainty: np.ndarray | None = None  # Eq. 12 of the paper
    confidence: np.ndarray | None = None  # probability that the label is right; None for methods without
    novelty: np.ndarray | None = None  # how unlike all labelled classes a row is; None for methods without
    round: np.ndarray | None = None  # the round in which the row was labelled, 0 = given
    corrected: np.ndarray | None = None  # whether the label is that of a correction


@dataclass(frozen=True, kw_only=True)
class Outcome(RowLabels):
    """The label of every row of a table, and how certain it is: the attributes of `RowLabels`, and those of the fit."""

    target: str  # the column that was filled
    classes: list[str]  # their names
    given: np.ndarray
    distributions: np.ndarray
    certainty: np.ndarray
    round: np.ndarray
    n_rounds: int
    n_held_out: int  # labels drawn at random that were held out to calibrate the confidence; 0 without confidence
    error: ErrorEstimate | None  # of all rows that were not given; None without confidence
    coverage: list[Coverage]  # expected error when only the most confident rows are labelled; empty without confidence
    sources: list[tuple[str, float, float]]  # the evidence: name, weight, accuracy on held-out labels; empty without
    method: str
    params: dict[str, str]  # the parameters as used
    seconds: float
    shifted: bool = False  # the labelled rows differ from the others: the expected error is then a rough estimate
    seems_sorted: bool = False  # the rows seem to be sorted by the target: classes of later rows may have no label
    confusion: tuple[np.ndarray, list[str]] | None = None  # counts of held-out labels, given (rows) by found; classes
    shares: dict[str, float] | None = None  # the estimated share of every class of all rows; None for methods without
    label_issues: list[LabelIssue] = field(default_factory=list)  # given labels in doubt, the most doubtful first
    class_errors: list[ClassErrors] = field(default_factory=list)  # precision and recall; empty for methods without
    objective: Any = "accuracy"  # which errors count, by class numbers
    expected_cost: float | None = None  # what the objective makes of the new labels, as in `OTP`
    # by row {"sources": {source: {class: probability}}, "nearest": [(row, label, distance)]}
    explanations: dict[int, dict[str, Any]] = field(default_factory=dict)
    voters: list[Voter] = field(default_factory=list)  # judged by the given labels, `by_class` by name

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
        low, high = self.error.of_part(expected, int((~self.abstained[~self.given]).sum())).interval
        return low, 1.0 if self.seems_sorted else high

    @property
    def half_error_coverage(self) -> Coverage | None:
        """The largest coverage at half the expected error of all rows; None where there is none."""
        whole = max(self.coverage, key=lambda one: one.share, default=None)
        if whole is None or self.seems_sorted or whole.expected_error < MIN_ERROR:
            return None
        half = whole.expected_error / 2
        known = (one for one in self.coverage if one.high - one.low < MAX_RANGE)
        offers = (one for one in known if one.expected_error <= half and one.share >= MIN_SHARE)
        return max(offers, key=lambda one: one.share, default=None)


def error_text(expected: float, interval: tuple[float, float] | None, more: str = "") -> str:
    """An expected error with its 90 % interval, as all messages write it; `more` follows the interval."""
    low, high = interval or (0.0, 1.0)
    return f"{expected:.1%} (likely {low:.1%} to {high:.1%}{more})"


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things: "1 row", "2 rows"."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"


def seems_sorted(target: Target) -> bool:
    """Whether the first or last rows alone have labels, in one run per class, more than chance explains."""
    rows, n_rows = np.flatnonzero(target.given), len(target.given)
    if not len(rows) or len(rows) == n_rows or (rows[0] > 0 and rows[-1] < n_rows - 1):
        return False
    codes = target.codes[rows]
    counts = np.unique(codes, return_counts=True)[1]
    if len(rows) < MIN_BLOCK * (rows[-1] - rows[0] + 1) or np.count_nonzero(np.diff(codes)) + 1 != len(counts):
        return False
    if len(counts) == 1:
        return len(rows) >= MIN_ONE_CLASS
    # K! orders of the classes, out of n! / (n_1! ... n_K!) orders of the labels
    log_chance = gammaln(len(counts) + 1.0) + gammaln(counts + 1.0).sum() - gammaln(len(rows) + 1.0)
    return bool(log_chance < np.log(SORTED_BY_CHANCE))


def outcome_of(job: Job, seconds: float) -> Outcome:
    """The outcome of a job whose estimator was fitted in this many seconds."""
    fitted, target = job.estimator, job.target
    distributions, shift = fitted.label_distributions_, getattr(fitted, "shift_", None)
    judged = is_class_level(fitted) and not target.given.all()
    held_out = getattr(fitted, "held_out_rows_", np.empty(0, dtype=np.intp))
    in_order = seems_sorted(target)
    coverage = fitted.coverage() if judged else []
    return Outcome(
        target=job.request.target,
        classes=target.classes,
        codes=np.asarray(fitted.transduction_, dtype=np.intp).reshape(job.table.n_rows),
        given=target.given,
        distributions=distributions,
        certainty=fitted.certainty_ if hasattr(fitted, "certainty_") else certainty(distributions),
        confidence=getattr(fitted, "confidence_", None),
        novelty=getattr(fitted, "novelty_", None),
        shifted=bool(shift is not None and shift.found),
        seems_sorted=in_order,
        round=np.asarray(getattr(fitted, "round_", np.where(target.given, 0, 1))),
        n_rounds=int(getattr(fitted, "n_iter_", 1)) if hasattr(fitted, "round_") else 1,
        n_held_out=int((~job.chosen[held_out]).sum()),
        corrected=job.corrected,
        confusion=_confusion(fitted, target, held_out) if len(held_out) else None,
        shares=class_shares(fitted, target.classes) if hasattr(fitted, "class_prior_") else None,
        label_issues=[
            replace(issue, given=target.values[issue.given], suggested=target.values[issue.suggested])
            for issue in getattr(fitted, "label_issues_", [])
            if not (job.in_table[issue.row] and issue.row in job.corrections.labels)  # somebody has looked at it
        ],
        error=getattr(fitted, "error_", None),
        class_errors=[replace(one, label=target.classes[one.label]) for one in fitted.class_errors()] if judged else [],
        objective=getattr(fitted, "objective", "accuracy"),
        expected_cost=getattr(fitted, "expected_cost_", None),
        coverage=[replace(one, high=1.0) for one in coverage] if in_order else coverage,
        sources=[(one.name, one.weight, one.accuracy) for one in getattr(fitted, "evidence_", [])],
        method=job.request.method,
        params=parameter_texts(fitted, target.classes),
        seconds=seconds,
        voters=[
            replace(voter, by_class={target.classes[code]: one for code, one in voter.by_class.items()})
            for voter in getattr(fitted, "voters_", [])
        ],
    )


def _confusion(fitted: Any, target: Target, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Held-out labels by given class and by the class found."""
    matrix = np.zeros((len(target.classes), len(target.classes)), dtype=np.intp)
    np.add.at(matrix, (target.codes[rows], fitted.held_out_proba_.argmax(axis=1)), 1)
    return matrix, list(target.classes)
