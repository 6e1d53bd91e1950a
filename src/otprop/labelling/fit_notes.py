"""Notes on a fit: how its labels were drawn, new classes, labels that help little, classes that are hardly found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from otprop._otp import NOT_CONVERGED
from otprop.evidence.shift import Shift
from otprop.files import listed
from otprop.labelling.methods import is_class_level
from otprop.labelling.outcome import MIN_BLOCK, seems_sorted
from otprop.propagation.class_errors import ClassErrors
from otprop.propagation.decisions import cost_matrix
from otprop.table.errors import Hint
from otprop.table.features import ColumnUse

if TYPE_CHECKING:
    from otprop.labelling.job import Job

NOT_CALIBRATED, VOTES_ALONE = "confidence_ is not calibrated", "y has no label"  # how messages of `OTP` begin
MIN_IMPORTANCE = 0.15  # of a column for telling labelled from unlabelled rows, to be named
MAX_NAMED = 3  # columns
GROUP_ROLES = ("category", "boolean", "text", "number", "skipped")  # of columns that may name groups
MAX_COVERED = 0.6  # of the values that random labels would cover: with fewer, the column may be that of groups
MIN_VALUES = 3  # of a column of groups
MIN_ROWS_PER_VALUE = 2.0
WHOLE_GROUPS = 0.9  # share of the rows of covered values with a label, to take them for whole groups
RANDOM_LABELS = 30  # that settle how large the error is
FEW_GROUPS = 2
NEARLY_ALL = 0.99  # share of the new labels that one class may have without a note
MAX_MISSED = 3  # classes named in a note as hardly found
MIN_ROWS_PER_CLASS = 15  # with fewer, most of the 10 to 20 neighbours of a row are of other classes
MIN_CLASSES_OF_FEW_ROWS = 5
FEW_NEIGHBORS = 5  # to be tried then


def fit_notes(job: Job, errors: Sequence[ClassErrors]) -> list[str]:
    """Notes on a finished job; `errors` are the expected errors of its classes."""
    fitted = job.estimator
    shift: Shift | None = getattr(fitted, "shift_", None)
    notes: list[str] = _note_on_calibration(job)
    if job.groups is not None and is_class_level(fitted):  # else the groups are not used, which a note says already
        notes += _note_on_groups(job.groups, job.target.given)
    if shift is not None and seems_sorted(job.target):
        notes += _note_on_order(job)
    elif job.groups is None and shift is not None and shift.found:
        notes += _note_on_shift(job, shift)
    elif job.groups is None and shift is not None and shift.explained and fitted.novel_share_ == 0:
        notes += _note_on_shares(job)
    notes += [*_note_on_novelty(fitted), *_note_on_wrong_labels(fitted), *_note_on_neighbors(job)]
    if abstained := _note_on_abstaining(job):
        return [*notes, *abstained]
    return [*notes, *_note_on_no_gain(job), *_note_on_rare_classes(job, errors)]


def _note_on_calibration(job: Job) -> list[str]:
    """A note if no label drawn at random could be held out, in place of the estimator's message in the log."""
    given = job.target.given
    if not is_class_level(job.estimator) or not given.any() or given.all():
        return []
    held_out = job.estimator.held_out_rows_
    if not job.chosen[held_out].all():
        return []
    why = "no label was drawn at random" if len(held_out) else "no class has two labels"
    return [f"the confidence is not calibrated, as {why} to hold one out. Label some rows drawn at random"]


def _abstain_below(job: Job) -> float | None:
    """The limit that was used, given as an argument or as a setting."""
    below: float | None = getattr(job.estimator, "abstain_below", None)
    return below


def _objective(job: Job) -> Any:
    """Which errors count, by class numbers; "accuracy" where nothing was asked for."""
    return getattr(job.estimator, "objective", "accuracy")


def _note_on_abstaining(job: Job) -> list[str]:
    """A note if no row is certain enough to be labelled."""
    below, left = _abstain_below(job), ~job.target.given
    if below is None or not left.any():
        return []
    highest = float(job.estimator.confidence_[left].max())
    if highest >= below:
        return []
    shown = np.floor(highest * 1e4) / 1e4  # not rounded up to the limit
    text = f"no row reaches a confidence of {below:g}: the highest is {shown:g}, so none was labelled. Choose a lower "
    return [Hint(text, "abstain_below")]


def note_of_warning(warning: Warning | str) -> str:
    """A warning of the estimator as a note, which names its parameters as those of a request."""
    if str(warning).startswith(VOTES_ALONE):
        text = "no row has a label: votes alone decide, and the error cannot be checked. Label 20 random rows to "
        return Hint(f"{text}measure it; `otprop suggest` lists them with ", "random_share", 1)
    if not str(warning).startswith(NOT_CONVERGED):
        return str(warning)
    text = NOT_CONVERGED[0].lower() + NOT_CONVERGED[1:]
    return Hint(f"{text} A lower value may help: ", "settings", {"diffusion": 0.8})


