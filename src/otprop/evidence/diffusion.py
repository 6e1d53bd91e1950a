"""Diffusion source: labels spread over the neighbour graph; several settings are mixed, weighted on held-out labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.evidence.base import SourceOutput, powered
from otprop.evidence.held_out import HeldOut
from otprop.evidence.weights import Powers, fit_mixture
from otprop.geometry.diffusion import MAX_COLUMNS_OF_GROUPS, MAX_INVERSE_ROWS, DiffusionGraph, as_values
from otprop.geometry.parallel import Jobs, row_blocks, rows_per_block, single_threaded_blas

POWERS = Powers((0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0), start=1.4, penalty=0.5)
TOL = 3e-2  # of the values relative to their row; an upper bound, most values are far more accurate
OWN_TOL = 1e-6  # where the contribution of a row's own label is subtracted
BACKGROUND = 1e-3  # of the mean mass per row, shared by all classes: a row that labels hardly reach is undecided
MIN_OF_OTHERS = 1e-5  # of that contribution: a smaller difference is rounding, not mass of other labels
_FITTING_ONLY = ("held_out_reached", "held_out_log_reach", "_reach_setting", "_unreached")
BLOCK_ENTRIES = 2**20  # class probabilities computed at once
MAX_ROWS_AT_ONCE = 200_000  # of a table whose settings are solved side by side
MAX_ENTRIES_OF_GROUPS = 2**23  # values of folds that are solved together


@saved_as("evidence.diffusion_setting", nan=("likelihood",))
@dataclass
class Setting:
    """One setting of the diffusion.

    Attributes
    ----------
    graph : DiffusionGraph
    n_neighbors : int or None, of the graph
    strength : float, how far labels diffuse, below 1
    power : float, to which the values are raised
    likelihood : float, log-likelihood per held-out label
    weight : float, in the mixture of all settings
    background : float, mass added to every class of every row
    values : ndarray of shape (n_rows, n_classes), the diffused label mass
    """

    graph: DiffusionGraph
    n_neighbors: int | None
    strength: float
    power: float = POWERS.start
    likelihood: float = float("nan")
    weight: float = 1.0
    background: float = 0.0
    values: np.ndarray | None = field(default=None, repr=False)

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Class probabilities of rows with these masses, times the weight of the setting."""
        return self.weight * powered(values + self.background, self.power)


