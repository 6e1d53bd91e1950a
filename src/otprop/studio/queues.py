"""Which row comes next, in the order that the person asked for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from otprop.loop.suggestions import RANDOM, UNCERTAIN
from otprop.studio.shown import NONE, PILE, PROPAGATED, Shown

ORDERS = ("suggest", "unsure", "class", "novel", "issues", "unknown")
RANDOM_SHARE = 0.2  # of the rows labelled one by one; from these the error is estimated
MIN_NOVELTY = 243  # of 255, 0.95: fewer than one in twenty rows of a labelled class are so unlike it
N_FIRST = 20  # rows drawn at random, before the first suggestions come


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
        free = self._free(shown)
        if number is not None:
            free = (shown.sources == PROPAGATED) & (shown.classes == number)
        rows = np.flatnonzero(free)
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

    def _free(self, shown: Shown) -> np.ndarray:
        """Rows that no person has labelled."""
        return np.asarray((shown.sources == NONE) | (shown.sources == PROPAGATED))

    def n_free(self, shown: Shown, number: int | None = None) -> int:
        """How many rows no person has labelled, of one class or of all."""
        if number is None:
            return int(self._free(shown).sum())
        return int(((shown.sources == PROPAGATED) & (shown.classes == number)).sum())
