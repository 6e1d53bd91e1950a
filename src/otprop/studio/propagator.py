"""The propagation inside the worker: one table with its neighbours, and a fit for every state of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from otprop._progress import FitCancelledError, ProgressCallback
from otprop._votes import Voter
from otprop.files import listed
from otprop.labelling.corrections import Corrections
from otprop.labelling.job import Job
from otprop.labelling.next_rows import explain_rows, suggest_next, typicality
from otprop.labelling.outcome import Outcome
from otprop.loop.labels_needed import LabelsNeeded
from otprop.loop.suggestions import MAX_CLUSTERED, suggest_rows
from otprop.report.row_map import map_rows
from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN
from otprop.studio.source import Source, prepare_source, read_row_votes, read_source
from otprop.table.target import Target, read_target

MAX_NAMED = 5  # classes in a note
VOTES = "votes"  # the source of evidence
MAX_PROBABLE = 10  # classes of a row whose probabilities are kept
N_SUGGESTED = 40
N_EXPLAINED = 12  # suggestions that are explained at once
NO_CLASS = 65535
_BLOCK = 65_536  # rows at a time


@dataclass(frozen=True)
class Labels:
    """The labels that a propagation sees."""

    revision: int
    classes: list[str]  # by id
    state: np.ndarray  # of every row, as in `Session`, and so is `drawn`
    drawn: np.ndarray
    goal: float | None = None  # the expected error to reach
    curve: list[tuple[int, float]] = field(default_factory=list)  # labels and expected error, of the whole session


@dataclass(frozen=True)
class Result:
    """What a propagation found, by row; classes are ids of the session, ranges are (value, low, high)."""

    revision: int  # of the labels
    labels: np.ndarray  # uint16, NO_CLASS where there is none
    confidence: np.ndarray  # uint8, and so are `rounds`
    rounds: np.ndarray
    best: np.ndarray  # uint16 of shape (n_rows, MAX_PROBABLE or fewer), the label first
    probability: np.ndarray  # float32, of these; that of the label is its confidence
    changed: np.ndarray  # uint32, rows that have another class than in the result before
    error: tuple[float, float, float] | None
    issues: list[tuple[int, int, float]]  # row, suggested class, probability; the most doubtful first
    n_labels: int
    n_rounds: int
    classes_found: int
    seconds: float
    reused: list[str]
    notes: list[str]
    novelty: np.ndarray | None = None  # uint8, how unlike all labelled classes each row is
    novel_share: tuple[float, float, float] | None = None  # of the rows without a label that are of no labelled class
    voters: list[Voter] = field(default_factory=list)  # judged by the labels


class Propagator:
    """A table that is propagated again for every state of its labels."""

    def __init__(self, source: Source, progress: ProgressCallback) -> None:
        progress(0, 0, "reading")
        table = read_source(source)
        self.source, self.base = source, prepare_source(source, table)
        self.votes = read_row_votes(source.request, table, self.base.target)
        self._progress = progress
        self._running: Any = None
        self._stop = False
        self.fitted: tuple[Job, Outcome, np.ndarray] | None = None  # with the ids of the classes
        self._last: np.ndarray | None = None

    @property
    def digest(self) -> str:
        """Of the content of the file."""
        return str(self.base.table.digest)

    def make_vectors(self) -> None:
        """Make the features of the rows."""
        self.base.make_vectors(self._progress)

    def points(self, how: str) -> np.ndarray:
        """The map of the rows: float32 of shape (n_rows, 2) between -1 and 1."""
        found = map_rows(self.base.vectors, np.arange(self.base.table.n_rows), how, self.source.request.seed)
        found = np.nan_to_num(found)
        low, high = found.min(axis=0), found.max(axis=0)
        half = float((high - low).max()) / 2 or 1.0
        return np.ascontiguousarray((found - (low + high) / 2) / half, dtype="<f4")

    def find_neighbors(self) -> None:
        """Find what depends on the rows alone, so that the first label does not wait for it."""
        if self.base.table.n_rows > 1:
            self.base.make_geometry(self._progress)

    def can_run(self, labels: Labels) -> bool:
        """Whether there are labels of two classes, or votes for two."""
        return _n_classes(class_ids(self.base.target, labels)) > 1 or self._n_voted > 1

    @property
    def _n_voted(self) -> int:
        return 0 if self.votes is None else len(self.votes.voted)

    def run(self, labels: Labels) -> Result:
        """Propagate; raises FitCancelledError where `cancel` was called meanwhile."""
        job, ids = self.job(labels)
        self._running = job.estimator
        try:
            outcome = job.run(self._step)
        finally:
            self._running, self._stop = None, False
            self.base.geometry = job.geometry  # also where the fit was cancelled
        outcome.codes[labels.state == UNKNOWN] = -1
        self._add_labels(outcome, ids, labels)
        result = self._result(job, outcome, ids, labels)
        self.fitted, self._last = (job, outcome, ids), result.labels
        return result

    def _add_labels(self, outcome: Outcome, ids: np.ndarray, labels: Labels) -> None:
        """Put labels of one class into the outcome, where the fit went by votes alone and did not see them."""
        codes = class_ids(self.base.target, labels)
        rows = np.flatnonzero((codes >= 0) & ~outcome.given)
        if len(rows):
            place = {int(number): code for code, number in enumerate(ids)}
            outcome.codes[rows] = [place[int(number)] for number in codes[rows]]
            outcome.given[rows], outcome.round[rows] = True, 0

    def cancel(self) -> None:
        """Stop a run in another thread before its next step."""
        self._stop, running = True, self._running  # the flag where the estimator has not begun yet
        if running is not None:
            running.cancel()

    def _step(self, done: float, total: float, step: str) -> None:
        if self._stop:
            raise FitCancelledError("a newer label came")
        self._progress(done, total, step)

    def suggest(self, labels: Labels) -> list[tuple[int, str]]:
        """Rows to label next with the reason of each: of the last run, or typical ones where there was none."""
        without = class_ids(self.base.target, labels) < 0
        without[labels.state == UNKNOWN] = False
        n_pile = int((labels.state == UNKNOWN).sum())
        if self.fitted is not None and not self.fitted[0].target.given.all():
            found = suggest_next(self.fitted[0], min(N_SUGGESTED + n_pile, self.base.table.n_rows))
            return [(one.row, one.reason) for one in found if without[one.row]][:N_SUGGESTED]
        return self._typical(np.flatnonzero(without))

    def _typical(self, candidates: np.ndarray) -> list[tuple[int, str]]:
        """Typical rows of different regions, and some at random; of large tables, from a sample of the rows."""
        seed = self.source.request.seed + len(candidates)
        if len(candidates) > MAX_CLUSTERED:
            rng = np.random.default_rng(seed)
            candidates = np.sort(rng.choice(candidates, MAX_CLUSTERED, replace=False))
        if len(candidates) < 2:
            return [(int(row), "typical") for row in candidates]
        vectors, rows = self.base.vectors[candidates], np.arange(len(candidates))
        dense = typicality(vectors, self.source.request)
        found = suggest_rows(vectors, rows, N_SUGGESTED, typicality=dense, seed=seed)
        return [(int(candidates[one.row]), one.reason) for one in found]

    def explain(self, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The prediction of each source and the nearest labelled rows, by row."""
        if self.fitted is None or not len(rows):
            return {}
        job, outcome, ids = self.fitted
        found = explain_rows(job, outcome, [int(row) for row in rows])
        number = {name: int(ids[code]) for code, name in enumerate(outcome.classes)}
        return {
            row: {
                "evidence": [
                    {"source": source, "class": number[name], "probability": round(float(share), 4)}
                    for source, shares in one["sources"].items()
                    if source != VOTES  # its votes are shown separately
                    for name, share in sorted(shares.items(), key=lambda item: -item[1])[:3]
                ],
                "nearest": [
                    {"id": near, "class": number[name], "distance": far}
                    for near, name, far in one["nearest"]
                    if near != row
                ],
            }
            for row, one in found.items()
        }

    def labels_needed(self, error: float, curve: Sequence[tuple[int, float]]) -> LabelsNeeded | None:
        """How many more labels bring the expected error down to this; None where nobody knows.

        `curve`: labels and expected error of earlier propagations, which show how fast it falls.
        """
        if self.fitted is None or not hasattr(self.fitted[0].estimator, "labels_needed"):
            return None
        job = self.fitted[0]
        earlier = [point for point in curve if point[0] < int(job.target.given.sum())]
        try:
            return LabelsNeeded(*job.estimator.labels_needed(error, earlier))
        except ValueError:  # an error that no number of labels brings about
            return None

    def job(self, labels: Labels) -> tuple[Job, np.ndarray]:
        """The job of these labels, as `otprop label` would have it with corrections, and the ids of its classes."""
        base, codes = self.base, class_ids(self.base.target, labels)
        ids = np.unique(codes[codes >= 0])
        seen = codes
        if len(ids) < 2 and self.votes is not None and self._n_voted > 1:  # votes alone decide
            ids = np.union1d(ids, [labels.classes.index(name) for name in self.votes.voted])
            seen = np.full_like(codes, -1)
        in_file = dict(zip(base.target.classes, base.target.values, strict=True))
        ids = ids[_order_of_classes(class_values([labels.classes[number] for number in ids], in_file))]
        place = np.full(len(labels.classes) + 1, -1, dtype=np.intp)
        place[ids] = np.arange(len(ids))
        names = [labels.classes[number] for number in ids]
        values = class_values(names, in_file)
        here = np.flatnonzero(labels.state >= 0)
        changed = (labels.state >= 0) & (labels.state != _given_ids(base.target, labels))
        made = {int(row): values[place[codes[row]]] for row in here}
        target = Target(base.target.name, place[seen], names, values, seen >= 0, base.target.notes)
        votes = None if self.votes is None else self.votes.frame(names)
        job = replace(
            base,
            target=target,
            estimator=clone(self.base.estimator),
            corrections=base.corrections.updated(Corrections(made, frozenset(here[labels.drawn[here]].tolist()))),
            corrected=(base.corrected & (labels.state == AS_IN_FILE)) | changed,
            chosen=self._chosen(labels) & target.given,
            votes=votes,
            voters=None if votes is None else {str(name): votes[name] for name in votes},
            warnings=list(base.warnings),
        )
        return job, ids

    def _chosen(self, labels: Labels) -> np.ndarray:
        """Rows that were picked, not drawn at random."""
        drawn = labels.drawn | self.base.in_table  # a given label that was corrected counts as it did before
        return np.asarray(self.base.chosen | ((labels.state >= 0) & ~drawn))

    def _judging(self, labels: Labels) -> np.ndarray:
        """The class ids by which voters are judged: those of rows drawn at random, or of all where none was."""
        codes = class_ids(self.base.target, labels)
        drawn = np.where(self._chosen(labels), -1, codes)
        return drawn if (drawn >= 0).any() else codes

    def _uncounted_votes(self, classes: Sequence[str]) -> list[str]:
        """A note on votes for classes that no row is labelled with yet."""
        missing = [] if self.votes is None else [name for name in self.votes.voted if name not in classes]
        if self.votes is None or not missing:
            return []
        n_rows = int(np.isin(self.votes.codes, [self.votes.classes.index(name) for name in missing]).any(axis=1).sum())
        return [
            f"votes for {listed(missing, MAX_NAMED)} ({n_rows} rows) count once a row is labelled so; until then "
            f"{'this class is' if len(missing) == 1 else 'these classes are'} not found"
        ]

    def _result(self, job: Job, outcome: Outcome, ids: np.ndarray, labels: Labels) -> Result:
        table = np.append(ids, NO_CLASS).astype(np.uint16)
        shown = table[outcome.codes]
        label, confidence = _confidence(outcome)
        best, probability = _most_probable(outcome.distributions, label, np.where(outcome.given, -1, confidence))
        low_high, expected = outcome.error_range, outcome.expected_error
        last = shown if self._last is None else self._last
        changed = np.flatnonzero((shown != last) & (last != NO_CLASS) & (shown != NO_CLASS)).astype("<u4")
        number = {name: int(ids[code]) for code, name in enumerate(outcome.classes)}
        given_ids = {
            str(value): number[name] for name, value in zip(job.target.classes, job.target.values, strict=True)
        }
        return Result(
            revision=labels.revision,
            labels=shown,
            confidence=confidence,
            rounds=np.where(outcome.codes < 0, 255, np.clip(outcome.round, 0, 254)).astype(np.uint8),
            best=table[best],
            probability=probability,
            changed=changed,
            error=None if expected is None or low_high is None else (expected, *low_high),
            issues=[(one.row, given_ids[str(one.suggested)], one.probability) for one in outcome.wrong_looking],
            n_labels=int(job.target.given.sum()),
            n_rounds=outcome.n_rounds,
            classes_found=_n_classes(outcome.codes),
            seconds=outcome.seconds,
            reused=list(getattr(job.estimator, "reused_", ())),
            notes=[*job.notes, *self._uncounted_votes(outcome.classes)],
            novelty=None if outcome.novelty is None else _as_bytes(outcome.novelty),
            novel_share=_novel_share(job.estimator),
            voters=[] if self.votes is None else self.votes.judged(labels.classes, self._judging(labels)),
        )