def _note_on_order(job: Job) -> list[str]:
    return [
        f"the rows seem to be sorted by {job.request.target!r}: classes of later rows may have no label, so the real "
        f"error can be anything up to 100 %. Label about {RANDOM_LABELS} random rows"
    ]


def _note_on_shift(job: Job, shift: Shift) -> list[str]:
    given, columns = job.target.given, important_columns(job.columns, shift.importance)
    where = f", mostly in {listed(columns, MAX_NAMED)}" if columns else ""
    rows = _consecutive_rows(np.flatnonzero(given), job.table.n_rows)
    why = f" ({rows})" if rows else ""
    text = (
        f"the labelled rows seem to differ from the others{where}{why}, so the expected error is a rough estimate with "
        f"a wide range. Label about {RANDOM_LABELS} random rows to improve it"
    )
    group = None if rows else group_column(job.table, job.columns, given, job.request.target)
    if group is None:
        return [Hint(text + ", or, if whole groups were labelled, name them with ", "groups")]
    name, n_covered, n_values = group
    cover = f"the labels cover {n_covered} of {n_values} values of {name!r}: if whole groups were labelled, add "
    return [text, Hint(cover, "groups", name)]


def _note_on_shares(job: Job) -> list[str]:
    """A note if the labelled rows differ from the others as rows with other class shares do."""
    shares = np.asarray(job.estimator.class_prior_)
    codes = job.target.codes[job.target.given]
    labelled = np.bincount(codes, minlength=len(shares)) / len(codes)
    most = int(np.abs(labelled - shares).argmax())
    text = (
        "the labelled rows seem to differ from the others as if the classes had other shares: "
        f"{job.target.classes[most]!r} has {labelled[most]:.0%} of the labels and about {shares[most]:.0%} of the "
        "rows. The expected error relies on these inferred shares. If you know the shares, name them with "
    )
    return [Hint(text, "class_prior")]


def _note_on_groups(groups: np.ndarray, given: np.ndarray) -> list[str]:
    rows = np.flatnonzero(given)
    names = {str(groups[row]) for row in rows}
    if len(names) == len(rows):
        return [Hint("without effect: ", "groups", after=", as each labelled row is in a separate group")]
    if len(names) > FEW_GROUPS:
        return []
    return [
        f"all labels are in {'one group' if len(names) == 1 else 'two groups'}: the error in other groups can hardly "
        f"be estimated. Label rows of more groups"
    ]


def _note_on_novelty(fitted: Any) -> list[str]:
    share = getattr(fitted, "novel_share_", 0.0)
    if share <= 0:
        return []
    low, high = fitted.novel_range_
    return [
        f"about {share:.0%} of the rows without a label ({low:.0%} to {high:.0%}) look like no labelled class and "
        f"count as wrong in the expected error. Look at the rows with the highest novelty, and label some"
    ]


def _note_on_wrong_labels(fitted: Any) -> list[str]:
    evidence = getattr(getattr(fitted, "error_", None), "evidence", None)
    share = 0.0 if evidence is None else evidence.wrong_share
    if share <= 0:
        return []
    return [
        f"very roughly {share:.0%} of the given labels seem to be wrong. The expected error does not count them, and "
        f"is less certain because of them; precision and recall by class are not corrected. Review the labels that "
        f"look wrong"
    ]


def _note_on_neighbors(job: Job) -> list[str]:
    """A note if classes have so few rows that the default number of neighbours is too large."""
    n_classes, fitted = len(job.target.classes), job.estimator
    rows = len(job.target.given) / n_classes
    default = getattr(fitted, "cost", None) == "diffusion" and getattr(fitted, "n_neighbors", None) == "auto"
    if not default or n_classes < MIN_CLASSES_OF_FEW_ROWS or rows >= MIN_ROWS_PER_CLASS:
        return []
    text = f"there are only about {rows:.0f} rows per class: fewer neighbours in the graph may be more accurate: "
    return [Hint(text, "settings", {"n_neighbors": FEW_NEIGHBORS})]


def _note_on_no_gain(job: Job) -> list[str]:
    """A note if one class for all rows is expected to be as good as the labels, where few errors are the goal.

    Rows of classes without a label are wrong in both.
    """
    if _objective(job) != "accuracy" or _abstain_below(job) is not None:
        return []
    error, shares = getattr(job.estimator, "error_", None), getattr(job.estimator, "class_prior_", None)
    if error is None or shares is None or not error.concentration or len(shares) < 2:
        return []
    largest = int(np.argmax(shares))
    found = np.asarray(job.estimator.transduction_)[~job.target.given]
    one_class = 1.0 - shares[largest] * (1.0 - (error.evidence.unseen if error.evidence else 0.0))
    if error.expected < one_class:
        got = float(np.mean(found == largest)) if len(found) else 0.0
        if got < NEARLY_ALL or shares[largest] > got - 0.05:
            return []
        return [
            f"{got:.1%} of the rows without a label were labelled {job.target.classes[largest]!r}, though only "
            f"about {shares[largest]:.0%} of all rows are expected to be: hardly better than one class for every "
            f"row. Label more rows of the others"
        ]
    equal = f"{one_class:.0%}" == f"{error.expected:.0%}"
    than, these = ("as little", "as these labels") if equal else ("less", "than these labels")
    return [
        f"giving every row {job.target.classes[largest]!r} would be expected to err {than} ({one_class:.0%}) {these} "
        f"({error.expected:.0%}). Label more rows, or add columns that separate the classes"
    ]


