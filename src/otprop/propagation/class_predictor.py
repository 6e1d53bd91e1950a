"""Class-level predictor: class probabilities and confidence of new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from otprop._labels import Labels
from otprop._saving import saved_as
from otprop.evidence.combined import Evidence
from otprop.evidence.diffusion import DiffusionSource
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.row_matching import LabeledRows, digest, row_keys, zero_means_equal
from otprop.propagation.calibration import Calibration, label_confidence
from otprop.propagation.class_rounds import tempered
from otprop.propagation.config import ClassLevelConfig
from otprop.propagation.geometry import Geometry
from otprop.propagation.novelty import Novelty
from otprop.transport.class_level import ClassTransport


@saved_as("otp.class_predictor")
@dataclass
class ClassLevelPredictor:
    """Predicts new rows through their neighbours among the training rows and by the classifiers.

    A training row keeps its label if it is recognised, by its features or by a cost of 0. With ``cost="graph"`` rows
    are not recognised.
    """

    evidence: Evidence
    index: NeighborIndex | None
    n_query: int
    temperature: float
    plan: ClassTransport | None
    prior: np.ndarray
    distributions: np.ndarray
    calibration: Calibration
    unseen: float
    novelty: Novelty
    precomputed: bool
    has_features: bool
    sparse: bool
    zero_distance_is_equal: bool
    labeled: LabeledRows
    known: dict[bytes, int]

    @classmethod
    def from_fit(
        cls,
        X: Any,
        labels: Labels,
        weights: np.ndarray,
        *,
        config: ClassLevelConfig,
        geometry: Geometry,
        evidence: Evidence,
        temperature: float,
        plan: ClassTransport | None,
        prior: np.ndarray,
        distributions: np.ndarray,
        calibration: Calibration,
        unseen: float,
        novelty: Novelty,
    ) -> Self:
        """Make the predictor of a fit."""
        zero_distance_is_equal = not (isinstance(config.metric, str) and config.metric == "inner")
        rows = labels.labeled[weights[labels.labeled] > 0]
        known: dict[bytes, int] = {}
        if config.has_features and (geometry.index is None or not zero_means_equal(X, config.metric)):
            for row, key in enumerate(row_keys(X)):
                known.setdefault(digest(key), row)
        return cls(
            evidence=evidence,
            index=geometry.index,
            n_query=geometry.n_query,
            temperature=temperature,
            plan=plan,
            prior=prior,
            distributions=distributions,
            calibration=calibration,
            unseen=unseen,
            novelty=novelty,
            precomputed=isinstance(config.cost, str) and config.cost == "precomputed",
            has_features=config.has_features,
            sparse=sp.issparse(X),
            zero_distance_is_equal=zero_distance_is_equal,
            labeled=LabeledRows(rows, labels.codes[rows], weights[rows], X if config.has_features else None),
            known=known,
        )

    def predict(self, new: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities of new rows, and the confidence of their most probable class."""
        new, neighbors = self._with_neighbors(new)
        logits, reached = self.evidence.predict_log_proba(neighbors, new)
        logits = tempered(logits, self.temperature)
        lost = ~np.isfinite(logits).any(axis=1)
        logits[lost] = 0.0
        found = self.plan.shares(logits) if self.plan is not None else softmax(logits, axis=1)
        found[lost] = self.prior
        among: np.ndarray | None = None  # rows that may be training rows; None for all
        if self.index is not None and self.zero_distance_is_equal:
            same = np.flatnonzero(neighbors.distances[:, 0] == 0)
            found[same] = self.distributions[neighbors.indices[same, 0]]
            among = same if self.index.equal_rows_are_at_zero else None
        for row, training_row, labeled in self._recognised(new, among):
            found[row] = self.distributions[training_row]
            if len(labeled):
                found[row] = self.labeled.votes(labeled, found.shape[1])
        known = 1.0 - self.novelty.probability(self._log_reach(neighbors)) if self.novelty.share > 0 else 1.0
        return found, known * label_confidence(found, reached, self.calibration, self.prior, self.unseen)

    def predict_novelty(self, new: Any) -> np.ndarray:
        """How unlike all labelled classes new rows are, 0 to 1."""
        if not isinstance(self.evidence.iterative, DiffusionSource):
            return np.zeros(new.shape[0])
        return self.novelty(self._log_reach(self._with_neighbors(new)[1]))

    def _log_reach(self, neighbors: Any) -> np.ndarray:
        assert isinstance(self.evidence.iterative, DiffusionSource)
        return self.evidence.iterative.predict_log_reach(neighbors)

    def freeze(self, n_rows: float, n_jobs: int | None = None) -> None:
        """Fix how new rows are predicted, so that the result of a row does not depend on the other rows.

        `n_rows` is the expected total number of new rows; they are predicted with `n_jobs` threads.
        """
        if self.index is not None:
            self.index.freeze(self.n_query, n_rows)
            self.index.use_threads(n_jobs)
        self.evidence.use_threads(n_jobs)

    def explain(self, rows: Any, numbers: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Class probabilities of rows by each source alone; uniform where a source has no evidence.

        The votes are among the sources if the rows are of the fit and `numbers` are their numbers in it.
        """
        rows, neighbors = self._with_neighbors(rows)
        logs = self.evidence.log_proba_by_source(neighbors, rows)
        found = {name: softmax(np.where(np.isfinite(log).any(1)[:, None], log, 0.0), axis=1) for name, log in logs}
        return found if numbers is None else found | self.evidence.votes_on(numbers)

    def _with_neighbors(self, new: Any) -> tuple[Any, Any]:
        """The rows in the format of the training rows, for matching, and their neighbours among the training rows."""
        if self.has_features and sp.issparse(new) != self.sparse:
            new = sp.csr_array(new) if self.sparse else new.toarray()
        return new, self.index.query(new, self.n_query) if self.index is not None else new

    def _recognised(
        self, new: Any, among: np.ndarray | None = None
    ) -> Iterator[tuple[int, int, Sequence[int] | np.ndarray]]:
        """New rows that are training rows: their number, the training row, and the labelled rows they equal."""
        if self.precomputed:
            for row in np.flatnonzero(new.min(axis=1) == 0).tolist():
                yield row, int(new[row].argmin()), np.flatnonzero(new[row, self.labeled.rows] == 0)
        elif self.has_features:
            rows = range(new.shape[0]) if among is None else among.tolist()
            for row, key in zip(rows, row_keys(new if among is None else new[among]), strict=True):
                labeled = self.labeled.like(key)
                training_row = self.known.get(digest(key), -1) if self.known else -1
                if labeled or training_row >= 0:
                    yield row, training_row, labeled
