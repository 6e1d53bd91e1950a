"""All sources together: weighed by what they say of hidden labels, and added up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from otprop._saving import saved_as
from otprop.evidence.classifier import Source
from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, hits, log_likelihood
from otprop.evidence.weights import weigh

logger = logging.getLogger("otprop")

START_WEIGHTS = {"diffusion": 0.6, "nearness": 0.6, "forest": 0.6, "linear": 0.2}
OTHER_WEIGHT = 0.4  # where a classifier of the user's starts
ALONE = 1.0  # where a single source starts


class IterativeSource(Source, Protocol):
    """A source that goes on learning from the rows labelled in each round."""

    converged: bool

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Logarithms of the class probabilities of all rows, from the labels as they are now."""
        ...

    def reached(self) -> np.ndarray:
        """Which rows some label reaches."""
        ...


@saved_as("evidence.contribution", nan=("accuracy", "likelihood"))
@dataclass(frozen=True)
class Contribution:
    """What a source contributed.

    Attributes
    ----------
    name : str
    weight : float, the power to which its probabilities are raised
    accuracy : float, on the hidden labels; NaN where none could be hidden
    likelihood : float, of the hidden labels, as a logarithm per label
    """

    name: str
    weight: float
    accuracy: float
    likelihood: float


@saved_as("evidence", drops=("_static", "held_out_log_proba"))
class Evidence:
    """The cost of giving each class to each row, up to a sign: the weighted sum of what all sources say.

    Parameters
    ----------
    iterative : IterativeSource, the geometry: it follows the rounds
    static : sequence of Source, classifiers: they speak once
    hidden : HeldOut
    """

    def __init__(self, iterative: IterativeSource, static: Sequence[Source], hidden: HeldOut) -> None:
        self.iterative, self._sources, self.hidden = iterative, list(static), hidden

    def fit(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Train and weigh all sources on the given labels: logarithms of class probabilities, not normalised."""
        sources: list[Source] = [self.iterative, *self._sources]
        says = []
        for source in sources:
            logger.debug("asking the source %s", source.name)
            says.append(source.fit(codes, weights, self.hidden))
        unseen = [said.held_out for said in says]
        start = [START_WEIGHTS.get(source.name, OTHER_WEIGHT) for source in sources] if len(sources) > 1 else [ALONE]
        self.weights = weigh(unseen, self.hidden.codes, start)
        self.contributions = [
            _contribution(source.name, weight, said, self.hidden)
            for source, weight, said in zip(sources, self.weights, says, strict=True)
        ]
        self.held_out_log_proba = np.tensordot(self.weights, np.stack(unseen), 1)
        self._static: np.ndarray | None = None
        for weight, said in zip(self.weights[1:], says[1:], strict=True):
            part = np.float32(weight) * said.rows
            self._static = part if self._static is None else self._static + part
        return self._sum(says[0].rows)

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same from the labels as they are now."""
        return self._sum(self.iterative.update(codes, weights))

    def predict_log_proba(self, for_iterative: Any, for_static: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same for new rows; minus infinity where no source knows anything. And which rows the geometry reaches."""
        said = self.iterative.predict_log_proba(for_iterative)
        lost = np.all(said == -np.inf, axis=1, keepdims=True)
        total = self.weights[0] * np.where(lost, 0.0, said)
        if not self._sources:
            total[lost[:, 0]] = -np.inf
        for weight, source in zip(self.weights[1:], self._sources, strict=True):
            total = total + weight * source.predict_log_proba(for_static)
        return np.asarray(total), ~lost[:, 0]

    def _sum(self, said: np.ndarray) -> np.ndarray:
        total = np.float32(self.weights[0]) * said
        if self._static is not None:
            return total + self._static
        total[~self.iterative.reached()] = -np.inf
        return total


def _contribution(name: str, weight: float, said: SourceOutput, hidden: HeldOut) -> Contribution:
    if len(hidden) == 0:
        return Contribution(name, float(weight), float("nan"), float("nan"))
    right = hits(said.held_out, hidden.codes)
    return Contribution(
        name, float(weight), float(right.mean()), log_likelihood(said.held_out, hidden.codes) / len(hidden)
    )
