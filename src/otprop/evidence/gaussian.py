"""Gaussian source: one normal distribution per class, fitted to labelled and unlabelled rows by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf, dtrtri

from otprop._saving import saved_as
from otprop.evidence.base import NamedSource, SourceOutput
from otprop.evidence.classifier import predict_in_blocks
from otprop.evidence.held_out import HeldOut, n_trainings
from otprop.evidence.scaling import ScaledRows
from otprop.evidence.weights import Powers, fit_mixture, mix
from otprop.geometry.parallel import Jobs, in_fixed_blocks, single_threaded

POWERS = Powers((0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0), start=0.35, penalty=1.0)
UNLABELED_WEIGHTS = (0.1, 1.0)  # of an unlabelled row in EM; a labelled row has the weight 1
COVARIANCES = ("diagonal", "shared", "own")  # one diagonal for all classes, one for all classes, one per class
MAX_ITER = 10
TOL = 1e-3  # mean change of a probability at which EM stops
MAX_UNLABELED = 1000  # unlabelled rows in EM
MEAN_PULL = 0.5  # pseudo-rows at the overall mean added to each class
DIAGONAL_PULL = 2.0  # pseudo-rows of variance 1 added to a diagonal covariance
MIN_VARIANCE = 1e-3  # added to every variance; that of a column is 1
MAX_DISTANCE = 50.0  # in log-likelihood, between the most and the least probable class
FIXED_ROWS = 512  # rows in a matrix product
MAX_ROWS = 30_000
MAX_COLUMNS = 300
MAX_CLASSES = 30


def gaussian_pays(n_classes: int, X: Any) -> bool:
    """Whether there are few enough rows, columns and classes for its cost."""
    return not sp.issparse(X) and X.shape[0] <= MAX_ROWS and X.shape[1] <= MAX_COLUMNS and n_classes <= MAX_CLASSES


@dataclass(frozen=True)
class Moments:
    """Sums over rows for each class, weighted by the probability of the class.

    Attributes
    ----------
    mass : ndarray of shape (n_classes,)
    first : ndarray of shape (n_classes, n_columns), sums of the rows
    second : ndarray of shape (n_classes, n_columns, n_columns), sums of their outer products; (1, ...) for all classes
    """

    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, *, by_class: bool) -> Moments:
        """The sums over these rows; `weights` has the shape (n_rows, n_classes)."""
        if by_class:
            second = np.stack([(rows * each[:, None]).T @ rows for each in weights.T])
        else:
            second = ((rows * weights.sum(axis=1)[:, None]).T @ rows)[None]
        return cls(weights.sum(axis=0), weights.T @ rows, second)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mass + other.mass, self.first + other.first, self.second + other.second)


@saved_as("evidence.gaussian_model")
@dataclass(frozen=True)
class GaussianModel:
    """Normal distributions of the classes.

    Attributes
    ----------
    log_shares : ndarray of shape (n_classes,)
    means : ndarray of shape (n_classes, n_columns)
    whitening : ndarray of shape (n_classes or 1, n_columns, n_columns)
        Maps the rows of a class, minus its mean, to the identity as covariance.
    """

    log_shares: np.ndarray
    means: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, moments: Moments, covariance: str) -> GaussianModel:
        """The most probable distributions given the moments, pulled towards simpler ones."""
        mass, total = moments.mass, moments.mass.sum()
        centre = moments.first.sum(axis=0) / total
        means = (moments.first + MEAN_PULL * centre) / (mass + MEAN_PULL)[:, None]
        if covariance == "own":
            crossed = moments.first[:, :, None] * means[:, None, :]
            about_means = (mass[:, None] * means)[:, :, None] * means[:, None, :] - crossed - crossed.transpose(0, 2, 1)
            scatter = moments.second + about_means
            pooled = scatter.sum(axis=0)
        else:
            crossed = moments.first.T @ means
            pooled = moments.second.sum(axis=0) + (mass[:, None] * means).T @ means - crossed - crossed.T
        if covariance == "diagonal":
            variances = (np.diag(pooled) + DIAGONAL_PULL) / (total + DIAGONAL_PULL)
            whitening = np.diag(1.0 / np.sqrt(variances))[None]
        else:
            pull, floor = means.shape[1] + 2.0, MIN_VARIANCE * np.eye(means.shape[1])
            shared = (pooled + pull * np.diag(np.diag(pooled)) / total) / (total + pull) + floor
            covariances = shared[None]
            if covariance == "own":
                covariances = (scatter + pull * shared) / (mass + pull)[:, None, None] + floor
            whitening = np.stack([_whitening(each) for each in covariances])
        return cls(np.log((mass + MEAN_PULL) / (total + MEAN_PULL * len(mass))), means, whitening)

    def log_proba(self, rows: np.ndarray) -> np.ndarray:
        """Unnormalised log-probabilities of the classes, the largest of a row at 0, at least -MAX_DISTANCE."""
        if len(self.whitening) == 1:  # the squares of the rows cancel
            white = self.means @ self.whitening[0].T
            logs = rows @ (white @ self.whitening[0]).T + (self.log_shares - 0.5 * (white * white).sum(axis=1))
        else:
            logs = np.empty((len(rows), len(self.means)))
            for number, (mean, whitening) in enumerate(zip(self.means, self.whitening, strict=True)):
                white = (rows - mean) @ whitening.T
                logs[:, number] = np.log(np.diag(whitening)).sum() - 0.5 * np.einsum("ij,ij->i", white, white)
            logs += self.log_shares
        logs -= logs.max(axis=1, keepdims=True)
        return np.maximum(logs, -MAX_DISTANCE)


@saved_as("evidence.gaussian")
class GaussianSource:
    """Class probabilities of normal distributions, as a mixture over several settings.

    Labelled rows keep their class. Unlabelled rows count with their class probabilities, at two weights. Probabilities
    of normal distributions are too confident, so they are raised to a power below one, chosen on held-out labels.

    Parameters
    ----------
    scaled : ScaledRows
    n_classes, seed : int
    n_jobs : int or None, number of threads; None for all processors; results do not depend on it
    """

    name = "gaussian"

    def __init__(self, scaled: ScaledRows, n_classes: int, seed: int, n_jobs: int | None = None) -> None:
        self._scaled, self._scaler = scaled, scaled.scaler
        self._n_classes, self._seed, self._n_jobs = n_classes, seed, n_jobs

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Fit all settings, once more per fold for the held-out rows; mix them by the held-out labels."""
        with single_threaded():
            return self._fit(codes, weights, held_out)

    def _fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        self._scores, rows = self._scaled.scores
        labeled, others = np.flatnonzero((codes >= 0) & (weights > 0)), np.flatnonzero(codes < 0)
        if len(others) > MAX_UNLABELED:
            rng = np.random.default_rng(self._seed)
            others = np.sort(rng.choice(others, MAX_UNLABELED, replace=False))
        unlabeled, known = rows[others], rows[labeled]
        masses = np.zeros((len(labeled), self._n_classes))
        masses[np.arange(len(labeled)), codes[labeled]] = weights[labeled]
        settings = [(covariance, weight) for covariance in COVARIANCES for weight in UNLABELED_WEIGHTS]
        place = np.searchsorted(labeled, held_out.rows)
        group = held_out.fold % n_trainings(len(labeled))
        values = [np.empty((len(held_out), self._n_classes)) for _ in settings]

        def fit_without(task: tuple[int, int]) -> None:
            number, one = task
            here = group == one
            hidden = known[place[here]]
            shown = np.flatnonzero(~np.isin(labeled, held_out.hidden_with(here)))
            model = fit_em(known[shown], masses[shown], np.concatenate([unlabeled, hidden]), *settings[number])
            values[number][here] = np.exp(model.log_proba(hidden))

        jobs = Jobs(self._n_jobs)
        list(jobs.run(fit_without, [(number, one) for one in np.unique(group) for number in range(len(settings))]))
        mixture = fit_mixture(values, held_out, POWERS)
        kept = np.flatnonzero(mixture.weights).tolist()
        self._powers, self._weights = mixture.powers[kept], mixture.weights[kept]
        self._models = list(jobs.run(lambda number: fit_em(known, masses, unlabeled, *settings[number]), kept))
        found = predict_in_blocks(self._log_proba, rows, self._n_classes)
        return SourceOutput(found, np.log(mixture.held_out), np.log(mixture.cross_fitted))

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Log-probabilities of new rows; those of a row do not depend on the other rows."""
        scaled = self._scaler.transform(rows)
        return in_fixed_blocks(lambda block: self._log_proba(self._scores.transform(block)), scaled, FIXED_ROWS)

    def _log_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.log(mix([np.exp(model.log_proba(rows)) for model in self._models], self._powers, self._weights))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_scaled", "_n_jobs")}


def _whitening(covariance: np.ndarray) -> np.ndarray:
    """The inverse of the Cholesky factor; called thousands of times, hence LAPACK without further checks."""
    factor, failed = dpotrf(covariance, lower=True)
    if failed:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    return np.asarray(dtrtri(factor, lower=True)[0])


def fit_em(
    known: np.ndarray, masses: np.ndarray, unlabeled: np.ndarray, covariance: str, weight: float
) -> GaussianModel:
    """Normal distributions of labelled and unlabelled rows.

    Parameters
    ----------
    known : ndarray of shape (n_labeled, n_columns)
    masses : ndarray of shape (n_labeled, n_classes), the weight of a row in the column of its class
    unlabeled : ndarray of shape (n_unlabeled, n_columns)
    covariance : one of COVARIANCES
    weight : float, of an unlabelled row

    Returns
    -------
    GaussianModel
    """
    by_class = covariance == "own"
    given = Moments.of(known, masses, by_class=by_class)
    model = GaussianModel.of(given, covariance)
    before = np.zeros((len(unlabeled), masses.shape[1]))
    fixed = None if by_class else Moments.of(unlabeled, np.full((len(unlabeled), 1), weight), by_class=False).second
    for _ in range(MAX_ITER if len(unlabeled) else 0):
        found = np.exp(model.log_proba(unlabeled))  # at most 1, so that this is the softmax
        found /= found.sum(axis=1, keepdims=True)
        if np.abs(found - before).mean() < TOL:
            break
        before = found
        if fixed is None:
            added = Moments.of(unlabeled, weight * found, by_class=True)
        else:  # the sum over the classes does not change
            added = Moments(weight * found.sum(axis=0), weight * found.T @ unlabeled, fixed)
        model = GaussianModel.of(given + added, covariance)
    return model


GAUSSIAN = NamedSource(
    "gaussian",
    GaussianSource,
    start_weight=0.5,
    pays=lambda n_labels, n_classes, X: gaussian_pays(n_classes, X),
    takes_sparse=False,
)
