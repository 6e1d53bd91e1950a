"""What the rounds would have said of a new row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop.geometry.cost import BLOCK_BYTES
from otprop.geometry.pairwise import PairwiseCost
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.row_matching import LabeledRows, row_keys
from otprop.propagation.rounds import certainty
from otprop.propagation.row_rounds import Snapshot


class RowLevelPredictor:
    """Carries new rows through the rounds as targets without mass, which change nothing for the others.

    With the target side of the plan eliminated, a row's class probabilities in a round follow from the
    sources' potentials alone, so a round is kept as those and its threshold. A row takes its probabilities
    from the first round whose threshold it passes, or else from the one in which it was most certain. For the
    unlabelled rows of the training table that is what happened to them, where all rounds were kept.
    """

    def __init__(
        self,
        rows: Any,
        pairs: PairwiseCost,
        snapshots: list[Snapshot],
        epsilon: float,
        given: LabeledRows,
        n_classes: int,
        precomputed: bool,
    ) -> None:
        self.pairs, self.snapshots, self.epsilon, self.n_classes = pairs, snapshots, epsilon, n_classes
        self.given, self._precomputed, self._sparse = given, precomputed, sp.issparse(rows)

    def __call__(self, new: Any) -> tuple[np.ndarray, None]:
        """Class probabilities of each row of `new`; the paper's way has no confidence."""
        if sp.issparse(new) != self._sparse:  # rows are compared in the form they had in training
            new = sp.csr_array(new) if self._sparse else new.toarray()
        sources = self.snapshots[-1].sources  # those of the earlier rounds are the first of these
        columns = self.pairs.columns(sources, new)
        out = np.empty((new.shape[0], self.n_classes))
        for block in row_blocks(len(out), rows_per_block(len(sources), BLOCK_BYTES // 2)):
            out[block] = self._through_rounds(columns(np.arange(block.start, block.stop)))
        self._keep_given(new, out)
        return out, None

    def _through_rounds(self, costs: np.ndarray) -> np.ndarray:
        answer = np.full((len(costs), self.n_classes), 1.0 / self.n_classes)
        most = np.full(len(costs), -1.0)
        left = np.arange(len(costs))
        for snapshot in self.snapshots:
            shares = self._shares(costs[left, : len(snapshot.f)], snapshot)
            scores = certainty(shares)
            better = (scores > most[left]) | (scores >= snapshot.threshold)
            answer[left[better]] = shares[better]
            most[left[better]] = scores[better]
            left = left[scores < snapshot.threshold]
            if len(left) == 0:
                break
        return answer

    def _shares(self, costs: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        """Eq. 10 and 11 from the sources' potentials."""
        logs = snapshot.f - costs
        logs -= logs.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):
            logs /= self.epsilon
        shares = np.exp(logs, out=logs) @ np.eye(self.n_classes)[snapshot.classes]
        return shares / shares.sum(axis=1, keepdims=True)

    def _keep_given(self, new: Any, out: np.ndarray) -> None:
        """Rows identical to given ones have their label; of several labels, each by its weight."""
        for line, places in enumerate(self._matches(new)):
            if len(places):
                out[line] = self.given.votes(places, self.n_classes)

    def _matches(self, new: Any) -> Iterator[Any]:
        """For each new row the places of the given rows it is identical to."""
        if self._precomputed:
            for line in new[:, self.given.rows]:
                yield np.flatnonzero(line == 0)
        else:
            for key in row_keys(new):
                yield self.given.like(key)
