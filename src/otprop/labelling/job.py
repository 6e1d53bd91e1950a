"""The job of `otprop label`: the labels and vectors of a table, a fitted estimator, and its outcome."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from otprop._otp import OTP
from otprop._progress import ProgressCallback, no_progress
from otprop._validation import did_you_mean
from otprop.files import Table
from otprop.labelling.corrections import Corrections, chosen_rows, corrected_cells, read_corrections
from otprop.labelling.methods import make_estimator
from otprop.labelling.outcome import Outcome
from otprop.labelling.previous_run import MADE_BY_PREVIOUS_RUN, previous_columns
from otprop.labelling.sampling import group_values, sampling_notes
from otprop.labelling.votes import classes_by_votes, hard_votes, read_votes, vote_cells
from otprop.propagation.class_errors import ClassErrors
from otprop.propagation.geometry import Geometry
from otprop.propagation.rounds import certainty
from otprop.table.errors import Hint, NoFeaturesError, RequestError, unknown_name
from otprop.table.features import LEFT_OUT, ColumnUse, Features
from otprop.table.images import with_folder
from otprop.table.picture_vectors import picture_progress
from otprop.table.target import Target, read_target

LIKE_A_COLUMN = 0.75  # similarity of names from which on a target that does not exist is taken for a mistake
NEARLY_ALL = 0.99  # share of the new labels that one class may have without a note
MOST_MISSED = 3  # classes named in a note as hardly found
MOST_SHARES = 20  # classes whose shares are listed for a person
_CHOSEN = ("epsilon", "marginal_strength")  # parameters that the estimator may choose: it has the value used as NAME_
_WITHOUT_EFFECT = ("callback", "verbose", "unlabeled", "warm_start")  # parameters that do not change the result


@dataclass(frozen=True)
class Request:
    """The parameters of a job; `otprop.label` documents them."""

    target: str
    method: str = "otp"
    settings: Mapping[str, Any] = field(default_factory=dict)
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    embedding: str | None = None
    text_model: Any = None
    image_model: Any = None
    unlabeled: Sequence[str] = ()
    merge_labels: bool = False
    numeric_classes: bool = False
    abstain_below: float | None = None
    class_prior: str | Mapping[Any, float] | None = None
    objective: str | Mapping[tuple[Any, Any], float] | None = None
    metric: str | None = None
    seed: int = 0
    jobs: int | None = None
    corrections: Any = ()
    chosen: str | Sequence[Any] | None = None
    groups: str | Sequence[Any] | None = None
    new_classes: bool = False
    votes: Sequence[str] | Mapping[str, Any] = ()
    votes_file: Any = None

    def __post_init__(self) -> None:
        words = [self.unlabeled] if isinstance(self.unlabeled, (str, int, float)) else self.unlabeled
        object.__setattr__(self, "unlabeled", tuple(str(word) for word in words))


@dataclass
class Job:
    """A table, its labels, how its columns become vectors, and the estimator that will label it.

    Attributes
    ----------
    table : Table
    request : Request
    target : Target
    features : Features
    estimator : estimator, fitted once `run` has returned
    corrections : Corrections, labels that are not in the table
    in_table : ndarray of bool of shape (n_rows,), the target of the table has a label
    corrected : ndarray of bool of shape (n_rows,), the label is that of a correction and not in the table
    chosen : ndarray of bool of shape (n_rows,), the label was picked and not drawn at random
    groups : ndarray of shape (n_rows,) or None, the group of each row, whose labels are held out together
    previous : list of str, columns that an earlier run added, which are not used
    warnings : list of str, from the request and the estimator
    vectors : matrix, the features of the rows once `run` has returned
    geometry : Geometry or None, what the estimator finds out of the vectors alone
    votes : DataFrame or None, the class number of each vote, a column per voter
    voters : dict or None, by the name of the voter its votes as the estimator gets them, probabilities among them
    earlier : list of (int, float), labels and expected error of earlier runs of the same table with fewer labels
    """

    table: Table
    request: Request
    target: Target
    features: Features
    estimator: Any
    corrections: Corrections
    in_table: np.ndarray
    corrected: np.ndarray
    chosen: np.ndarray
    groups: np.ndarray | None = None
    previous: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    vectors: Any = None
    geometry: Geometry | None = None
    votes: Any = None
    voters: dict[str, Any] | None = None
    earlier: list[tuple[int, float]] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What the user should know of the table, the target and the fit."""
        notes = [*self.features.notes, *self.table.notes, *self.target.notes, *self.warnings]
        return list(dict.fromkeys(notes))

    @property
    def columns(self) -> list[ColumnUse]:
        """What was done to each column, in the order of the table, once the features are fitted."""
        made = [ColumnUse(name, LEFT_OUT, MADE_BY_PREVIOUS_RUN, 0) for name in self.previous]
        place = {name: number for number, name in enumerate(self.table.names)}
        prefix = self.features.prefix or ""
        first = next((place[name] for name in self.table.names if prefix and name.startswith(prefix)), 0)
        return sorted([*self.features.columns, *made], key=lambda use: place.get(use.name, first))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method as JSON can hold them: as used where the estimator chose, else as set."""
        params = self.estimator.get_params(deep=False)
        found = {name: _json_value(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
        for name in _CHOSEN:
            if name in found and hasattr(self.estimator, f"{name}_"):
                found[name] = _json_value(getattr(self.estimator, f"{name}_"))
        shares = _class_shares(self.estimator, self.target.classes)
        return found | ({"class_prior": shares} if shares else {})

    def fit_features(self) -> Any:
        """Fit the features on the frame of their columns, and return it."""
        frame = with_folder(self.table.frame(self.features.wanted), self.table)
        try:
            self.features.fit(frame, self.in_table)
        except NoFeaturesError as error:
            made = [f"{name!r} ({MADE_BY_PREVIOUS_RUN})" for name in self.previous]
            raise NoFeaturesError([*error.reasons, *made], error.hint) from error
        return frame

    def make_vectors(self, progress: ProgressCallback = no_progress) -> Any:
        """The features of the rows, made once."""
        if self.vectors is None:
            progress(0, 0, "making features")
            with picture_progress(progress):
                self.vectors = self.features.transform(self.fit_features())
        return self.vectors

    def with_labels(self, later: Corrections, parameter: str = "corrections", *, new_classes: bool = False) -> Job:
        """A job for the same table with more labels, which takes over the features and the geometry."""
        request = replace(self.request, new_classes=self.request.new_classes or new_classes)
        corrections = self.corrections.updated(later)
        job = prepare(self.table, request, corrections=corrections, parameter=parameter, features=self.features)
        job.vectors, job.geometry = self.vectors, self.geometry
        job.earlier = list(self.earlier)
        if hasattr(self.estimator, "expected_error_"):
            job.earlier.append((int(self.target.given.sum()), float(self.estimator.expected_error_)))
        return job

    def make_geometry(self, progress: ProgressCallback = no_progress) -> None:
        """Find what depends on the vectors alone, once for this job and those of `with_labels`."""
        if self.geometry is None and is_class_level(self.estimator):
            with _reporting(self.estimator, progress):
                self.geometry = self.estimator.prepare(self.vectors)

    def run(self, progress: ProgressCallback = no_progress) -> Outcome:
        """Make the vectors, fit the estimator and return the outcome; `progress` is called from time to time."""
        start = perf_counter()
        self.make_vectors(progress)
        progress(0, int((~self.target.given).sum()), "fitting")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.make_geometry(progress)
            more: dict[str, Any] = {}
            if is_class_level(self.estimator):
                more = {"geometry": self.geometry, "chosen": self.chosen if self.chosen.any() else None}
                more["votes"] = self.voters
            if self.groups is not None and is_class_level(self.estimator):
                more["groups"] = self.groups
            with _reporting(self.estimator, progress):
                self.estimator.fit(self.vectors, self.target.codes, **more)
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        self.warnings += dict.fromkeys(messages)
        self.warnings += [*sampling_notes(self), *self._no_gain()]
        outcome = self._outcome(perf_counter() - start)
        self.warnings += self._hardly_found(outcome.class_errors)
        return outcome

    def _no_gain(self) -> list[str]:
        """A note where one class for all rows is expected to be as good as the labels."""
        error, shares = getattr(self.estimator, "error_", None), getattr(self.estimator, "class_prior_", None)
        if error is None or shares is None or not error.concentration or len(shares) < 2:
            return []
        largest = int(np.argmax(shares))
        found = np.asarray(self.estimator.transduction_)[~self.target.given]
        if error.expected < 1.0 - shares[largest]:
            got = float(np.mean(found == largest)) if len(found) else 0.0
            if got < NEARLY_ALL or shares[largest] > got - 0.05:
                return []
            return [
                f"{got:.1%} of the rows without a label were labelled {self.target.classes[largest]!r}, though only "
                f"about {shares[largest]:.0%} of all rows are expected to be: hardly better than one class for every "
                f"row. Label more rows of the others"
            ]
        return [
            f"the labels are not expected to be better than {self.target.classes[largest]!r} for every row: expected "
            f"error {error.expected:.0%}, that of the one class {1.0 - shares[largest]:.0%}. Label more rows, or add "
            f"columns that tell the classes apart"
        ]

    def _hardly_found(self, errors: Sequence[ClassErrors]) -> list[str]:
        """A note for classes of which far fewer rows were labelled than are expected."""
        missed = sorted((one for one in errors if one.hardly_found), key=lambda one: -one.n_expected)
        if not missed:
            return []
        named = [
            f"about {one.n_expected:.0f} rows are expected to be {one.label!r}, {one.n_labelled or 'none'} "
            f"{'was' if one.n_labelled < 2 else 'were'} labelled so"
            for one in missed[:MOST_MISSED]
        ]
        if len(missed) > MOST_MISSED:
            named.append(f"and {len(missed) - MOST_MISSED} more classes")
        text = "; ".join(named)
        if self.request.abstain_below is not None:
            return [text]
        if self.request.objective is not None:
            return [f"{text}: label more rows of {'this class' if len(missed) == 1 else 'these classes'}"]
        return [Hint(f"{text}: ", "objective", "balanced", " finds more of them")]

    def _class_errors(self) -> list[ClassErrors]:
        """Precision and recall by the names of the classes; empty for other methods, and without unlabelled rows."""
        if not is_class_level(self.estimator) or self.target.given.all():
            return []
        return [replace(one, label=self.target.classes[one.label]) for one in self.estimator.class_errors()]

    def _outcome(self, seconds: float) -> Outcome:
        fitted, target, n_rows = self.estimator, self.target, self.table.n_rows
        distributions = fitted.label_distributions_
        rounds = getattr(fitted, "round_", np.where(target.given, 0, 1))
        confidence = getattr(fitted, "confidence_", None)
        return Outcome(
            target=self.request.target,
            classes=target.classes,
            codes=np.asarray(fitted.transduction_, dtype=np.intp).reshape(n_rows),
            given=target.given,
            distributions=distributions,
            certainty=fitted.certainty_ if hasattr(fitted, "certainty_") else certainty(distributions),
            confidence=confidence,
            novelty=getattr(fitted, "novelty_", None),
            shifted=_is_shifted(fitted),
            round=np.asarray(rounds),
            n_rounds=int(getattr(fitted, "n_iter_", 1)) if hasattr(fitted, "round_") else 1,
            n_hidden=int((~self.chosen[getattr(fitted, "held_out_rows_", [])]).sum()),
            corrected=self.corrected,
            confusion=_confusion(fitted, target),
            shares=_class_shares(fitted, target.classes) if hasattr(fitted, "class_prior_") else None,
            label_issues=[
                replace(issue, given=target.values[issue.given], suggested=target.values[issue.suggested])
                for issue in getattr(fitted, "label_issues_", [])
                if not (self.in_table[issue.row] and issue.row in self.corrections.labels)  # somebody has looked at it
            ],
            error=getattr(fitted, "error_", None),
            class_errors=self._class_errors(),
            objective=getattr(fitted, "objective", "accuracy"),
            expected_cost=getattr(fitted, "expected_cost_", None),
            coverage=fitted.coverage() if confidence is not None and not target.given.all() else [],
            sources=[(one.name, one.weight, one.accuracy) for one in getattr(fitted, "evidence_", [])],
            method=self.request.method,
            params=_parameter_texts(fitted, target.classes),
            seconds=seconds,
            voters=getattr(fitted, "voters_", []),
        )


def prepare(
    table: Table,
    request: Request,
    *,
    allow_few: bool = False,
    allow_complete: bool = False,
    corrections: Corrections | None = None,
    parameter: str = "corrections",
    frame: Any = None,
    features: Features | None = None,
) -> Job:
    """Check everything that can be checked before the work begins; raises ParameterError, ColumnError or ValueError.

    `allow_few`: there may be no label, no target, or one class; `allow_complete`: every row may have a label;
    `corrections`: instead of those of the request, `parameter` being where they came from; `frame`: the DataFrame that
    the table was made from, whose index names the rows of corrections; `features`: those of an earlier job for the
    same request.
    """
    _check_lists(request)
    if corrections is None:
        corrections = read_corrections(
            request.corrections, table, request.target, frame=frame, unlabeled=request.unlabeled
        )
    cells = vote_cells(request.votes, table, request.target, frame, request.votes_file)
    with_few = allow_few or bool(cells)
    target, in_table, corrected, notes = _target_with(table, request, corrections, parameter, with_few, allow_complete)
    if cells and not allow_few and len(target.classes) == 1:
        _target_with(table, request, corrections, parameter, allow_few, allow_complete)  # raises
    if cells and not target.given.any():
        target = classes_by_votes(target, cells, request.unlabeled)
    voters = read_votes(cells, target, request.unlabeled)
    estimator = make_estimator(
        request.method,
        request.settings,
        abstain_below=request.abstain_below,
        class_prior=request.class_prior,
        objective=request.objective,
        metric=request.metric,
        seed=request.seed,
        jobs=request.jobs,
        classes=target.classes,
    )
    groups = None if request.groups is None else group_values(request.groups, table, request.target, target.given)
    chosen = np.zeros(table.n_rows, dtype=bool)
    if request.chosen is not None:
        chosen = chosen_rows(request.chosen, table) & target.given
    picked = [row for row in corrections.labels if not in_table[row] and row not in corrections.drawn]
    chosen[picked] = True  # a given label that was corrected was drawn, or not, before
    asked = set(request.features or ())
    previous = [name for name in previous_columns(table, request.target, target.classes) if name not in asked]
    if features is None:
        features = _make_features(table, request, previous, [*cells.labels, *cells.columns])
    for parameter in ("chosen", "groups"):
        if getattr(request, parameter) is not None and not is_class_level(estimator):
            notes.append(Hint("without effect: ", parameter, after=f"; {request.method} does not estimate its error"))
    if cells and not is_class_level(estimator):
        raise RequestError("votes", f"need the method otp; {request.method} does not take them.")
    empty = [Hint("without effect: ", "embedding", after=", which is empty")] if request.embedding == "" else []
    return Job(
        table=table,
        request=request,
        target=target,
        features=features,
        estimator=estimator,
        corrections=corrections,
        in_table=in_table,
        corrected=corrected,
        chosen=chosen,
        groups=groups,
        previous=previous,
        warnings=[*empty, *notes],
        votes=hard_votes(voters),
        voters=voters,
    )


def _make_features(table: Table, request: Request, previous: Sequence[str], voters: Iterable[str]) -> Features:
    ignore = [*request.ignore, *(name for name in (request.chosen, request.groups) if isinstance(name, str))]
    ignore += [name for name in voters if name in table.names and name not in ignore]
    made_before = set(previous)
    return Features(
        [name for name in table.usable if name not in made_before],
        request.target,
        only=table.default_features if request.features is None else request.features,
        ignore=[name for name in ignore if name not in made_before],
        embedding=request.embedding,
        text_model=request.text_model,
        image_model=request.image_model,
    )


def _check_lists(request: Request) -> None:
    """Refuse a text where a list of them is meant: its letters would be taken for names."""
    for parameter in ("features", "ignore", "votes"):
        value = getattr(request, parameter)
        if isinstance(value, str):
            raise RequestError(parameter, f"must be a list; write [{value!r}].", value)


def _target_with(
    table: Table, request: Request, corrections: Corrections, parameter: str, allow_few: bool, allow_complete: bool
) -> tuple[Target, np.ndarray, np.ndarray, list[str]]:
    """The labels of the table and the corrections, which rows have one in the table, which a new one, and notes."""
    options: dict[str, Any] = {"merge": request.merge_labels, "numeric_classes": request.numeric_classes}
    notes: list[str] = []
    if request.target in table.names:
        cells = table.cells(request.target).copy()
    elif request.target not in table.unread and (corrections.labels or allow_few):
        cells = np.full(table.n_rows, None, dtype=object)
        if did_you_mean(request.target, table.names, cutoff=LIKE_A_COLUMN):
            why = f"{unknown_name('column', request.target, table.names)} A new column must be less like it."
            raise RequestError("target", why, request.target)
        notes.append(f"{table.origin} has no column {request.target!r} yet")
    elif request.target in table.unread:
        raise RequestError("target", f"{table.unread[request.target]}. Save it as text or numbers.", request.target)
    else:
        raise RequestError("target", unknown_name("column", request.target, table.names), request.target)
    if not corrections.labels:
        options |= {"allow_few": allow_few, "allow_complete": allow_complete}
        target = read_target(cells, request.target, request.unlabeled, **options)
        return target, target.given, np.zeros(table.n_rows, dtype=bool), notes + corrections.notes
    before = read_target(
        cells, request.target, request.unlabeled, numeric_classes=True, allow_few=True, allow_complete=True
    )
    cells[~before.given] = None
    cells, corrected, more = corrected_cells(
        cells, corrections, request.target, parameter, request.new_classes or request.merge_labels
    )
    target = read_target(cells, request.target, request.unlabeled, allow_few=allow_few, allow_complete=True, **options)
    return target, before.given, corrected & target.given, notes + more


@contextmanager
def _reporting(estimator: Any, progress: ProgressCallback) -> Iterator[None]:
    """Between these two moments the estimator reports its progress, if it can."""
    reports = hasattr(estimator, "set_progress")
    if reports:
        estimator.set_progress(progress)
    try:
        yield
    finally:
        if reports:
            estimator.set_progress(None)


def _is_shifted(fitted: Any) -> bool:
    """Whether the labelled rows differ from the others, so that the expected error is a rough estimate."""
    shift = getattr(fitted, "shift_", None)
    return bool(shift is not None and shift.found)


def is_class_level(estimator: Any) -> bool:
    """Whether the estimator has confidence, suggestions and explanations."""
    return isinstance(estimator, OTP)


def _confusion(fitted: Any, target: Target) -> tuple[np.ndarray, list[str]] | None:
    """Held-out labels by given class and by the class found; None where none was held out."""
    rows = getattr(fitted, "held_out_rows_", np.empty(0, dtype=np.intp))
    if len(rows) == 0:
        return None
    matrix = np.zeros((len(target.classes), len(target.classes)), dtype=np.intp)
    np.add.at(matrix, (target.codes[rows], fitted.held_out_proba_.argmax(axis=1)), 1)
    return matrix, list(target.classes)


def _json_value(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [_json_value(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def _class_shares(estimator: Any, classes: Sequence[str]) -> dict[str, float] | None:
    """The classes' shares by name, as used, or else as asked for."""
    shares = getattr(estimator, "class_prior_", getattr(estimator, "class_prior", None))
    if shares is None or isinstance(shares, str):
        return None
    return {name: float(share) for name, share in zip(classes, shares, strict=True)}


def _parameter_texts(estimator: Any, classes: Sequence[str]) -> dict[str, str]:
    """The parameters that decide the result, as set and as used, for a person."""
    params = estimator.get_params(deep=False)
    found = {name: str(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
    for name in _CHOSEN:
        if name in found and hasattr(estimator, f"{name}_"):
            found[name] += f" (used: {float(getattr(estimator, f'{name}_')):.3g})"
    shares = _class_shares(estimator, classes)
    if shares:
        named = [f"{name} {share:.3g}" for name, share in shares.items()]
        more = f" and {len(named) - MOST_SHARES} more" if len(named) > MOST_SHARES else ""
        asked = params["class_prior"]
        how = f"{asked}, used: " if asked is None or isinstance(asked, str) else ""
        found["class_prior"] = how + ", ".join(named[:MOST_SHARES]) + more
    return found