@saved_as("evidence.diffusion", infinite=("log_reach",))
class DiffusionSource:
    """Class probabilities of each row as a mixture over the settings of the diffusion."""

    name = "diffusion"

    def __init__(self, settings: list[Setting], n_classes: int, n_jobs: int | None = None) -> None:
        self.settings, self._n_classes, self._n_jobs = settings, n_classes, n_jobs
        self._n_rows = settings[0].graph.n_rows
        self.converged = True

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Diffuse the labels with every setting; weight the settings by the likelihood of the held-out labels."""
        masses = self._masses(codes, weights)
        tol = OWN_TOL if held_out.leave_one_out else TOL  # differences must be accurate

        def fit(setting: Setting, n_jobs: int | None) -> np.ndarray:
            setting.values = self._diffuse(setting, masses, n_jobs, tol=tol)
            mean_mass = masses.sum() / self._n_rows / (1.0 - setting.strength)
            setting.background = float(BACKGROUND * mean_mass / self._n_classes)
            values = self._held_out_values(setting, masses, held_out, n_jobs)
            if self._n_rows > MAX_INVERSE_ROWS:
                setting.values = as_values(setting.values, setting.graph.narrow_dtype)
            return values

        values = self._of_each_setting(fit)
        self._measure_reach(values, held_out)
        with_background = [found + one.background for found, one in zip(values, self.settings, strict=True)]
        mixture = fit_mixture(with_background, held_out, POWERS)
        kept = [found.any(axis=1) for found, weight in zip(values, mixture.weights, strict=True) if weight > 0]
        self.held_out_reached = np.any(kept, axis=0)
        for number, setting in enumerate(self.settings):
            setting.power, setting.weight = float(mixture.powers[number]), float(mixture.weights[number])
            setting.likelihood = float(mixture.likelihoods[number])
        self.settings = [setting for setting in self.settings if setting.weight > 0]
        self._unreached = ~self.reached()
        return SourceOutput(self._mixture(), np.log(mixture.held_out), np.log(mixture.cross_fitted))

    def _measure_reach(self, held_out_values: list[np.ndarray], held_out: HeldOut) -> None:
        """Logarithm of the label mass that reaches each row and each held-out row.

        The values of a held-out row make up for the mass that its fold took from each class, so that both compare.
        """
        number = min(range(len(self.settings)), key=lambda one: _reach_order(self.settings[one]))
        self._reach_setting = self.settings[number] if held_out.few_per_class else None  # else its memory is not needed
        values = self.settings[number].values
        assert values is not None
        root = self._roots(self.settings[number])
        with np.errstate(divide="ignore"):
            self.log_reach = np.log(values.sum(axis=1) / root)
            self.held_out_log_reach = np.log(held_out_values[number].sum(axis=1) / root[held_out.rows])

    def log_reach_of_others(self, codes: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Logarithm of the label mass that reaches labelled rows from all labels but their own, before the rounds."""
        setting = self._reach_setting
        assert setting is not None  # there are few labels per class
        values = self._values_of_others(setting, self._masses(codes, weights), rows, self._n_jobs)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values.sum(axis=1) / self._roots(setting)[rows]))

    @staticmethod
    def _roots(setting: Setting) -> np.ndarray:
        return np.asarray(np.sqrt(np.maximum(setting.graph.degrees, np.finfo(float).tiny)))

    def update(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Diffuse the current labels; return log-probabilities of all rows."""
        masses = self._masses(codes, weights)

        def update(setting: Setting, n_jobs: int | None) -> None:
            setting.values = self._diffuse(setting, masses, n_jobs, overwrite_start=True)

        self._of_each_setting(update)
        return self._mixture()

    def end_rounds(self) -> None:
        """Forget the values where no given label reaches: rows labelled in rounds would only confirm themselves."""
        self._reach_setting = None
        for setting in self.settings:
            if setting.values is not None:
                setting.values[self._unreached] = 0.0

    def _of_each_setting(self, function: Callable[[Setting, int | None], Any]) -> list[Any]:
        """Call a function of a setting and a number of threads.

        Each setting gets a thread if there are enough settings. Large tables are solved for one setting at a time, with
        all threads in each product, to save memory.
        """
        jobs = Jobs(self._n_jobs)
        if MAX_INVERSE_ROWS < self._n_rows <= MAX_ROWS_AT_ONCE and len(self.settings) >= jobs.n:
            return list(jobs.run(lambda setting: function(setting, 1), self.settings))
        with single_threaded_blas():
            return [function(setting, self._n_jobs) for setting in self.settings]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _FITTING_ONLY}

    def predict_log_proba(self, neighbors: Any) -> np.ndarray:
        """Log-probabilities of new rows from their neighbours; minus infinity where no label reaches the neighbours."""
        total: np.ndarray | float = 0.0
        reached: Any = False
        for setting in self.settings:
            assert setting.values is not None
            values = setting.graph.extend(neighbors, setting.values)
            total = total + setting.probabilities(values)
            reached = reached | values.any(axis=1, keepdims=True)
        return np.where(reached, np.log(total), -np.inf)

    def predict_log_reach(self, neighbors: Any) -> np.ndarray:
        """Logarithm of the label mass that reaches new rows, from their neighbours."""
        with np.errstate(divide="ignore"):
            mass = self.settings[0].graph.extend(neighbors, np.exp(self.log_reach)[:, None])
            return np.asarray(np.log(mass[:, 0]))

    def reached(self) -> np.ndarray:
        """Which rows are reached by some label."""
        return np.any([setting.values.any(axis=1) for setting in self.settings if setting.values is not None], axis=0)

    def _held_out_values(
        self, setting: Setting, masses: sp.csr_array, held_out: HeldOut, n_jobs: int | None
    ) -> np.ndarray:
        """Values of the held-out rows, each without the labels of its fold."""
        if len(held_out) == 0:
            return np.empty((0, self._n_classes))
        assert setting.values is not None
        if held_out.leave_one_out:
            values = self._values_of_others(setting, masses, held_out.rows, n_jobs)
            return values * held_out.class_mass_correction()
        values = np.zeros((len(held_out), self._n_classes))
        columns = min(MAX_COLUMNS_OF_GROUPS, MAX_ENTRIES_OF_GROUPS // self._n_rows)
        together = max(columns // self._n_classes, 1)  # products with many columns cost less per column
        for folds in row_blocks(held_out.n_folds, together):
            here = [np.flatnonzero(held_out.fold == fold) for fold in range(folds.start, folds.stop)]
            shown = [_without(masses, held_out.hidden_with(each)) for each in here]
            reached = [setting.graph.connected_to(each) for each in shown]
            parts = [setting.values if each.all() else np.where(each[:, None], setting.values, 0) for each in reached]
            start = parts[0] if len(parts) == 1 else np.hstack(parts)
            found = self._diffuse(setting, sp.hstack(shown), n_jobs, len(shown), start=start, rows=held_out.rows)
            for number, each in enumerate(here):
                columns = slice(number * self._n_classes, (number + 1) * self._n_classes)
                kept = each[reached[number][held_out.rows[each]]]
                values[kept] = found[kept, columns]
        return values * held_out.class_mass_correction()

    def _values_of_others(
        self, setting: Setting, masses: sp.csr_array, rows: np.ndarray, n_jobs: int | None
    ) -> np.ndarray:
        """Values of labelled rows, each without its own label, from the diagonal of the inverse."""
        assert setting.values is not None
        own = setting.graph.inverse_diagonal(rows, setting.strength, tol=OWN_TOL, n_jobs=n_jobs)
        self._check(own.converged)
        contribution = own.values[:, None] * masses[rows].toarray()
        values = np.asarray(setting.values[rows] - contribution)
        values[values < MIN_OF_OTHERS * contribution.max(axis=1, keepdims=True)] = 0.0
        return values

    def _diffuse(
        self,
        setting: Setting,
        masses: sp.csr_array,
        n_jobs: int | None,
        n_groups: int = 1,
        tol: float | None = None,
        start: np.ndarray | None = None,
        **options: Any,
    ) -> np.ndarray:
        """Solve for the diffused masses, starting from the setting's current values unless a start is given."""
        result = setting.graph.solve(
            masses,
            setting.strength,
            start=setting.values if start is None else start,
            tol=TOL if tol is None else tol,
            n_jobs=n_jobs,
            n_groups=n_groups,
            dtype=np.float64 if tol == OWN_TOL else setting.graph.narrow_dtype,  # single is not enough for differences
            **options,
        )
        self._check(result.converged)
        return result.values

    def _check(self, converged: bool) -> None:
        if not converged:
            self.converged = False

    def _masses(self, codes: np.ndarray, weights: np.ndarray) -> sp.csr_array:
        labeled = np.flatnonzero(codes >= 0)
        masses = weights[labeled] / weights[labeled].max()  # weights of any size, no overflow
        return sp.csr_array((masses, (labeled, codes[labeled])), shape=(self._n_rows, self._n_classes))

    def _mixture(self) -> np.ndarray:
        found = np.empty((self._n_rows, self._n_classes), dtype=np.float32)
        for block in row_blocks(self._n_rows, rows_per_block(self._n_classes, BLOCK_ENTRIES)):
            values = [setting.values[block] for setting in self.settings if setting.values is not None]
            parts = [setting.probabilities(each) for setting, each in zip(self.settings, values, strict=True)]
            found[block] = np.log(np.sum(parts, axis=0))
        return found


def _reach_order(setting: Setting) -> tuple[float, int]:
    """The farthest diffusion over the sparsest graph shows best which rows no label reaches."""
    return -setting.strength, setting.n_neighbors or 0


def _without(masses: sp.csr_array, rows: np.ndarray) -> sp.csr_array:
    """The masses, set to zero in these rows."""
    shown = np.ones(masses.shape[0])
    shown[rows] = 0.0
    return sp.diags_array(shown) @ masses
