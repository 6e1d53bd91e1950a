"""What is shown of every row: its class, where that came from, how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.studio.propagator import NO_CLASS, Result
from otprop.studio.session import AS_IN_FILE, UNKNOWN

NONE, GIVEN, HERE, PROPAGATED, PILE = range(5)  # sources of a label
MAX_IN_A_BYTE = 250  # classes that fit in one byte a row
NO_ROUND = 255
MIN_LABELS = 2  # of a class, from which on a low probability of it means something


@dataclass(frozen=True)
class Shown:
    """One value for each row.

    Attributes
    ----------
    classes : ndarray of uint16, NO_CLASS where there is none
    sources, confidence, rounds : ndarray of uint8
    """

    classes: np.ndarray
    sources: np.ndarray
    confidence: np.ndarray
    rounds: np.ndarray

    def counts(self, n_classes: int) -> np.ndarray:
        """How many rows there are of each source and class, of shape (5, n_classes)."""
        known = self.classes != NO_CLASS
        places = self.sources[known].astype(np.intp) * n_classes + self.classes[known]
        return np.bincount(places, minlength=5 * n_classes).reshape(5, n_classes)

    def class_bytes(self, n_classes: int) -> bytes:
        """The classes in one byte a row, or in two where there are many classes."""
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
