"""What comes back from the workers: counts of labels, and a histogram of their confidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from otprop.labelling.outcome import RowLabels
from otprop.propagation.calibration import Coverage, coverage_of_groups
from otprop.propagation.error import ErrorEstimate

N_BINS = 1000
EDGES = np.arange(N_BINS + 1) / N_BINS
MAX_COUNT = 2**53
UNIT = 2**30  # sums of fractions are sums of whole numbers of 1 / UNIT: their order does not matter


@dataclass(frozen=True)
class Tally:
    """Counts of the rows of some partitions; they add up.

    Attributes
    ----------
    given, labeled : list of int, rows of each class whose label was given, or found
    abstained : int, rows without a label
    bins : dict of int to int, unlabelled rows by their confidence in thousandths
    doubts : dict of int to int, the sum of one minus their confidence, in units of 1 / UNIT
    """

    given: list[int]
    labeled: list[int]
    abstained: int
    bins: dict[int, int]
    doubts: dict[int, int]

    @classmethod
    def of(cls, labels: RowLabels, n_classes: int) -> Self:
        """Count rows: by class, by whether the label was given, and by confidence."""
        codes, n_rows = labels.codes, len(labels.codes)
        given = np.zeros(n_rows, dtype=bool) if labels.given is None else labels.given
        confidence = np.ones(n_rows) if labels.confidence is None else labels.confidence
        found = ~given & (codes >= 0)
        open_rows = confidence[~given]
        bins = np.clip(np.searchsorted(EDGES, open_rows, side="right") - 1, 0, N_BINS - 1)
        counts = np.bincount(bins, minlength=N_BINS)
        doubts = np.zeros(N_BINS, dtype=np.int64)
        np.add.at(doubts, bins, np.rint((1.0 - open_rows) * UNIT).astype(np.int64))
        used = np.flatnonzero(counts).tolist()
        return cls(
            np.bincount(codes[given], minlength=n_classes).tolist(),
            np.bincount(codes[found], minlength=n_classes).tolist(),
            int(np.count_nonzero(codes < 0)),
            {place: int(counts[place]) for place in used},
            {place: int(doubts[place]) for place in used},
        )

    @classmethod
    def total(cls, tallies: Iterable[Tally], n_classes: int) -> Self:
        """The sum of some tallies."""
        given, labeled, abstained = [0] * n_classes, [0] * n_classes, 0
        bins: dict[int, int] = {}
        doubts: dict[int, int] = {}
        for one in tallies:
            given = [a + b for a, b in zip(given, one.given, strict=True)]
            labeled = [a + b for a, b in zip(labeled, one.labeled, strict=True)]
            abstained += one.abstained
            for whole, part in ((bins, one.bins), (doubts, one.doubts)):
                for place, count in part.items():
                    whole[place] = whole.get(place, 0) + count
        return cls(given, labeled, abstained, dict(sorted(bins.items())), dict(sorted(doubts.items())))

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.given) + sum(self.bins.values())

    def expected_error(self, least: float = 0.0) -> float | None:
        """Expected error of the unlabelled rows with at least this confidence; None where there are none."""
        first = int(np.searchsorted(EDGES, least, side="left"))
        n_rows = sum(count for place, count in self.bins.items() if place >= first)
        doubt = sum(sum_ for place, sum_ in self.doubts.items() if place >= first)
        return doubt / UNIT / n_rows if n_rows else None

    def coverage(self, error: ErrorEstimate | None) -> list[Coverage]:
        """As `otprop.propagation.calibration.coverage_table`, with rows of one thousandth kept together."""
        places = sorted(self.bins, reverse=True)
        counts = np.cumsum([self.bins[place] for place in places])
        doubts = np.cumsum([self.doubts[place] for place in places]) / UNIT
        return coverage_of_groups(EDGES[places], counts, doubts, error)

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "given": self.given,
            "labeled": self.labeled,
            "abstained": self.abstained,
            "bins": [[place, count, self.doubts[place]] for place, count in self.bins.items()],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any], n_classes: int) -> Self:
        """From what `to_json` returned for this many classes; KeyError, TypeError or ValueError for anything else."""
        given, labeled, abstained, bins = (found[name] for name in ("given", "labeled", "abstained", "bins"))
        places = [place for place, _, _ in bins]
        counts = [*given, *labeled, abstained, *(number for place, count, _ in bins for number in (place, count))]
        sound = all(map(is_count, counts)) and len(given) == len(labeled) == n_classes
        sound = sound and all(isinstance(doubt, int) and 0 <= doubt <= count * UNIT for _, count, doubt in bins)
        sound = sound and len(set(places)) == len(places) and max(places, default=0) < N_BINS
        if not sound or sum(labeled) + abstained != sum(count for _, count, _ in bins):
            raise ValueError("the counts do not add up")
        doubts = {place: doubt for place, _, doubt in bins}
        return cls(list(given), list(labeled), abstained, {place: count for place, count, _ in bins}, doubts)


def is_count(value: Any) -> bool:
    """Whether a value from a file is a whole number from 0 to MAX_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT
