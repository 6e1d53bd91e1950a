"""The one road of a table: its target, features and labels, the fit, the outcome, and the columns of the result.

A file, a DataFrame, the landmarks of a folder and the table of the studio are all a `Job` of `prepare`.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np

from otprop._progress import NEIGHBOURS_DONE, ProgressCallback, no_progress, part_of
from otprop._validation import check_bool, is_missing
from otprop.files import Table, listed
from otprop.labelling.corrections import Corrections, labels_of, read_corrections
from otprop.labelling.fit_notes import NOT_CALIBRATED, fit_notes, note_of_warning
from otprop.labelling.methods import is_class_level, make_estimator, parameters_used
from otprop.labelling.outcome import Outcome, RowLabels, counted, outcome_of
from otprop.labelling.output_columns import (
    MADE_BY_PREVIOUS_RUN,
    OutputColumns,
    parts_of_file,
    previous_columns,
    refuse_taken,
)
from otprop.labelling.votes import VoteCells, classes_by_votes, hard_votes, notes_beside_votes, read_votes, vote_cells
from otprop.propagation.geometry import Geometry
from otprop.table.columns import shown
from otprop.table.errors import Hint, NoFeaturesError, RequestError, unknown_name
from otprop.table.features import IGNORED, SKIPPED, ColumnUse, Features
from otprop.table.images import with_folder
from otprop.table.opening import refuse_unlabelled
from otprop.table.picture_vectors import picture_progress
from otprop.table.target import Target

MAY_BE_FILES = ("corrections", "votes_file", "text_model", "image_model")  # parameters
LISTED = 6
logger = logging.getLogger("otprop")
_YES = {"true", "1", "1.0", "yes", "y", "x", "chosen", "reviewed", "suggested", "corrected", "uncertain", "typical"}
_YES |= {"propagated"}  # labels that a fit gave, filled into the target: no sample of the truth
_NO = {"", "false", "0", "0.0", "no", "n", "drawn", "given", "random", "abstained"}


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
        object.__setattr__(self, "unlabeled", _words(self.unlabeled))
        for name in ("merge_labels", "numeric_classes", "new_classes"):
            check_bool(name, getattr(self, name))
            object.__setattr__(self, name, bool(getattr(self, name)))
        if not (self.embedding is None or isinstance(self.embedding, str)):
            what = type(self.embedding).__name__
            raise RequestError("embedding", f"must be the prefix of columns as text, or None; got {what}.")
        self._check_columns()

    def _check_columns(self) -> None:
        """Refuse lists of columns that are not lists, name a column twice or contradict each other."""
        for name in ("features", "ignore", "votes"):
            value = getattr(self, name)
            if isinstance(value, str):  # its letters would be taken for names
                raise RequestError(name, f"must be a list; write [{value!r}].", value)
        if self.features is not None:
            object.__setattr__(self, "features", _column_names("features", self.features))
        object.__setattr__(self, "ignore", _column_names("ignore", self.ignore))
        features = self.features or ()
        if self.features is not None and not features and not self.embedding:
            raise RequestError("features", "is empty; name at least one column, or None for all of them.")
        if twice := [name for name in features if features.count(name) > 1]:
            raise RequestError("features", "is named twice.", twice[0])
        votes = self.votes if isinstance(self.votes, (list, tuple)) else ()
        for parameter, names in (("features", features), ("votes", votes)):
            if both := [name for name in names if name in self.ignore]:
                why = Hint("this column is also in ", "ignore", after="; take it out of one of them.")
                raise RequestError(parameter, why, both[0])


def _words(value: Any) -> tuple[str, ...]:
    """Words for unlabelled cells as text; none for a missing value, since missing cells are unlabelled anyway."""
    if is_missing(value):
        return ()
    if isinstance(value, (str, Real)):
        return (str(value),)
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        what = type(value).__name__
        raise RequestError("unlabeled", f"must be a value that means unlabelled, or a list of these; got {what}.")
    return tuple(str(word) for word in value)


def _column_names(parameter: str, value: Any) -> Sequence[str]:
    """A list or tuple of names, also from an array, an index or a set."""
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise RequestError(parameter, f"must be a list of columns; got {value!r} of type {type(value).__name__}.")
    names = value if isinstance(value, (list, tuple)) else list(value)
    for name in names:
        if not isinstance(name, str):
            raise RequestError(parameter, f"must be names of columns; got {name!r} of type {type(name).__name__}.")
    return names


@dataclass
class Job:
    """A table, its labels, how its columns become vectors, the estimator that will label it, and what is added."""

    table: Table
    request: Request
    target: Target
    features: Features
    estimator: Any  # fitted once `run` has returned
    corrections: Corrections  # labels that are not in the table
    in_table: np.ndarray  # bool: the target of the table has a label
    corrected: np.ndarray  # bool: the label is that of a correction and not in the table
    chosen: np.ndarray  # bool: the label was picked and not drawn at random
    groups: np.ndarray | None = None  # the group of each row, whose labels are held out together
    previous: list[str] = field(default_factory=list)  # columns that an earlier run added, which are not used
    warnings: list[str] = field(default_factory=list)  # from the request and the estimator
    vectors: Any = None  # the features of the rows once `run` has returned
    geometry: Geometry | None = None  # what the estimator derives from the vectors alone
    votes: Any = None  # DataFrame or None, the class number of each vote, a column per voter
    voters: dict[str, Any] | None = None  # by voter, the votes as the estimator gets them, probabilities among them
    earlier: list[tuple[int, float]] = field(default_factory=list)  # labels and expected error of earlier runs
    output: OutputColumns = field(default_factory=OutputColumns)
    call: str = ""  # what repeats this
    frame: Any = None  # DataFrame that the table was made from, whose index names the rows; None for a file
    inputs: list[str] = field(default_factory=list)  # files that were read, which are never written

    @property
    def notes(self) -> list[str]:
        """What the user should know of the table, the target and the fit."""
        notes = [*self.features.notes, *self.table.notes, *self.target.notes, *self.warnings]
        return list(dict.fromkeys(notes))

    @property
    def columns(self) -> list[ColumnUse]:
        """What was done to each column, in the order of the table, once the features are fitted."""
        made = [ColumnUse(name, SKIPPED, MADE_BY_PREVIOUS_RUN, 0) for name in self.previous]
        place = {name: number for number, name in enumerate(self.table.names)}
        prefix = self.features.prefix or ""
        first = next((place[name] for name in self.table.names if prefix and name.startswith(prefix)), 0)
        return sorted([*self.features.columns, *made], key=lambda use: place.get(use.name, first))

    @property
    def calibrated(self) -> Any:
        """The estimator, if it has calibrated probabilities; refuses another."""
        if not is_class_level(self.estimator):
            raise RequestError("method", f"{self.request.method!r} does not estimate its error.")
        return self.estimator

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method as JSON can hold them: as used where the estimator chose, else as set."""
        return parameters_used(self.estimator, self.target.classes)

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
                made = self.features.transform(self.fit_features())
            self.vectors = made.astype(np.float64)  # as estimators use them, or each would make a copy
        return self.vectors

    def with_labels(self, later: Corrections, *, new_classes: bool = False) -> Job:
        """A job for the same table with more labels, which takes over the features and the geometry."""
        call = self.call if self.call.endswith(".add(...)") else f"{self.call}.add(...)"
        request = replace(self.request, new_classes=self.request.new_classes or new_classes)
        job = _make_job(self.table, request, self.corrections.updated(later), self.frame, features=self.features)
        job._set_output(self.output, call)
        job.vectors, job.geometry = self.vectors, self.geometry
        job.earlier, job.inputs = list(self.earlier), list(self.inputs)
        if hasattr(self.estimator, "expected_error_"):
            job.earlier.append((int(self.target.given.sum()), float(self.estimator.expected_error_)))
        return job

    def _set_output(self, output: OutputColumns, call: str) -> None:
        """Set the columns to add, which are refused where the table has them, and what repeats this."""
        parts, target = parts_of_file(confidence=is_class_level(self.estimator)), self.request.target
        refuse_taken(self.table, output.names(target, self.target.classes, parts), target)
        self.output, self.call = output, call

    def make_geometry(self, progress: ProgressCallback = no_progress) -> None:
        """Find what depends on the vectors alone, once for this job and those of `with_labels`."""
        if self.geometry is None and is_class_level(self.estimator):
            with _reporting(self.estimator, part_of(progress, 0.0, NEIGHBOURS_DONE)):
                self.geometry = self.estimator.prepare(self.vectors, graph=self.table.graph)

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
                chosen = self.chosen if self.chosen.any() else None
                more = {"geometry": self.geometry, "chosen": chosen, "votes": self.voters, "groups": self.groups}
            with _reporting(self.estimator, progress), _noted_instead_of_logged():
                self.estimator.fit(self.vectors, self.target.codes, **more)
        messages = [note_of_warning(one.message) for one in caught if issubclass(one.category, UserWarning)]
        self.warnings += dict.fromkeys(messages)
        outcome = outcome_of(self, perf_counter() - start)
        self.warnings += fit_notes(self, outcome.class_errors)
        return outcome

    def added(self, labels: RowLabels) -> tuple[dict[str, Any], tuple[str, np.ndarray] | None]:
        """The columns that are added to the table for these labels, and the target with what to fill into it."""
        target = self.target
        return self.output.written(labels, self.table, target.name, target.classes, target.values)


