"""Which rows are landmarks, and the model fitted on them, which workers label all rows with.

Landmarks are those with the smallest hash of their number, whatever the partitions.
All labelled rows are landmarks, and as many of the unlabelled ones as asked for. Where the labelled rows alone exceed
that number, the largest classes are cut to a common size by the same hash.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._labels import Labels, take_rows
from otprop._otp import OTP
from otprop._validation import InputError
from otprop.dask._cluster import keep_freed_memory
from otprop.geometry.parallel import row_blocks
from otprop.labelling.outcome import RowLabels
from otprop.propagation.rounds import certainty

MAX_HASH = 2**64 - 1
SPARE = 1.1  # how many times as many rows as needed are expected below the first limit of the hash ...
SPARE_DEVIATIONS = 8.0  # ... plus this many standard deviations
FAN_IN = 8  # samples that are merged at once
ROWS_AT_ONCE = 2**17  # rows predicted at once: bounds the memory, and has no effect on the result


@dataclass(frozen=True)
class Sample:
    """Rows of some partitions that may be landmarks, in the order of their numbers."""

    numbers: np.ndarray  # int64, their numbers among all rows
    keys: list[Hashable]  # the label of each row as something hashable, None where it is unlabelled
    parts: tuple[Any, ...]  # arrays, frames or sparse matrices, with one entry per row
    n_labeled: int  # of all rows that were looked at
    n_unlabeled: int

    def take(self, places: np.ndarray) -> Sample:
        """Some of the rows; the numbers of rows looked at stay."""
        return replace(
            self,
            numbers=self.numbers[places],
            keys=[self.keys[place] for place in places.tolist()],
            parts=tuple(take_rows(part, places) for part in self.parts),
        )


@dataclass(frozen=True)
class LandmarkRule:
    """How landmarks are chosen."""

    landmarks: int  # how many unlabelled rows at most, and how many labelled ones at most
    seed: int
    limit: int = MAX_HASH  # unlabelled rows with a larger hash are not looked at

    def with_limit_for(self, n_rows: int) -> LandmarkRule:
        """Let pass a few more rows than are needed: a partition then sends its share, and not all it has."""
        wanted = SPARE * self.landmarks + SPARE_DEVIATIONS * np.sqrt(self.landmarks)
        return replace(self, limit=min(MAX_HASH, int(MAX_HASH * min(1.0, wanted / max(n_rows, 1)))))

    def with_wider_limit(self) -> LandmarkRule:
        """Let pass more rows, for a second attempt."""
        return replace(self, limit=min(MAX_HASH, 8 * self.limit))

    def has_enough_rows(self, sample: Sample) -> bool:
        """Whether a sample of all partitions has as many unlabelled rows as asked for, or all there are."""
        n_there = sum(key is None for key in sample.keys)
        return n_there >= min(self.landmarks, sample.n_unlabeled)

    def chosen_places(self, numbers: np.ndarray, keys: Sequence[Hashable]) -> np.ndarray:
        """Positions of the rows that may be landmarks, ascending."""
        hashes = row_hashes(numbers, self.seed)
        labeled = np.fromiter((key is not None for key in keys), dtype=bool, count=len(keys))
        free = np.flatnonzero(~labeled & (hashes <= np.uint64(self.limit)))
        free = _smallest(free, hashes, self.landmarks)
        given = np.flatnonzero(labeled)
        if len(given) > self.landmarks:
            given = self._cut_largest(given, hashes, keys)
        return np.sort(np.concatenate([free, given]))

    def _cut_largest(self, given: np.ndarray, hashes: np.ndarray, keys: Sequence[Hashable]) -> np.ndarray:
        """Labelled rows, at most `landmarks` of them where there are not more classes: the largest classes are cut.

        What the cut of a merged sample keeps, the cut of its parts has kept: their common size is never smaller.
        """
        classes: dict[Hashable, list[int]] = {}
        for place in given.tolist():
            classes.setdefault(keys[place], []).append(place)
        sizes = np.sort([len(places) for places in classes.values()])
        size = _common_size(sizes, self.landmarks)
        kept = [_smallest(np.array(places), hashes, size) for places in classes.values()]
        return np.concatenate(kept)


def row_hashes(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A hash of each row number: the finaliser of splitmix64, which no two numbers share."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def make_sample(first_row: int, keys: list[Hashable], parts: tuple[Any, ...], choice: LandmarkRule) -> Sample:
    """The rows of one partition that may be landmarks; its first row has the number `first_row`."""
    numbers = np.arange(first_row, first_row + len(keys), dtype=np.int64)
    n_unlabeled = sum(key is None for key in keys)
    whole = Sample(numbers, keys, parts, len(keys) - n_unlabeled, n_unlabeled)
    return whole.take(choice.chosen_places(numbers, keys))


def merge_samples(samples: Sequence[Sample], choice: LandmarkRule) -> Sample:
    """The rows of several partitions that may be landmarks."""
    numbers = np.concatenate([sample.numbers for sample in samples])
    keys = [key for sample in samples for key in sample.keys]
    order = np.argsort(numbers, kind="stable")
    places = order[choice.chosen_places(numbers[order], [keys[place] for place in order.tolist()])]
    merged = Sample(
        numbers,
        keys,
        tuple(concatenate(column) for column in zip(*(sample.parts for sample in samples), strict=True)),
        sum(sample.n_labeled for sample in samples),
        sum(sample.n_unlabeled for sample in samples),
    )
    return merged.take(places)


def merge_as_tree(samples: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """One sample of several that are computed elsewhere; `merge` makes one of at most `FAN_IN`."""
    while len(samples) > 1:
        samples = [merge(samples[start : start + FAN_IN]) for start in range(0, len(samples), FAN_IN)]
    return samples[0]


def concatenate(parts: Sequence[Any]) -> Any:
    """Arrays, frames or sparse matrices, one below the other."""
    if hasattr(parts[0], "iloc"):
        import pandas

        full = [part for part in parts if len(part)] or list(parts[:1])
        return pandas.concat(full, ignore_index=True)
    if sp.issparse(parts[0]):
        return sp.csr_array(sp.vstack(parts))
    return np.concatenate(parts)


def _smallest(places: np.ndarray, hashes: np.ndarray, size: int) -> np.ndarray:
    """The `size` places with the smallest hash."""
    if len(places) <= size:
        return places
    return places[np.argpartition(hashes[places], size - 1)[:size]]


def _common_size(sizes: np.ndarray, total: int) -> int:
    """The largest size, at least 1, to which classes can be cut so that they have at most `total` rows together."""
    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(sizes, middle).sum()) <= total else (low, middle - 1)
    return low


@dataclass(frozen=True)
class LandmarkModel:
    """An estimator fitted on landmarks, and their numbers among all rows."""

    estimator: OTP  # fitted and frozen
    numbers: np.ndarray  # int64, ascending, of the rows it was fitted on
    n_unlabeled: int = 0  # unlabelled rows of the whole table
    marker: Any = None  # what stood for "unlabelled" in y

    @cached_property
    def _codes(self) -> np.ndarray:
        """The class numbers of the landmarks, -1 where the estimator abstains."""
        fitted = self.estimator
        codes = fitted.decide(fitted.label_distributions_, fitted._best_confidence)[0]
        return self._without_abstentions(codes, fitted.confidence_, fitted.round_ == 0)

    @property
    def label_type(self) -> np.dtype[Any]:
        """Of an array of labels, which holds the marker, too, where the estimator may abstain."""
        classes = self.estimator.classes_
        if self.estimator.abstain_below is None:
            return classes.dtype
        return Labels(self._codes, classes, self.marker).dtype

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels for class numbers, the marker for -1; of one type, whether rows are left unlabelled or not."""
        labels = Labels(codes, self.estimator.classes_, self.marker).decode(codes)
        return np.asarray(labels, dtype=self.label_type)

    def label(self, X: Any, given_codes: np.ndarray | None, first_row: int | None) -> RowLabels:
        """Label the rows of a partition.

        `given_codes` are the class numbers of the rows, -1 where one is unlabelled; None for rows that come later, all
        of which get a label. `first_row` is the number of its first row; None for rows that no landmark is among.
        Landmarks keep what the fit gave them, and given labels stay. The others are predicted, each alone: how rows
        are cut into partitions has no effect.
        """
        keep_freed_memory()
        fitted, n_rows, n_classes = self.estimator, X.shape[0], len(self.estimator.classes_)
        distributions = np.zeros((n_rows, n_classes))
        row_certainty, confidence = np.ones(n_rows), np.ones(n_rows)
        codes = np.full(n_rows, -1) if given_codes is None else np.array(given_codes, dtype=np.intp)
        given, todo = codes >= 0, codes < 0
        distributions[np.flatnonzero(given), codes[given]] = 1.0
        if first_row is not None:
            start, stop = np.searchsorted(self.numbers, [first_row, first_row + n_rows])
            places = self.numbers[start:stop] - first_row
            if ((fitted.round_[start:stop] == 0) != given[places]).any():
                raise InputError("rows that the fit saw have changed since: others are labelled now. Fit again.")
            distributions[places] = fitted.label_distributions_[start:stop]
            row_certainty[places] = fitted.certainty_[start:stop]
            confidence[places] = fitted.confidence_[start:stop]
            codes[places], todo[places] = self._codes[start:stop], False
        others = np.flatnonzero(todo)
        for block in row_blocks(len(others), ROWS_AT_ONCE):
            rows = others[block]
            codes[rows], distributions[rows], found = fitted.predict_all(take_rows(X, rows))
            confidence[rows], row_certainty[rows] = found, certainty(distributions[rows])
        if given_codes is not None:
            codes = self._without_abstentions(codes, confidence, given)
        return RowLabels(
            codes=codes,
            given=None if given_codes is None else given,
            distributions=distributions,
            certainty=row_certainty,
            confidence=confidence,
        )

    def _without_abstentions(self, codes: np.ndarray, confidence: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The class numbers, -1 where a row that was not given is less confident than ``abstain_below``."""
        least = self.estimator.abstain_below
        return codes if least is None else np.where((confidence < least) & ~given, -1, codes)


def slim(estimator: OTP, n_rows: float) -> OTP:
    """Fix how new rows are predicted, and drop what only fitting needs, the records of the rounds among it."""
    estimator.freeze(n_rows, n_jobs=1)  # a worker runs as many tasks as it has threads
    estimator.rounds_ = []
    return deepcopy(estimator)  # boosted trees change their form when copied: all workers should have the same
