"""Row-level predictor: carries new rows through the rounds of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.geometry.cost import BLOCK_BYTES
from otprop.geometry.pairwise import PairwiseCost
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.row_matching import LabeledRows, row_keys
from otprop.propagation.rounds import certainty
from otprop.propagation.row_rounds import Snapshot


@saved_as("otp.row_predictor")
class RowLevelPredictor:
    """Carries new rows through the rounds as unlabelled rows without mass, which change nothing for the others.

    The class probabilities of a row in a round follow from the potentials of the labelled rows. So a round is stored
    as these potentials and its threshold. A row takes its probabilities from the first round whose threshold it
    passes, or else from the round in which it was most certain. If all rounds are stored, this gives the unlabelled
    rows of the training table the probabilities they got in the fit.
    """

    def __init__(
        self,
        rows: Any,
        pairs: PairwiseCost,
        snapshots: list[Snapshot],
        epsilon: float,
        labeled: LabeledRows,
        n_classes: int,
        precomputed: bool,
    ) -> None:
        self.pairs, self.snapshots, self.epsilon, self.n_classes = pairs, snapshots, epsilon, n_classes
        self.labeled, self._precomputed, self._sparse = labeled, precomputed, sp.issparse(rows)

    def predict(self, new: Any) -> np.ndarray:
        """Class probabilities of new rows."""
        if sp.issparse(new) != self._sparse:  # rows are matched in the form of the training rows
            new = sp.csr_array(new) if self._sparse else new.toarray()
        labeled = self.snapshots[-1].sources  # those of the earlier rounds are the first of these
        columns = self.pairs.columns(labeled, new)
        out = np.empty((new.shape[0], self.n_classes))
        for block in row_blocks(len(out), rows_per_block(len(labeled), BLOCK_BYTES // 2)):
            out[block] = self._through_rounds(columns(np.arange(block.start, block.stop)))
        self._keep_labels(new, out)
        return out

    def _through_rounds(self, costs: np.ndarray) -> np.ndarray:
        found = np.full((len(costs), self.n_classes), 1.0 / self.n_classes)
        most = np.full(len(costs), -1.0)
        left = np.arange(len(costs))
        for snapshot in self.snapshots:
            shares = self._shares(costs[left, : len(snapshot.f)], snapshot)
            scores = certainty(shares)
            better = (scores > most[left]) | (scores >= snapshot.threshold)
            found[left[better]] = shares[better]
            most[left[better]] = scores[better]
            left = left[scores < snapshot.threshold]
            if len(left) == 0:
                break
        return found

    def _shares(self, costs: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        """Eq. 10 and 11 from the potentials of the labelled rows."""
        logs = snapshot.f - costs
        logs -= logs.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):
            logs /= self.epsilon
        shares = np.exp(logs, out=logs) @ np.eye(self.n_classes)[snapshot.classes]
        return shares / shares.sum(axis=1, keepdims=True)

    def _keep_labels(self, new: Any, out: np.ndarray) -> None:
        """Give rows equal to labelled ones their label; several different labels are weighted."""
        for row, labeled in enumerate(self._matches(new)):
            if len(labeled):
                out[row] = self.labeled.votes(labeled, self.n_classes)

    def _matches(self, new: Any) -> Iterator[Any]:
        """For each new row the labelled rows it is equal to."""
        if self._precomputed:
            for costs in new[:, self.labeled.rows]:
                yield np.flatnonzero(costs == 0)
        else:
            for key in row_keys(new):
                yield self.labeled.like(key)
