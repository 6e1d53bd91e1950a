"""All sources together: weighted on held-out labels and added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.evidence.base import IterativeSource, Source, SourceOutput, ThreadedSource, hits, log_likelihood
from otprop.evidence.held_out import HeldOut
from otprop.evidence.registry import NAMED_SOURCES
from otprop.evidence.voted_forest import PREDICTABLE, VotedForestSource
from otprop.evidence.votes import VotesSource
from otprop.evidence.weights import PENALTY, cross_fitted_sum, fit_weights

ITERATIVE_START_WEIGHT = 0.6  # of the geometry
OTHER_START_WEIGHT = 0.4  # of a user's classifier
MAX_CLASSIFIER_START = 1.1  # sum of the start weights of all classifiers: they see the same rows and columns
SINGLE_START_WEIGHT = 1.0  # of a single source
_OF_VOTES = (VotesSource, VotedForestSource)  # the last of the sources, in this order
LABELS_WEIGHT = 0.7  # beside votes, of all sources that learn from labels together
VOTES_PENALTY = 10.0  # as PENALTY, for labels, votes and what the columns learn from votes: few labels tell little
DOUBTFUL_WEIGHT = 0.5  # of votes that the columns do not predict: they may be cast at random


@saved_as("evidence.contribution", nan=("accuracy", "likelihood"))
@dataclass(frozen=True)
class Contribution:
    """The contribution of one source.

    Attributes
    ----------
    name : str
    weight : float, the power to which its probabilities are raised
    accuracy : float, on the held-out labels; NaN if none could be held out
    likelihood : float, log-likelihood per held-out label

    Examples
    --------
    >>> from otprop import OTP
    >>> X, y = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a", "a", None, "b", "b", None]
    >>> [source.name for source in OTP(evidence=["linear"]).fit(X, y).evidence_]
    ['diffusion', 'linear']
    """

    name: str
    weight: float
    accuracy: float
    likelihood: float


@saved_as("evidence")
class Evidence:
    """The cost of giving each class to each row, up to the sign: the weighted sum of the sources' log-probabilities.

    Parameters
    ----------
    iterative : IterativeSource, the geometry: updated in every round
    static : sequence of Source, classifiers: fitted once
    held_out : HeldOut

    Attributes
    ----------
    weights : ndarray, one per source, the iterative one first
    contributions : list of Contribution, in the same order
    held_out_log_proba : ndarray of shape (n_held_out, n_classes), the weighted sum for the held-out rows
    cross_fitted_log_proba : ndarray of the same shape, with all choices made without the labels of the row's group
    """

    def __init__(self, iterative: IterativeSource, static: Sequence[Source], held_out: HeldOut) -> None:
        self.iterative, self._sources, self.held_out = iterative, list(static), held_out

    def fit(
        self,
        codes: np.ndarray,
        weights: np.ndarray,
        on_source: Callable[[str, int, int], None] = lambda name, place, n_sources: None,
        other_weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fit and weight all sources; return unnormalised log-probabilities of all rows.

        `other_weights` are weights of the sources from other folds; they are averaged with the fitted ones.
        """
        sources: list[Source] = [self.iterative, *self._sources]
        outputs = []
        for place, source in enumerate(sources):
            on_source(source.name, place, len(sources))
            outputs.append(source.fit(codes, weights, self.held_out))
        held_out = [output.held_out for output in outputs]
        cross_fitted = [out.held_out if out.cross_fitted is None else out.cross_fitted for out in outputs]
        by_labels = [source for source in self._sources if not isinstance(source, _OF_VOTES)]
        by_votes = [source for source in self._sources if isinstance(source, _OF_VOTES)]
        start, n_labels = start_weights([source.name for source in by_labels]), 1 + len(by_labels)
        self.weights, self.cross_fitted_log_proba = self._weigh(held_out[:n_labels], cross_fitted[:n_labels], start)
        if by_votes:
            total = self.cross_fitted_log_proba  # weighted without the labels of the row's group, so not overconfident
            start, penalty = votes_start_weights(by_votes)
            beside, self.cross_fitted_log_proba = self._weigh(
                [total, *held_out[n_labels:]], [total, *cross_fitted[n_labels:]], start, penalty
            )
            self.weights = np.concatenate([beside[0] * self.weights, beside[1:]])
        if other_weights is not None:
            self.weights = (self.weights + other_weights) / 2.0
            other_sum = np.tensordot(other_weights, np.stack(cross_fitted), 1)
            self.cross_fitted_log_proba = (self.cross_fitted_log_proba + other_sum) / 2.0
        self.contributions = [
            _contribution(source.name, weight, output, self.held_out)
            for source, weight, output in zip(sources, self.weights, outputs, strict=True)
        ]
        self.held_out_log_proba = np.tensordot(self.weights, np.stack(held_out), 1)
        self._static: np.ndarray | None = None
        for weight, output in zip(self.weights[1:], outputs[1:], strict=True):
            part = output.rows
            part *= np.float32(weight)  # in place: with many classes these are the largest arrays
            self._static = part if self._static is None else np.add(self._static, part, out=self._static)
        return self._sum(outputs[0].rows)

    def _weigh(
        self,
        held_out: Sequence[np.ndarray],
        cross_fitted: Sequence[np.ndarray],
        start: Sequence[float],
        penalty: float = PENALTY,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of some sources, and their sum for the held-out rows, weighted without the labels of the group."""
        weighting, true, counted = self.held_out.weighting, self.held_out.codes, self.held_out.weights
        shown = [logs[weighting] for logs in held_out]
        weights = fit_weights(shown, true[weighting], start, penalty, counted[weighting])
        return weights, cross_fitted_sum(cross_fitted, true, self.held_out.group, start, weighting, counted, penalty)

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Unnormalised log-probabilities of all rows from the current labels, in a new array."""
        return self._sum(self.iterative.update(codes, weights))

    def predict_log_proba(self, neighbors: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Unnormalised log-probabilities of new rows, and which of them the geometry reaches.

        Minus infinity where no source has evidence. `neighbors` is the input of the iterative source for the new rows.
        """
        found = self.iterative.predict_log_proba(neighbors)
        lost = np.all(found == -np.inf, axis=1, keepdims=True)
        total = self.weights[0] * np.where(lost, 0.0, found)
        if not self._sources:
            total[lost[:, 0]] = -np.inf
        for weight, source in zip(self.weights[1:], self._sources, strict=True):
            total = total + weight * source.predict_log_proba(rows)
        return np.asarray(total), ~lost[:, 0]

    def use_threads(self, n_jobs: int | None) -> None:
        """Set the number of threads for predicting new rows."""
        for source in self._sources:
            if isinstance(source, ThreadedSource):
                source.use_threads(n_jobs)

    def log_proba_by_source(self, neighbors: Any, rows: Any) -> list[tuple[str, np.ndarray]]:
        """Names of the sources and their log-probabilities of new rows, the iterative source first; without votes."""
        first = (self.iterative.name, self.iterative.predict_log_proba(neighbors))
        others = [source for source in self._sources if not isinstance(source, VotesSource)]
        return [first, *((source.name, source.predict_log_proba(rows)) for source in others)]

    def votes_on(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Class probabilities of rows of the fit from the votes on them, by the name of the source.

        Empty without votes, and in a copy read from a file, which does not have the votes any more.
        """
        found = [source for source in self._sources if isinstance(source, VotesSource)]
        return {source.name: source.probabilities[rows] for source in found if hasattr(source, "probabilities")}

    def _sum(self, log_probabilities: np.ndarray) -> np.ndarray:
        total = log_probabilities
        total *= np.float32(self.weights[0])
        if self._static is not None:
            return np.add(total, self._static, out=total)
        total[~self.iterative.reached()] = -np.inf
        return total

    def __getstate__(self) -> dict[str, Any]:
        fitting_only = ("_static", "held_out", "held_out_log_proba", "cross_fitted_log_proba")
        return {name: value for name, value in vars(self).items() if name not in fitting_only}


def start_weights(static: Sequence[str]) -> list[float]:
    """Weights of the iterative source and of static ones, by their names, before any held-out label is seen."""
    if not static:
        return [SINGLE_START_WEIGHT]
    known = (NAMED_SOURCES.get(name) for name in static)
    found = np.array([OTHER_START_WEIGHT if source is None else source.start_weight for source in known])
    found *= min(1.0, MAX_CLASSIFIER_START / found.sum())
    return [ITERATIVE_START_WEIGHT, *(float(weight) for weight in found)]


def votes_start_weights(sources: Sequence[VotesSource | VotedForestSource]) -> tuple[list[float], float]:
    """Weights of all sources that learn from labels together, of the votes and of the forest that learns from votes.

    Also how strongly they are held to these weights. Sources that learn from few labels are overconfident: alone that
    does not matter, beside votes it does. If the columns do not predict the votes, the forest is not used and the votes
    count less; without a forest the held-out labels decide.
    """
    if len(sources) < 2 or not isinstance(sources[1], VotedForestSource):
        return [1.0, 1.0], PENALTY
    if not sources[1].predictability > PREDICTABLE:
        return [1.0, DOUBTFUL_WEIGHT, 0.0], VOTES_PENALTY
    return [LABELS_WEIGHT, 1.0, sources[1].start_weight], VOTES_PENALTY


def _contribution(name: str, weight: float, output: SourceOutput, held_out: HeldOut) -> Contribution:
    if len(held_out) == 0:
        return Contribution(name, float(weight), float("nan"), float("nan"))
    accuracy = float(hits(output.held_out, held_out.codes).mean())
    return Contribution(name, float(weight), accuracy, log_likelihood(output.held_out, held_out.codes) / len(held_out))
