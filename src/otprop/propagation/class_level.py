"""Class-level fit, the default of `OTP`: sources of evidence, class shares, rounds, calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from otprop._labels import Labels
from otprop._progress import NEIGHBOURS_DONE, SOURCES_DONE, ProgressCallback, no_progress, part_of
from otprop._votes import Votes
from otprop.evidence.base import hits
from otprop.evidence.combined import Evidence
from otprop.evidence.diffusion import DiffusionSource
from otprop.evidence.held_out import design_effect, make_folds
from otprop.evidence.nearness import NearnessSource
from otprop.evidence.shift import Shift, matched_groups, measure_shift
from otprop.evidence.weights import scale_to_mean_one
from otprop.geometry.pairwise import in_user_units
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.propagation.calibration import Calibration, best_class_confidence, calibrate, shift_to_error
from otprop.propagation.class_errors import JudgedLabels
from otprop.propagation.class_predictor import ClassLevelPredictor
from otprop.propagation.class_rounds import BLOCK_ENTRIES, ClassLevelRounds, tempered
from otprop.propagation.config import ClassLevelConfig, RoundCallback
from otprop.propagation.error import (
    ErrorEvidence,
    effective_number,
    estimate_error,
    intraclass_correlation,
    unseen_share,
    weighted_error,
    without_chosen,
)
from otprop.propagation.geometry import Geometry, build_geometry, build_iterative_source, build_static_sources
from otprop.propagation.novelty import Novelty
from otprop.propagation.shares import (
    auto_strength,
    bound_shares,
    check_prior,
    counts_without_chosen,
    infer_shares,
    labeled_shares,
)
from otprop.propagation.wrong_labels import NONE_WRONG, find_wrong_labels

AUTO_ROUNDS = 20
KNOWN_UNREACHED = 0.5  # required ratio of unreached held-out labels to unreached rows
MAX_BESIDE = 500  # labels without which the reach of their own row is solved, one by one
MIN_POTENTIAL = -50.0  # of a class in the plan, when it is added to held-out log-probabilities


class ClassLevelFit:
    """A fit of `OTP`: each class ships the mass it has not shipped yet.

    Parameters
    ----------
    config : ClassLevelConfig
    progress : callable(done, total, step)

    Attributes
    ----------
    geometry : Geometry or None, what depends on X only; set as soon as it is built
    shift : Shift or None, how labelled and unlabelled rows differ; None if they cannot be compared
    evidence : Evidence
    prior : ndarray of shape (n_classes,), the classes' shares of all rows
    strength : float, how strictly the shares hold
    temperature : float, divisor of the log-probabilities
    epsilon : float, as used: the temperature, or the scale of the kernel in the user's units
    rounds : ClassLevelRounds, with labels, distributions, certainty and round of every row
    held_out_probabilities : ndarray of shape (n_held_out, n_classes), with the class potentials of the plan
    error_evidence : ErrorEvidence, what the fit knows about its error
    error : ErrorEstimate, of the unlabelled rows
    calibration : Calibration, from the probability of a label to its confidence
    confidence : ndarray of shape (n_rows,), 1 where the label was given
    judged : JudgedLabels, random held-out labels and their predictions
    novelty : Novelty, how well label mass reaches held-out labels and unlabelled rows
    row_novelty : ndarray of shape (n_rows,), 0 where the label was given
    """

    def __init__(self, config: ClassLevelConfig, progress: ProgressCallback = no_progress) -> None:
        self.config, self._progress = config, progress
        self.geometry: Geometry | None = None
        self.shift: Shift | None = None
        self.novelty = Novelty()
        self.row_novelty = self._known = np.empty(0)

    def fit(
        self,
        X: Any,
        labels: Labels,
        weights: np.ndarray,
        on_round: RoundCallback,
        *,
        chosen: np.ndarray | None = None,
        geometry: Geometry | None = None,
        groups: np.ndarray | None = None,
        votes: Votes | None = None,
    ) -> Self:
        """Label every row.

        `chosen` marks rows whose label was picked and not drawn at random; `geometry` of an earlier fit of the same X
        and configuration is used again. `groups` has the number of each row's group: labels of a group are held out
        together. `votes` are one more source.
        """
        config, n_classes = self.config, len(labels.classes)
        prior = check_prior(config.class_prior, labels.classes)
        weights = weights.copy()
        weights[labels.labeled] = scale_to_mean_one(weights[labels.labeled])
        shown = np.where(weights > 0, labels.codes, -1)
        if geometry is None:
            geometry = build_geometry(X, config, part_of(self._progress, 0.0, NEIGHBOURS_DONE))
        self.geometry = geometry
        self.temperature = 1.0 if config.epsilon is None or not config.uses_graph else config.epsilon
        drawn = (shown >= 0) if chosen is None else (shown >= 0) & ~chosen
        counts, drawn_counts = (
            np.bincount(shown[rows], minlength=n_classes).astype(np.float64) for rows in (shown >= 0, drawn)
        )

        def fit_evidence(groups: np.ndarray | None, other_weights: np.ndarray | None = None) -> np.ndarray:
            self.evidence = Evidence(
                build_iterative_source(geometry, X.shape[0], n_classes, config),
                build_static_sources(X, geometry, labels.classes, int(counts.sum()), config, votes),
                make_folds(shown, n_classes, config.seed, chosen, weights, groups),
            )
            progress = part_of(self._progress, NEIGHBOURS_DONE, SOURCES_DONE)
            on_source = lambda name, place, n: progress(place, n, f"source {name}")  # noqa: E731
            return self.evidence.fit(shown, weights, on_source, other_weights)

        named_groups = groups is not None
        logits = fit_evidence(groups)
        self.judged_apart = groups is None or len(self.evidence.held_out) > 0
        if not self.judged_apart:  # one group has all labels of each class, so sources are weighted on its own labels
            logits = fit_evidence(None)
        shares = self._infer_shares(logits, labels, counts, drawn_counts) if prior is None else prior
        self._measure_novelty(labels, shares, shown, weights, np.flatnonzero(drawn))
        self._measure_shift(X, np.where(drawn, shown, -1), shares)
        if self.shift is not None and self.shift.found:
            if groups is None:
                groups = matched_groups(geometry.scaled(X), shown, self.shift.importance, config.seed)
                self.judged_apart = groups is None or len(make_folds(shown, n_classes, config.seed, groups=groups)) > 0
                if groups is not None and self.judged_apart:
                    logits = fit_evidence(groups, self.evidence.weights)
            if prior is None:
                shares = bound_shares(shares, self._mean_shares(logits, labels)[0], labeled_shares(drawn_counts))
        total = counts + len(labels.unlabeled) * shares
        self.prior = total / total.sum() if prior is None else prior
        reached, worth = self.evidence.iterative.reached(), self.evidence.held_out.worth
        self.epsilon = self._epsilon_used()
        strength = config.marginal_strength
        self.strength = auto_strength(worth * drawn_counts) if strength is None else strength
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
        del logits  # the rounds free it
        self.rounds.run(on_round, self.epsilon)
        self.evidence.iterative.end_rounds()
        self._judge(labels, reached, drawn_counts, classes_complete=prior is not None, named_groups=named_groups)
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
            novelty=self.novelty,
        )
        return self

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The settings of the geometry with a positive weight, one entry per setting."""
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

    def _mean_shares(self, logits: np.ndarray, labels: Labels) -> tuple[np.ndarray, int]:
        """Mean class probabilities of the unlabelled rows that some source reaches, and the number of these rows."""
        left = labels.unlabeled
        reached = left[logits.min(axis=1)[left] > -np.inf]
        total = np.zeros(logits.shape[1])
        for block in row_blocks(len(reached), rows_per_block(logits.shape[1], BLOCK_ENTRIES)):
            total += softmax(tempered(logits[reached[block]], self.temperature), axis=1).sum(axis=0)
        return total / max(len(reached), 1), len(reached)

    def _infer_shares(
        self, logits: np.ndarray, labels: Labels, counts: np.ndarray, drawn_counts: np.ndarray
    ) -> np.ndarray:
        """The classes' shares of the unlabelled rows.

        If labels were chosen and few were drawn at random, the shares inferred from all labels are averaged with the
        mean probabilities of the rows.
        """
        held_out = self.evidence.held_out
        mean, n_reached = self._mean_shares(logits, labels)
        enough = held_out.enough_drawn or n_reached == 0 or np.array_equal(counts, drawn_counts)
        used = held_out.drawn if enough else np.ones(len(held_out), dtype=bool)
        n_left = len(labels.unlabeled)
        told = counts_without_chosen(drawn_counts, counts - drawn_counts, n_left) if enough else counts
        shown = softmax(tempered(self.evidence.held_out_log_proba[used], self.temperature), axis=1)
        inferred = infer_shares(mean, n_reached, shown, held_out.codes[used], told, held_out.worth)
        return inferred if enough else (inferred + mean) / 2.0

    def _measure_shift(self, X: Any, codes: np.ndarray, shares: np.ndarray) -> None:
        """Measure how the labelled rows differ from the others, and whether shares or new classes explain it."""
        if not self.config.has_features or len(shares) == 1 or self.geometry is None:
            return
        scaled, labeled = self.geometry.scaled(X), codes >= 0
        self.shift = measure_shift(scaled, codes, np.ones(len(codes)), self.config.seed)
        if self.shift is None or not self.shift.found:
            return
        rows_per_label = shares / np.maximum(np.bincount(codes[labeled], minlength=len(shares)), 1)
        explanations = [np.where(labeled, rows_per_label[codes], 1.0)]
        if self.novelty.share > 0:
            explanations.append(np.where(labeled | (self._known >= 0.5), 1.0, 0.0))
        for weights in explanations:
            left = measure_shift(scaled, codes, weights, self.config.seed)
            if left is None or not left.found:
                self.shift = replace(self.shift, explained=True)
                return
        self.novelty, self._known = replace(self.novelty, share=0.0, low=0.0), np.ones(len(codes))

    def _judge(
        self,
        labels: Labels,
        reached: np.ndarray,
        drawn_counts: np.ndarray,
        *,
        classes_complete: bool,
        named_groups: bool,
    ) -> None:
        """Estimate the error and calibrate the confidence, from held-out labels that were drawn at random."""
        held_out, left = self.evidence.held_out, labels.unlabeled
        drawn = held_out.drawn
        logs = self._with_plan(self.evidence.cross_fitted_log_proba)
        shown = softmax(logs, axis=1)
        right, best = hits(logs, held_out.codes), shown.max(axis=1, initial=0.0)
        held_out_counts = np.bincount(held_out.codes[drawn], minlength=len(self.prior))
        rows_per_label = (self.prior / np.maximum(held_out_counts, 1))[held_out.codes][drawn]
        error = weighted_error(right[drawn], rows_per_label) if self.judged_apart else float("nan")
        error = without_chosen(error, len(left), int((~drawn).sum()), float((1.0 - right)[~drawn].sum()))
        n_once = 0 if classes_complete else int(np.count_nonzero((drawn_counts == 1) & (held_out.counts == 1)))
        sure, best_class = self.rounds.distributions.max(axis=1), self.rounds.distributions.argmax(axis=1)
        design = self._design_effect(1.0 - right, drawn)
        self.held_out_probabilities = softmax(self._with_plan(self.evidence.held_out_log_proba), axis=1)
        grouped = held_out.groups is not None
        shifted = self.shift is not None and self.shift.found and not named_groups
        wrong_labels = NONE_WRONG
        if not (grouped or shifted):  # hard rows outside of the labelled groups would look like wrong labels
            wrong_labels = find_wrong_labels(self.held_out_probabilities[drawn], held_out.codes[drawn])
        self.error_evidence = ErrorEvidence(
            held_out=error,
            doubt=float(1.0 - sure[left].mean()) if len(left) else 0.0,
            unseen=max(unseen_share(n_once, int(drawn_counts.sum())), 0.0 if classes_complete else self.novelty.share),
            n_labels=effective_number(rows_per_label) / design + n_once,
            n_classes=len(self.prior),
            n_rows=len(left),
            n_chosen=float((held_out.counts - drawn_counts).sum()),
            grouped=grouped,
            shifted=shifted,
            explained=self.novelty.share > 0 or (self.shift is not None and self.shift.explained),
            wrong_share=wrong_labels.share,
        )
        self.error = estimate_error(self.error_evidence, wrong_labels=wrong_labels)
        self.calibration = Calibration()
        if drawn.any():
            unreached = 1.0 - float(self.evidence.iterative.held_out_reached[drawn].mean())
            self.calibration = replace(
                calibrate(best[drawn], right[drawn], rows_per_label),
                knows_unreached=unreached > KNOWN_UNREACHED * float(np.mean(~reached[left])) if len(left) else False,
            )
            if len(left):
                rows = sure[left], best_class[left], reached[left], self._known[left]
                self.calibration = shift_to_error(
                    self.calibration, lambda line: self._confidence(*rows, line), self.error.expected
                )
        self.confidence = self._confidence(sure, best_class, reached, self._known, self.calibration)
        self.confidence[labels.labeled] = 1.0
        if len(left):  # confidence has bounds, so its mean may not reach what was expected
            self.error = replace(self.error, expected=float(1.0 - self.confidence[left].mean()))
        known = np.ones(int(drawn.sum()))
        self.judged = JudgedLabels(
            rows=held_out.rows[drawn],
            codes=held_out.codes[drawn],
            distributions=shown[drawn],
            confidence=self._confidence(best[drawn], shown[drawn].argmax(axis=1), known > 0, known, self.calibration),
            weights=rows_per_label,
            worth=min(1.0 / design, 1.0),
        )

    def _measure_novelty(
        self, labels: Labels, shares: np.ndarray, codes: np.ndarray, weights: np.ndarray, drawn: np.ndarray
    ) -> None:
        """Measure which rows receive less label mass than held-out labels.

        With few random labels per class, some classes have one by luck. Their rows get less mass than held-out labels,
        which are of classes with two or more, and are not new. A random label misses just its own mass and is reached
        as a random row is, so new classes must also show in a comparison with all random labels.
        """
        source, held_out = self.evidence.iterative, self.evidence.held_out
        self.row_novelty, self._known = np.zeros(len(codes)), np.ones(len(codes))
        if isinstance(source, DiffusionSource) and held_out.drawn.any():
            of_label = held_out.codes[held_out.drawn]
            rows_per_label = shares[of_label] / np.bincount(of_label, minlength=len(shares))[of_label]
            reach, left = source.log_reach, labels.unlabeled
            self.novelty = Novelty.of(source.held_out_log_reach[held_out.drawn], rows_per_label, reach[left])
            if held_out.few_per_class and self.novelty.share > 0:
                some = drawn[:: -(-len(drawn) // MAX_BESIDE)]
                beside = Novelty.of(source.log_reach_of_others(codes, weights, some), np.ones(len(some)), reach[left])
                self.novelty = min(self.novelty, beside, key=lambda found: found.share)
            self.row_novelty = self.novelty(reach)
            self.row_novelty[labels.labeled] = 0.0
            self._known = 1.0 - self.novelty.probability(reach)

    def _design_effect(self, wrong: np.ndarray, drawn: np.ndarray) -> float:
        """Number of held-out labels worth one independent label, from the correlation of errors within a group."""
        if self.evidence.held_out.groups is None:
            return 1.0
        groups = self.evidence.held_out.groups[self.evidence.held_out.rows[drawn]]
        return design_effect(groups, intraclass_correlation(wrong[drawn], groups))

    def _confidence(
        self,
        sure: np.ndarray,
        best_class: np.ndarray,
        reached: np.ndarray,
        known: np.ndarray,
        calibration: Calibration,
    ) -> np.ndarray:
        """Confidence of the best class of rows that belong to a labelled class with the probability `known`."""
        unseen = self.error_evidence.unseen
        return known * best_class_confidence(sure, best_class, reached, calibration, self.prior, unseen)

    def _with_plan(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Log-probabilities of held-out labels with the class potentials of the first plan added."""
        logs = tempered(log_probabilities, self.temperature)
        return logs if self.rounds.plan is None else logs + np.maximum(self.rounds.plan.h, MIN_POTENTIAL)