def _n_classes(codes: np.ndarray) -> int:
    return len(np.unique(codes[codes >= 0]))


def _novel_share(estimator: Any) -> tuple[float, float, float] | None:
    """The share of rows of no labelled class, where it is above 0."""
    share = float(getattr(estimator, "novel_share_", 0.0))
    if share <= 0:
        return None
    low, high = estimator.novel_range_
    return share, float(low), float(high)


def class_ids(target: Target, labels: Labels) -> np.ndarray:
    """The class id of every labelled row, -1 for the others."""
    codes = np.where(labels.state >= 0, labels.state, _given_ids(target, labels))
    codes[(labels.state == REMOVED) | (labels.state == UNKNOWN)] = -1
    return codes


def _given_ids(target: Target, labels: Labels) -> np.ndarray:
    """The class id of every row in the file, -1 where there is no label."""
    ids = {name: number for number, name in enumerate(labels.classes)}
    return np.array([*(ids[name] for name in target.classes), -1], dtype=np.int64)[target.codes]


def _order_of_classes(values: Sequence[Any]) -> np.ndarray:
    """Where the classes are in the order of `otprop label`, whatever order they were made in."""
    target = read_target(values, "classes", numeric_classes=True, allow_few=True, allow_complete=True)
    return np.argsort(target.codes, kind="stable")