def prepare(
    table: Table,
    request: Request,
    *,
    allow_few: bool = False,
    allow_complete: bool = False,
    frame: Any = None,
    output: OutputColumns | None = None,
    call: str = "",
) -> Job:
    """Check everything that can be checked before the work begins; raises ParameterError, ColumnError or ValueError.

    `allow_few`: there may be no label, no target, or one class; `allow_complete`: every row may have a label; `frame`:
    the DataFrame that the table was made from, whose index names the rows of corrections; `output`: the columns to add,
    refused where the table has them; `call`: what repeats this.
    """
    corrections = read_corrections(request.corrections, table, request.target, frame=frame, unlabeled=request.unlabeled)
    if not (allow_few or corrections.labels):
        refuse_unlabelled(table, request.target)
    job = _make_job(table, request, corrections, frame, allow_few=allow_few, allow_complete=allow_complete)
    job.call = call
    if output is not None:
        job._set_output(output, call)
    return job


def _make_job(
    table: Table,
    request: Request,
    corrections: Corrections,
    frame: Any,
    *,
    allow_few: bool = False,
    allow_complete: bool = False,
    features: Features | None = None,
) -> Job:
    """The job of a request with these corrections; `features` are those of an earlier job for the same request."""
    cells = vote_cells(request.votes, table, request.target, frame, request.votes_file)
    target, in_table, corrected, notes = _given_labels(table, request, corrections, cells, allow_few, allow_complete)
    voters = read_votes(cells, target, request.unlabeled)
    estimator = make_estimator(request, target.classes)
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
    if not is_class_level(estimator):
        notes += _unused_without_confidence(table, request, bool(cells))
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
        frame=frame,
        inputs=files_among(table.path, *(getattr(request, name) for name in MAY_BE_FILES)),
    )


