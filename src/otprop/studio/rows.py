"""What is shown of every row (its class, where that came from, how sure it is), and which row comes next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.loop.suggestions import RANDOM, UNCERTAIN
from otprop.studio.propagator import NO_CLASS, Result
from otprop.studio.session_log import AS_IN_FILE, UNKNOWN

NONE, GIVEN, HERE, PROPAGATED, PILE = range(5)  # sources of a label
MAX_IN_A_BYTE = 250  # classes that fit in one byte per row
NO_ROUND = 255
MIN_LABELS = 2  # of a class, from which on a low probability of it means something
ORDERS = ("suggest", "unsure", "class", "novel", "issues", "unknown")
RANDOM_SHARE = 0.2  # of the rows labelled one by one; from these the error is estimated
MIN_NOVELTY = 243  # of 255, 0.95: fewer than one in twenty rows of a labelled class are so unlike it
N_FIRST = 20  # rows drawn at random, before the first suggestions come


@dataclass(frozen=True)
class Shown:
    """One value for each row."""

    classes: np.ndarray  # uint16, NO_CLASS where there is none
    sources: np.ndarray  # uint8, and so are those below
    confidence: np.ndarray
    rounds: np.ndarray

    def counts(self, n_classes: int) -> np.ndarray:
        """How many rows there are of each source and class, of shape (5, n_classes)."""
        known = self.classes != NO_CLASS
        places = self.sources[known].astype(np.intp) * n_classes + self.classes[known]
        return np.bincount(places, minlength=5 * n_classes).reshape(5, n_classes)

    def class_bytes(self, n_classes: int) -> bytes:
        """The classes in one byte per row, or in two where there are many classes."""
        if n_classes > MAX_IN_A_BYTE:
            return self.classes.astype("<u2").tobytes()
        return np.where(self.classes == NO_CLASS, 255, self.classes).astype(np.uint8).tobytes()


def compose(state: np.ndarray, given: np.ndarray, result: Result | None) -> Shown:
    """The newest labels over the last result; `given` are the class ids in the file, -1 where there is none."""
    in_file, here, pile = (state == AS_IN_FILE) & (given >= 0), state >= 0, state == UNKNOWN
    person = np.where(here, state, np.where(in_file, given, -1))
    sources = np.select([pile, here, in_file], [PILE, HERE, GIVEN], NONE).astype(np.uint8)
    classes = np.where(person >= 0, person, NO_CLASS).astype(np.uint16)
    confidence = np.where(person >= 0, 255, 0).astype(np.uint8)
    rounds = np.where(person >= 0, 0, NO_ROUND).astype(np.uint8)
    if result is not None:
        flows = (sources == NONE) & (result.labels != NO_CLASS)
        sources[flows] = PROPAGATED
        classes[flows] = result.labels[flows]
        confidence[flows] = result.confidence[flows]
        rounds[flows] = np.where(result.rounds[flows] == 0, 1, result.rounds[flows])  # a label that was undone
    return Shown(classes, sources, confidence, rounds)


def probability_of(result: Result | None, rows: np.ndarray, number: int) -> np.ndarray | None:
    """The probability of a class for some rows, 0 where it is not among the best.

    None before the first result, and for a class that the result knew too few labels of to say something against it.
    """
    if result is None or np.count_nonzero((result.rounds == 0) & (result.labels == number)) < MIN_LABELS:
        return None
    found: np.ndarray = np.where(result.best[rows] == number, result.probability[rows], 0.0).sum(axis=1)
    return found


def best_classes(result: Result | None, row: int) -> list[dict[str, Any]]:
    """The most probable classes of a row."""
    if result is None:
        return []
    pairs = zip(result.best[row].tolist(), result.probability[row].tolist(), strict=True)
    return [{"class": number, "probability": round(share, 4)} for number, share in pairs if share > 0]


class Queues:
    """The suggestions of the worker, and orders that need none."""

    def __init__(self, n_rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        first = rng.choice(n_rows, min(n_rows, N_FIRST), replace=False)
        self._suggestions: list[tuple[int, str]] = [(int(row), RANDOM) for row in first]
        self._drawn = {row for row, _ in self._suggestions}

    def set_suggestions(self, found: list[tuple[int, str]]) -> None:
        """Take the newest suggestions."""
        self._suggestions = found
        self._drawn |= {row for row, reason in found if reason == RANDOM}

    def was_drawn(self, row: int, reason: str) -> bool:
        """Whether a row was drawn at random: it was shown with this reason, and it has been offered with it.

        The newest suggestions may give another reason by then; what counts is why the person saw the row.
        """
        return reason == RANDOM and row in self._drawn

    def suggested(
        self, shown: Shown, n: int, n_drawn: int, n_by_key: int, skipped: Iterable[int]
    ) -> list[tuple[int, str]]:
        """The `n` next rows: suggested rows that are still unlabelled, then the least certain ones.

        A random one comes first where too few of the rows that were labelled by key were random. Who
        labels one row after each propagation would else never reach the random ones, further down the list.
        """
        free = self._free(shown)
        found = [(row, reason) for row, reason in self._suggestions if free[row]]
        if n_drawn < RANDOM_SHARE * (n_by_key + 1):
            first = next((one for one in found if one[1] == RANDOM), None)
            found = found if first is None else [first, *(one for one in found if one != first)]
        late = set(skipped)
        if len(found) < n + len(late):  # who labels fast must not wait for the next suggestions
            there = {row for row, _ in found}
            more = self.unsure(shown, n + len(late) + len(there))
            found = found + [(row, UNCERTAIN) for row in more if row not in there]
        found = [one for one in found if one[0] not in late] + [one for one in found if one[0] in late]
        return found[:n]

    def unsure(self, shown: Shown, n: int, number: int | None = None) -> list[int]:
        """The least certain rows, of one class or of all."""
        rows = np.flatnonzero(self._free(shown, number))
        confidence = shown.confidence[rows]
        if len(rows) > n:
            kept = np.argpartition(confidence, n - 1)[:n]
            rows, confidence = rows[kept], confidence[kept]
        return [int(row) for row in rows[np.lexsort((rows, confidence))]]

    def novel(self, shown: Shown, novelty: np.ndarray | None) -> list[int]:
        """The rows that look like no labelled class, the strangest first."""
        if novelty is None:
            return []
        rows = np.flatnonzero(self._free(shown) & (novelty >= MIN_NOVELTY))
        return [int(row) for row in rows[np.lexsort((rows, shown.confidence[rows], -novelty[rows].astype(int)))]]

    def pile(self, shown: Shown) -> list[int]:
        """The rows of no class."""
        return [int(row) for row in np.flatnonzero(shown.sources == PILE)]

    def n_free(self, shown: Shown, number: int | None = None) -> int:
        """How many rows no person has labelled, of one class or of all."""
        return int(self._free(shown, number).sum())

    def _free(self, shown: Shown, number: int | None = None) -> np.ndarray:
        """Rows that no person has labelled, of one class or of all."""
        if number is not None:
            return np.asarray((shown.sources == PROPAGATED) & (shown.classes == number))
        return np.asarray((shown.sources == NONE) | (shown.sources == PROPAGATED))