def _note_on_rare_classes(job: Job, errors: Sequence[ClassErrors]) -> list[str]:
    """A note for classes of which far fewer rows were labelled than are expected, unless these errors cost nothing."""
    objective, free = _objective(job), set()
    if isinstance(objective, Mapping):
        costs = cost_matrix(objective, np.arange(len(job.target.classes)))
        free = {name for name, row in zip(job.target.classes, costs, strict=True) if not row.any()}
    missed = [one for one in errors if one.hardly_found and one.label not in free]
    missed.sort(key=lambda one: -one.n_expected)
    if not missed:
        return []
    named = [
        f"about {one.n_expected:.0f} rows are expected to be {one.label!r}, {one.n_labelled or 'none'} "
        f"{'was' if one.n_labelled < 2 else 'were'} labelled with it"
        for one in missed[:MAX_MISSED]
    ]
    if len(missed) > MAX_MISSED:
        n_more = len(missed) - MAX_MISSED
        named.append(f"and {n_more} more {'class' if n_more == 1 else 'classes'}")
    text = "; ".join(named)
    if _abstain_below(job) is not None:
        return [text]
    if objective != "accuracy":
        return [f"{text}: label more rows of {'this class' if len(missed) == 1 else 'these classes'}"]
    return [Hint(f"{text}: ", "objective", "balanced", " finds more of them")]


def important_columns(columns: Sequence[ColumnUse], importance: np.ndarray) -> list[str]:
    """The columns of the table that tell labelled from unlabelled rows, the most important first."""
    used = [use for use in columns if use.width]
    if sum(use.width for use in used) != len(importance):
        return []
    ends = np.cumsum([use.width for use in used])
    sums = np.array([part.sum() for part in np.split(importance, ends[:-1])])
    order = np.argsort(-sums, kind="stable")[:MAX_NAMED]
    return [used[place].name for place in order if sums[place] >= MIN_IMPORTANCE]


def group_column(
    table: Any, columns: Sequence[ColumnUse], given: np.ndarray, target: str
) -> tuple[str, int, int] | None:
    """The column whose values the labels cover least, the number covered and all; None if none stands out.

    Columns whose covered values are labelled in nearly all their rows come first: whole groups are labelled so.
    """
    best: tuple[tuple[bool, float], str, int, int] | None = None
    for use in columns:
        if use.role not in GROUP_ROLES or use.name == target or use.name not in table.names:
            continue
        values, number, counts = np.unique(table.cells(use.name).astype(str), return_inverse=True, return_counts=True)
        if len(values) < MIN_VALUES or len(given) / len(values) < MIN_ROWS_PER_VALUE:
            continue
        n_labels, covered = int(given.sum()), np.unique(number[given])
        share = len(covered) / _expected_values(counts, n_labels)
        rank = n_labels < WHOLE_GROUPS * counts[covered].sum(), share
        if share < MAX_COVERED and (best is None or rank < best[0]):
            best = rank, use.name, len(covered), len(values)
    return None if best is None else best[1:]


def _expected_values(counts: np.ndarray, n_labels: int) -> float:
    """The number of different values in as many random rows."""
    n_rows = int(counts.sum())
    left = n_rows - counts
    possible = left >= n_labels
    log_none = (
        gammaln(np.where(possible, left, n_labels) + 1.0)
        - gammaln(np.where(possible, left - n_labels, 0) + 1.0)
        - gammaln(n_rows + 1.0)
        + gammaln(n_rows - n_labels + 1.0)
    )
    return float(len(counts) - np.exp(log_none[possible]).sum())


def _consecutive_rows(rows: np.ndarray, n_rows: int) -> str | None:
    """What to call labels that are nearly all in one run of rows; None if they are not."""
    if len(rows) < 2 or len(rows) > MIN_BLOCK * n_rows:
        return None
    wanted = int(np.ceil(MIN_BLOCK * len(rows)))
    spans = rows[wanted - 1 :] - rows[: len(rows) - wanted + 1] + 1
    place = int(spans.argmin())
    if wanted < MIN_BLOCK * spans[place]:
        return None
    first = int(rows[place])
    return "they are the first rows" if first == 0 else f"they are consecutive, from row {first + 1} on"