def files_among(*given: Any) -> list[str]:
    """The files that parameters name: paths, and those in lists."""
    each = [one for part in given for one in (part if isinstance(part, (list, tuple)) else [part])]
    return [os.fspath(one) for one in each if isinstance(one, (str, os.PathLike))]


def _unused_without_confidence(table: Table, request: Request, voted: bool) -> list[Hint]:
    """Notes on what a method without confidence does not use; a graph and votes are refused."""
    if table.graph is not None:
        raise RequestError("graph", f"needs the method otp; {request.method} does not use a graph.")
    if voted:
        raise RequestError("votes", f"need the method otp; {request.method} does not take them.")
    why = f"; {request.method} does not estimate its error"
    unused = [name for name in ("chosen", "groups") if getattr(request, name) is not None]
    return [Hint("without effect: ", name, after=why) for name in unused]


def _make_features(table: Table, request: Request, previous: Sequence[str], voters: Iterable[str]) -> Features:
    ignore = dict.fromkeys(request.ignore, IGNORED)
    annotated = [name for field, names in table.annotators.items() for name in (field, *names)]  # never features
    asked = {request.target, *(request.features or ())}
    ignore |= {name: "annotations" for name in annotated if name not in asked}
    ignore |= {name: "used as votes" for name in voters if name in table.names}
    for name, why in ((request.chosen, "marks chosen labels"), (request.groups, "used as groups")):
        if isinstance(name, str):
            ignore[name] = why
    made_before = set(previous)
    return Features(
        [name for name in table.usable if name not in made_before],
        request.target,
        only=table.default_features if request.features is None else request.features,
        ignore={name: why for name, why in ignore.items() if name not in made_before},
        embedding=request.embedding,
        text_model=request.text_model,
        image_model=request.image_model,
    )


