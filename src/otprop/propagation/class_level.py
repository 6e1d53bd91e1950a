"""Class-level fit, the default of `OTP`: sources of evidence, class shares, rounds, calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from otprop._labels import Labels
from otprop._progress import ProgressCallback, no_progress
from otprop.evidence.combined import Evidence
from otprop.evidence.diffusion import DiffusionSource
from otprop.evidence.held_out import make_folds
from otprop.evidence.nearness import NearnessSource
from otprop.evidence.output import hits
from otprop.evidence.weights import scale_to_mean_one
from otprop.geometry.pairwise import in_user_units
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.propagation.calibration import Calibration, best_class_confidence, calibrate, shift_to_error
from otprop.propagation.class_predictor import ClassLevelPredictor
from otprop.propagation.class_rounds import BLOCK_ENTRIES, ClassLevelRounds, tempered
from otprop.propagation.config import ClassLevelConfig, RoundCallback
from otprop.propagation.error import (
    ErrorEvidence,
    effective_number,
    estimate_error,
    unseen_share,
    weighted_error,
    without_chosen,
)
from otprop.propagation.shares import auto_strength, check_prior, counts_without_chosen, infer_shares
from otprop.propagation.sources import Geometry, build_geometry, build_iterative_source, build_static_sources

AUTO_ROUNDS = 20
KNOWN_UNREACHED = 0.5  # as often as the rows, held-out labels are to be unreached for their calibration to hold there
MIN_POTENTIAL = -50.0  # of a class in the plan, where it shifts held-out log-probabilities


class ClassLevelFit:
    """A fit with ``marginals="class"``: each class ships the mass it owes.

    Parameters
    ----------
    config : ClassLevelConfig
    progress : callable(done, total, step)

    Attributes
    ----------
    geometry : Geometry or None, what depends on X only; set as soon as it is built
    evidence : Evidence
    prior : ndarray of shape (n_classes,), the classes' shares of all rows
    strength : float, how far the shares bind
    temperature : float, by which log-probabilities are divided
    epsilon : float, as used: the temperature, or the scale of the kernel in the user's units
    rounds : ClassLevelRounds, with labels, distributions, certainty and round of every row
    held_out_probabilities : ndarray of shape (n_held_out, n_classes), with the class potentials of the plan
    error_evidence : ErrorEvidence, what the fit knows about its error
    error : ErrorEstimate, of the unlabelled rows
    calibration : Calibration, from the probability of a label to its confidence
    confidence : ndarray of shape (n_rows,), 1 where the label was given
    """

    def __init__(self, config: ClassLevelConfig, progress: ProgressCallback = no_progress) -> None:
        self.config, self._progress = config, progress
        self.geometry: Geometry | None = None

    def fit(
        self,
        X: Any,
        labels: Labels,
        weights: np.ndarray,
        on_round: RoundCallback,
        *,
        chosen: np.ndarray | None = None,
        geometry: Geometry | None = None,
    ) -> Self:
        """Label every row.

        `chosen` marks rows whose label was picked and not drawn at random; `geometry` of an earlier fit of the same X
        and configuration is used again.
        """
        config, n_classes = self.config, len(labels.classes)
        prior = check_prior(config.class_prior, labels.classes)
        weights = weights.copy()
        weights[labels.labeled] = scale_to_mean_one(weights[labels.labeled])
        shown = np.where(weights > 0, labels.codes, -1)
        n_labels = int(np.count_nonzero(shown >= 0))
        geometry = build_geometry(X, config, self._progress) if geometry is None else geometry
        self.geometry = geometry
        self.evidence = Evidence(
            build_iterative_source(geometry, X.shape[0], n_classes, config),
            build_static_sources(X, geometry, labels.classes, n_labels, config),
            make_folds(shown, n_classes, config.seed, chosen, weights),
        )
        logits = self.evidence.fit(shown, weights, lambda name: self._progress(0, 0, f"source {name}"))
        reached = self.evidence.iterative.reached()
        self.temperature = 1.0 if config.epsilon is None or not config.uses_graph else config.epsilon
        self.epsilon = self._epsilon_used()
        drawn = (shown >= 0) if chosen is None else (shown >= 0) & ~chosen
        counts, drawn_counts = (
            np.bincount(shown[rows], minlength=n_classes).astype(np.float64) for rows in (shown >= 0, drawn)
        )
        self.prior = self._infer_prior(logits, labels, counts, drawn_counts) if prior is None else prior
        self.strength = auto_strength(drawn_counts) if config.marginal_strength is None else config.marginal_strength
        self.rounds = ClassLevelRounds(
            self.evidence,
            logits,
            labels.codes,
            weights,
            self.prior,
            strength=self.strength,
            epsilon=self.temperature,
            alpha=config.alpha,
            max_rounds=config.max_rounds,
            min_round_share=config.min_round_share,
            tol=config.tol,
            max_iter=config.max_iter,
        )
        self.rounds.run(on_round, self.epsilon)
        self.evidence.iterative.end_rounds()
        self._judge(labels, reached, drawn_counts, classes_complete=prior is not None)
        self.predictor = ClassLevelPredictor.from_fit(
            X,
            labels,
            weights,
            config=config,
            geometry=geometry,
            evidence=self.evidence,
            temperature=self.temperature,
            plan=self.rounds.plan,
            prior=self.prior,
            distributions=self.rounds.distributions,
            calibration=self.calibration,
            unseen=self.error_evidence.unseen,
        )
        return self

    @property
    def settings(self) -> list[dict[str, Any]]:
        """What was chosen for the geometry: one entry a setting that has a weight."""
        source = self.evidence.iterative
        if isinstance(source, NearnessSource):
            return [{"cost": self.config.cost, "epsilon": self.epsilon}]
        assert isinstance(source, DiffusionSource)
        return [
            {
                "n_neighbors": setting.n_neighbors,
                "diffusion": setting.strength,
                "power": setting.power,
                "likelihood": setting.likelihood,
                "weight": setting.weight,
            }
            for setting in source.settings
        ]

    def _epsilon_used(self) -> float:
        if self.config.epsilon is not None:
            return self.config.epsilon
        source = self.evidence.iterative
        if isinstance(source, NearnessSource) and self.geometry is not None and self.geometry.cost is not None:
            return in_user_units(source.epsilon or 1.0, self.geometry.cost.scale)
        return self.temperature

    def _infer_prior(
        self, logits: np.ndarray, labels: Labels, counts: np.ndarray, drawn_counts: np.ndarray
    ) -> np.ndarray:
        """The classes' shares of all rows: the labelled ones, and those inferred for the rest.

        Where labels were chosen, and few drawn at random, what all labels tell is averaged with the rows' mean
        probabilities.
        """
        left, held_out = labels.unlabeled, self.evidence.held_out
        reached = left[logits.min(axis=1)[left] > -np.inf]
        total = np.zeros(len(counts))
        for block in row_blocks(len(reached), rows_per_block(len(counts), BLOCK_ENTRIES)):
            total += softmax(tempered(logits[reached[block]], self.temperature), axis=1).sum(axis=0)
        mean = total / max(len(reached), 1)
        enough = held_out.enough_drawn or len(reached) == 0 or np.array_equal(counts, drawn_counts)
        used = held_out.drawn if enough else np.ones(len(held_out), dtype=bool)
        told = counts_without_chosen(drawn_counts, counts - drawn_counts, len(left)) if enough else counts
        shown = softmax(tempered(self.evidence.held_out_log_proba[used], self.temperature), axis=1)
        inferred = infer_shares(mean, len(reached), shown, held_out.codes[used], told)
        if not enough:
            inferred = (inferred + mean) / 2.0
        total = counts + len(left) * inferred
        return np.asarray(total / total.sum())

    def _judge(self, labels: Labels, reached: np.ndarray, drawn_counts: np.ndarray, *, classes_complete: bool) -> None:
        """Estimate the error and calibrate the confidence, from held-out labels that were drawn at random."""
        held_out, left = self.evidence.held_out, labels.unlabeled
        drawn = held_out.drawn
        logs = self._with_plan(self.evidence.cross_fitted_log_proba)
        right, best = hits(logs, held_out.codes), softmax(logs, axis=1).max(axis=1, initial=0.0)
        held_out_counts = np.bincount(held_out.codes[drawn], minlength=len(self.prior))
        rows_per_label = (self.prior / np.maximum(held_out_counts, 1))[held_out.codes][drawn]
        error = weighted_error(right[drawn], rows_per_label)
        error = without_chosen(error, len(left), int((~drawn).sum()), float((1.0 - right)[~drawn].sum()))
        n_once = 0 if classes_complete else int(np.count_nonzero((drawn_counts == 1) & (held_out.counts == 1)))
        sure, best_class = self.rounds.distributions.max(axis=1), self.rounds.distributions.argmax(axis=1)
        self.error_evidence = ErrorEvidence(
            held_out=error,
            doubt=float(1.0 - sure[left].mean()) if len(left) else 0.0,
            unseen=unseen_share(n_once, int(drawn_counts.sum())),
            n_labels=effective_number(rows_per_label) + n_once,
            n_classes=len(self.prior),
            n_rows=len(left),
            n_chosen=float((held_out.counts - drawn_counts).sum()),
        )
        self.error = estimate_error(self.error_evidence)
        self.held_out_probabilities = softmax(self._with_plan(self.evidence.held_out_log_proba), axis=1)
        self.calibration = Calibration()
        if drawn.any():
            unreached = 1.0 - float(self.evidence.iterative.held_out_reached[drawn].mean())
            self.calibration = replace(
                calibrate(best[drawn], right[drawn], rows_per_label),
                knows_unreached=unreached > KNOWN_UNREACHED * float(np.mean(~reached[left])) if len(left) else False,
            )
            if len(left):
                rows = sure[left], best_class[left], reached[left]
                self.calibration = shift_to_error(
                    self.calibration, lambda line: self._confidence(*rows, line), self.error.expected
                )
        self.confidence = self._confidence(sure, best_class, reached, self.calibration)
        self.confidence[labels.labeled] = 1.0

    def _confidence(
        self, sure: np.ndarray, best_class: np.ndarray, reached: np.ndarray, calibration: Calibration
    ) -> np.ndarray:
        return best_class_confidence(sure, best_class, reached, calibration, self.prior, self.error_evidence.unseen)

    def _with_plan(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Log-probabilities of held-out labels with the class potentials of the first plan added."""
        logs = tempered(log_probabilities, self.temperature)
        return logs if self.rounds.plan is None else logs + np.maximum(self.rounds.plan.h, MIN_POTENTIAL)