def class_values(names: Sequence[str], in_file: Mapping[str, Any]) -> list[Any]:
    """The classes as they are written to a file: in the type of those in the file, or all as text."""
    kinds = {type(value) for value in in_file.values()}
    kind = next(iter(kinds)) if len(kinds) == 1 else str
    try:
        values = [in_file[name] if name in in_file else kind(name) for name in names]
    except (TypeError, ValueError):
        return list(names)
    made = (value for name, value in zip(names, values, strict=True) if name not in in_file)
    return values if kind is not bool and all(value == value for value in made) else list(names)


def _confidence(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """The label of each row, or its most probable class where it has none, and the confidence in 1/255."""
    label = np.where(outcome.codes >= 0, outcome.codes, outcome.distributions.argmax(axis=1))
    shares = outcome.confidence
    if shares is None:  # of a method without: the probability
        shares = np.take_along_axis(outcome.distributions, label[:, None], axis=1)[:, 0]
    return label, _as_bytes(shares)


def _as_bytes(shares: np.ndarray) -> np.ndarray:
    """Shares in 1/255."""
    return np.round(255 * np.clip(shares, 0, 1)).astype(np.uint8)


def _most_probable(
    distributions: np.ndarray, label: np.ndarray, confidence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The most probable classes of each row, its label first, and their calibrated probabilities.

    The probability of the label is its confidence, in 1/255; below 0 for rows whose probabilities stay as they are.
    """
    n_rows, n_classes = distributions.shape
    kept = min(MAX_PROBABLE, n_classes)
    best, probability = np.empty((n_rows, kept), dtype=np.intp), np.empty((n_rows, kept), dtype=np.float32)
    for start in range(0, n_rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        shares, calibrated = distributions[block].copy(), np.flatnonzero(confidence[block] >= 0)
        labels = label[block][calibrated]
        shares[calibrated] = _with_confidence(shares[calibrated], labels, confidence[block][calibrated] / 255)
        rank = -shares
        rank[calibrated, labels] = -np.inf
        order = np.argsort(rank, axis=1, kind="stable")[:, :kept]
        best[block] = order
        probability[block] = np.take_along_axis(shares, order, axis=1)
    return best, probability


def _with_confidence(shares: np.ndarray, label: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Probabilities in which the label has its confidence, and the other classes share the rest as before."""
    rows, others = np.arange(len(shares)), shares.copy()
    others[rows, label] = 0.0
    none = others.sum(axis=1) <= 0
    others[none] = 1.0
    others[rows, label] = 0.0
    total = others.sum(axis=1)
    others *= np.divide(1.0 - confidence, total, out=np.zeros(len(shares)), where=total > 0)[:, None]
    others[rows, label] = confidence
    return np.asarray(others)