def _given_labels(
    table: Table, request: Request, corrections: Corrections, votes: VoteCells, allow_few: bool, allow_complete: bool
) -> tuple[Target, np.ndarray, np.ndarray, list[str]]:
    """The labels of the table and the corrections, which rows have one in the table, which a new one, and notes."""
    parts = table, request, corrections
    found = labels_of(*parts, allow_few or bool(votes), allow_complete)
    target = found[0]
    if not votes:
        return found
    if not allow_few and len(target.classes) == 1:
        labels_of(*parts, allow_few, allow_complete)  # raises
    if not target.given.any():
        target = classes_by_votes(target, votes, request.unlabeled, allow_few=allow_few)
    return replace(target, notes=notes_beside_votes(target.notes, votes)), *found[1:]


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


@contextmanager
def _noted_instead_of_logged() -> Iterator[None]:
    """Between these two moments, this thread does not log that nothing is calibrated: `fit_notes` has a note on it."""
    thread = get_ident()

    def is_logged(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(NOT_CALIBRATED) or record.thread != thread

    logger.addFilter(is_logged)
    try:
        yield
    finally:
        logger.removeFilter(is_logged)


def chosen_rows(chosen: str | Sequence[Any], table: Table) -> np.ndarray:
    """Which labels were picked: from booleans, one per row, or from a column."""
    values, where = _row_values("chosen", chosen, table)
    texts = ["" if is_missing(cell) else str(cell).strip().lower() for cell in values]
    unknown = sorted(set(texts) - _YES - _NO)
    if unknown:
        raise RequestError(
            "chosen",
            "must mark chosen labels (true, 1, yes, chosen, reviewed) and random ones (false, 0, no, drawn, or empty); "
            f"{where} holds {listed(unknown, LISTED)}.",
        )
    return np.array([text in _YES for text in texts])


def group_values(groups: str | Sequence[Any], table: Table, target: str, given: np.ndarray) -> np.ndarray:
    """The group of each row as text."""
    if isinstance(groups, str) and groups == target:
        raise RequestError("groups", "names the target; name the column that says which rows belong together.", groups)
    values, where = _row_values("groups", groups, table)
    missing = [row for row in np.flatnonzero(given) if is_missing(values[row])]
    if missing:
        raise RequestError(
            "groups",
            f"names the group of every labelled row; {where} is empty in {len(missing)} of them, the first being row "
            f"{missing[0] + 1}. Fill them: a row that belongs to no group is its own group.",
        )
    names = [str(value) for value in values]
    if len(set(names)) == 1:
        raise RequestError("groups", f"must tell groups apart; {where} has one value, {shown(names[0])}, for all rows.")
    return np.array(names, dtype=object)


def _row_values(parameter: str, given: str | Sequence[Any], table: Table) -> tuple[list[Any], str]:
    """The value of each row, and what to call where they are."""
    if isinstance(given, str):
        if given not in table.names:
            raise RequestError(parameter, unknown_name("column", given, table.names), given)
        return list(table.cells(given)), f"the column {given!r}"
    in_order = hasattr(given, "__iter__") and not isinstance(given, (bytes, dict, set, frozenset))
    if not in_order or getattr(given, "ndim", 1) == 0:
        why = f"must name a column, or be a list with the value of each row; got {type(given).__name__}."
        raise RequestError(parameter, why)
    values = list(given)
    if len(values) != table.n_rows:
        raise RequestError(
            parameter, f"has {counted(len(values), 'value')}, {table.origin} has {counted(table.n_rows, 'row')}."
        )
    return values, "it"
