"""Diffusion over the graph of the rows: settings are not chosen but weighed, by what they say of hidden labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, log_likelihood, powered
from otprop.geometry.diffusion import DiffusionGraph

POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
USUAL_POWER = 1.4
POWER_PULL = 0.5  # what it costs, in log-likelihood, to be a factor of e away from the usual power
BOLDNESS = 0.3  # the weight of a setting is its likelihood to this power
NEGLIGIBLE = 0.02  # settings of less weight are dropped
TOL = 1e-5


@dataclass
class Setting:
    """One way to diffuse: over which graph, how far, and how sharp its answer is read.

    Attributes
    ----------
    graph : DiffusionGraph
    n_neighbors : int or None, of the graph
    strength : float, how far labels diffuse, below 1
    power : float, to which the values are raised
    likelihood : float, of the hidden labels, as a logarithm per label
    weight : float, in the mixture of all settings
    """

    graph: DiffusionGraph
    n_neighbors: int | None
    strength: float
    power: float = USUAL_POWER
    likelihood: float = float("nan")
    weight: float = 1.0
    values: np.ndarray | None = field(default=None, repr=False)


class DiffusionSource:
    """Labels spread over the graph; each row's class probabilities are a mixture over the settings.

    Parameters
    ----------
    settings : list of Setting
    n_classes : int
    n_jobs : int or None
    """

    name = "diffusion"

    def __init__(self, settings: list[Setting], n_classes: int, n_jobs: int | None = None) -> None:
        self.settings, self._n_classes, self._n_jobs = settings, n_classes, n_jobs
        self._n_rows = settings[0].graph.n_rows
        self.converged = True

    def fit(self, codes: np.ndarray, weights: np.ndarray, hidden: HeldOut) -> SourceOutput:
        """Diffuse the given labels; weigh the settings by what they say of the hidden ones."""
        masses = self._masses(codes, weights)
        learnt = [self._learn_setting(setting, masses, hidden) for setting in self.settings]
        unseen, scores = [answer for answer, _ in learnt], np.array([score for _, score in learnt])
        shares = np.exp(BOLDNESS * (scores - scores.max()) * max(len(hidden), 1))
        shares[shares < NEGLIGIBLE * shares.sum()] = 0.0
        shares /= shares.sum()
        for setting, share in zip(self.settings, shares, strict=True):
            setting.weight = float(share)
        said = sum(setting.weight * answer for setting, answer in zip(self.settings, unseen, strict=True))
        self.settings = [setting for setting in self.settings if setting.weight > 0]
        return SourceOutput(self._mixture(), np.log(said))

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Diffuse the labels as they are now: logarithms of the class probabilities of all rows."""
        masses = self._masses(codes, weights)
        for setting in self.settings:
            self._solve(setting, masses)
        return self._mixture()

    def predict_log_proba(self, neighbors: Any) -> np.ndarray:
        """Logarithms of the class probabilities of new rows, from their neighbours among the training rows.

        Minus infinity for rows whose neighbours no label reaches.
        """
        total: np.ndarray | float = 0.0
        reached: Any = False
        for setting in self.settings:
            assert setting.values is not None
            values = setting.graph.extend(neighbors, setting.values)
            total = total + setting.weight * powered(values, setting.power)
            reached = reached | values.any(axis=1, keepdims=True)
        return np.where(reached, np.log(total), -np.inf)

    def reached(self) -> np.ndarray:
        """Which rows some label reaches."""
        return np.any([setting.values.any(axis=1) for setting in self.settings if setting.values is not None], axis=0)

    def _learn_setting(self, setting: Setting, masses: np.ndarray, hidden: HeldOut) -> tuple[np.ndarray, float]:
        """What the setting says of the hidden labels, and how well: per label, less the pull to the usual power."""
        self._solve(setting, masses)
        values = self._unseen(setting, masses, hidden)
        best = (-np.inf, values)
        for power in POWERS:
            answer = powered(values, power)
            likelihood = log_likelihood(np.log(answer), hidden.codes)
            score = likelihood - POWER_PULL * np.log(power / USUAL_POWER) ** 2
            if score > best[0]:
                best = (score, answer)
                setting.power = power
                setting.likelihood = likelihood / max(len(hidden), 1)
        return best[1], best[0] / max(len(hidden), 1)

    def _unseen(self, setting: Setting, masses: np.ndarray, hidden: HeldOut) -> np.ndarray:
        """The values of the hidden rows, each without the labels of its fold."""
        if len(hidden) == 0:
            return np.empty((0, self._n_classes))
        assert setting.values is not None
        if hidden.alone:
            block = setting.graph.inverse_block(hidden.rows, setting.strength, tol=TOL, n_jobs=self._n_jobs)
            self.converged &= block.converged
            own = np.diag(block.values)
            values = setting.values[hidden.rows] - own[:, None] * masses[hidden.rows]
            return np.maximum(values, 0.0) * hidden.lift()
        values = np.empty((len(hidden), self._n_classes))
        for fold in range(hidden.n_folds):
            here = hidden.fold == fold
            shown = masses.copy()
            shown[hidden.rows[here]] = 0.0
            found = self._diffuse(setting, shown, setting.values)
            values[here] = found[hidden.rows[here]]
        return values * hidden.lift()

    def _solve(self, setting: Setting, masses: np.ndarray) -> None:
        setting.values = self._diffuse(setting, masses, setting.values)

    def _diffuse(self, setting: Setting, masses: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        result = setting.graph.solve(masses, setting.strength, start=start, tol=TOL, n_jobs=self._n_jobs)
        self.converged &= result.converged
        return result.values

    def _masses(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        masses = np.zeros((self._n_rows, self._n_classes))
        labeled = np.flatnonzero(codes >= 0)
        masses[labeled, codes[labeled]] = weights[labeled] / weights[labeled].max()  # whatever their size, no overflow
        return masses

    def _mixture(self) -> np.ndarray:
        total = np.zeros((self._n_rows, self._n_classes))
        for setting in self.settings:
            assert setting.values is not None
            total += setting.weight * powered(setting.values, setting.power)
        return np.log(total, out=total).astype(np.float32)
