"""Predictions of `OTP`, and what follows from them: objectives, errors by class, guarantees, labels needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from otprop._errors import warn
from otprop._labels import UNLABELED, Labels
from otprop._transport_base import TransportPropagator
from otprop._validation import InputError, ParameterError, check_number
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.loop.labels_needed import LabelsNeeded, estimate_labels_needed
from otprop.propagation.calibration import Coverage, coverage_table
from otprop.propagation.class_errors import ClassErrors, JudgedLabels, estimate_class_errors
from otprop.propagation.class_level import ClassLevelFit
from otprop.propagation.class_rounds import BLOCK_ENTRIES
from otprop.propagation.decisions import (
    MAX_ENTRIES,
    balanced_costs,
    class_probabilities,
    cost_matrix,
    decide,
    expected_counts,
    expected_f1,
)
from otprop.propagation.error import ErrorEstimate
from otprop.propagation.guarantees import LabelSets, label_sets, labels_for_risk, set_thresholds, share_for_risk


class DecidingPropagator(TransportPropagator):
    """An estimator with calibrated class probabilities, from which labels follow by an objective."""

    objective: str | Mapping[tuple[Any, Any], float]
    abstain_below: float | None
    confidence_: np.ndarray
    error_: ErrorEstimate
    expected_error_: float
    error_range_: tuple[float, float]
    _best_confidence: np.ndarray  # of the most probable class of each row
    _costs: np.ndarray | None  # of each label (column) for each true class; None for "accuracy"

    def decide(self, probabilities: np.ndarray, confidence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The classes of rows by ``objective``, and how probable each is.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_classes)
        confidence : ndarray of shape (n_rows,), of the most probable class of each

        Returns
        -------
        codes : ndarray of int of shape (n_rows,), places in ``classes_``
        confidence : ndarray of shape (n_rows,), of these classes
        """
        costs = getattr(self, "_costs", None)
        if costs is None:
            return probabilities.argmax(axis=1), confidence
        codes, found = np.empty(len(confidence), dtype=np.intp), np.empty(len(confidence))
        for block in row_blocks(len(confidence), rows_per_block(len(costs), BLOCK_ENTRIES)):
            calibrated = class_probabilities(probabilities[block], confidence[block])
            codes[block] = decide(calibrated, costs)
            found[block] = calibrated[np.arange(len(calibrated)), codes[block]]
        return codes, found

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: the most probable one, or by ``objective`` that of least expected cost.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        ndarray of shape (n_rows,), with labels from ``classes_``
        """
        codes = self.predict_all(X)[0]
        return np.asarray(self.classes_[codes])

    def predict_all(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Classes, class probabilities and confidence of new rows in one pass.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        codes : ndarray of int of shape (n_rows,), places in ``classes_``, by ``objective``
        probabilities : ndarray of shape (n_rows, n_classes)
        confidence : ndarray of shape (n_rows,), probability that the class in `codes` is right
        """
        X = self._read_new(X)
        probabilities, best = self._predictor.predict(X)
        codes, confidence = self.decide(probabilities, best)
        return codes, probabilities, confidence

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; see the notes of the class for how they are computed.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs to the training rows, with ``cost="graph"`` the affinities, of
            shape (n_rows, n_training_rows).

        Returns
        -------
        ndarray of shape (n_rows, n_classes), columns in the order of ``classes_``
        """
        return self.predict_with_confidence(X)[0]

    def predict_confidence(self, X: Any) -> np.ndarray:
        """Probability that ``predict`` is right, for new rows.

        It uses the calibration of ``confidence_`` and is valid for rows from the same distribution as the training
        rows. ``predict`` labels every row: ``abstain_below`` does not apply to it.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.predict_with_confidence(X)[1]

    def predict_with_confidence(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities and confidence of new rows in one pass.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
        confidence : ndarray of shape (n_rows,)
        """
        return self.predict_all(X)[1:]

    def predict_novelty(self, X: Any) -> np.ndarray:
        """How different new rows are from all labelled classes, like ``novelty_`` for the rows of the fit.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        ndarray of shape (n_rows,), 0 to 1
        """
        X = self._read_new(X)
        return self._predictor.predict_novelty(X)

    def freeze(self, n_rows: float, n_jobs: int | None = None) -> Self:
        """Fix how new rows are predicted, so that the result of a row does not depend on the other rows.

        Otherwise, a few new rows are compared with all training rows, and many new rows only with the nearest cells of
        training rows, which finds nearly the same neighbours. Your own classifiers in ``evidence`` may still round
        differently.

        Parameters
        ----------
        n_rows : float
            Expected total number of new rows: an index is worth building for a million rows, not for ten.
        n_jobs : int or None
            Threads for predicting. None or -1: all processors.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._predictor.freeze(n_rows, n_jobs)
        return self

    def coverage(self) -> list[Coverage]:
        """Expected error if only the most confident rows are labelled, for shares of the rows from all to a tenth.

        It includes only rows labelled by the fit, not given labels or rows left unlabelled by a callback.

        Returns
        -------
        list of Coverage
            Each with ``share``, ``n_rows``, ``confidence`` (the value of ``abstain_below`` for this share),
            ``expected_error``, and ``low`` and ``high``, the 90 % interval of the real error. For all rows they are
            ``expected_error_`` and ``error_range_``.
        """
        check_is_fitted(self)
        return coverage_table(self.confidence_[self.round_ > 0], self.error_)

    def class_errors(self) -> list[ClassErrors]:
        """Expected precision and recall of each class among the unlabelled rows, with 90 % intervals.

        Rows that were left unlabelled (``abstain_below``) count as not found. The intervals hold if the labels were
        drawn at random, or the others are marked with ``fit(chosen=...)``. Classes with few labels have wide intervals.

        Returns
        -------
        list of ClassErrors, in the order of ``classes_``
            Each with ``label``, ``n_expected`` (rows expected to be of the class), ``n_labelled``, ``precision``,
            ``precision_range``, ``recall``, ``recall_range`` and ``n_held_out``.
        """
        judged = self._judged_labels("class_errors")
        rows, labelled = np.flatnonzero(self.round_ != 0), self._labelled_rows()[0]
        counts = np.zeros((3, len(self.classes_)))
        for block in row_blocks(len(rows), rows_per_block(len(self.classes_), BLOCK_ENTRIES)):
            some = rows[block]
            best = self.label_distributions_[some], self._best_confidence[some]
            codes = np.where(labelled[some], self.decide(*best)[0], UNLABELED)
            counts += expected_counts(class_probabilities(*best), codes)
        found, sure = self.decide(judged.distributions, judged.confidence)
        if self.abstain_below is not None:
            found = np.where(sure < self.abstain_below, UNLABELED, found)
        evidence = self.error_.evidence
        if evidence is None:  # votes alone: no label judges them
            return []
        return estimate_class_errors(self.classes_, counts, judged, found, evidence)

    def label_sets(self, coverage: float = 0.9, X: Any = None) -> LabelSets:
        """A set of classes per row that contains the true class with probability `coverage`.

        Conformal sets: a class is in the set of a row if its calibrated probability is at least that of all but
        ``1 - coverage`` of the held-out labels. A class with enough held-out labels (9 for 0.9) has its own threshold,
        and the coverage holds for the rows of that class; the other classes share a threshold. This assumes that the
        labels were drawn at random, or that the others are marked with ``fit(chosen=...)``, and that no row belongs to
        a class without a label. With too few labels, every class is in every set.

        Parameters
        ----------
        coverage : float between 0 and 1
        X : as in ``predict_proba``, or None for the rows of the fit, where given labels are sets of one class

        Returns
        -------
        LabelSets
        """
        check_number("coverage", coverage, above=0, below=1)
        judged = self._judged_labels("label_sets")
        shown = class_probabilities(judged.distributions, judged.confidence)
        thresholds, by_class = set_thresholds(judged, shown, coverage)
        if X is None:
            probabilities, confidence = self.label_distributions_, self._best_confidence
        else:
            probabilities, confidence = self._predictor.predict(self._read_new(X))
        members = label_sets(class_probabilities(probabilities, confidence), thresholds)
        if X is None:
            given = self.round_ == 0
            members[given] = probabilities[given] == 1.0
        return LabelSets(members, coverage, by_class, thresholds, len(judged.codes))

    def confidence_for_risk(self, risk: float, level: float = 0.9) -> float:
        """The lowest confidence above which the error is at most `risk`, with probability `level`.

        Held-out labels with that confidence bound the error (Clopper-Pearson). This assumes that the labels were drawn
        at random, or that the others are marked with ``fit(chosen=...)``. It needs many labels: for an error of 2 %,
        at least 114 that are all right.

        Parameters
        ----------
        risk : float between 0 and 1
        level : float between 0 and 1

        Returns
        -------
        float, the value for ``abstain_below``

        Raises
        ------
        ValueError
            If there are too few labels, or too many of the most confident ones are wrong.
        """
        check_number("risk", risk, above=0, below=1)
        check_number("level", level, above=0, below=1)
        judged = self._judged_labels("confidence_for_risk")
        found, sure = self.decide(judged.distributions, judged.confidence)
        confidence = np.sort(self.confidence_[self.round_ > 0])[::-1]
        if len(confidence) == 0:
            raise InputError("every row has a given label: there is no error to bound.")
        right = (found == judged.codes).astype(np.float64)
        share = share_for_risk(sure, right, judged, len(confidence), risk, level)
        n_rows = 0 if share is None else int(share * len(confidence))
        if n_rows == 0:
            n_labels, needed = len(judged.codes), labels_for_risk(max(risk, 1e-9), level)  # a smaller risk takes more
            why = (
                "it takes" if n_labels * judged.worth < needed else "too many of the most confident are wrong; it takes"
            )
            raise InputError(
                f"an error of at most {risk:g} cannot be promised with a probability of {level:g} from {n_labels} "
                f"held-out labels drawn at random: {why} at least {needed} that are all right. Label more random rows, "
                "or allow a larger risk."
            )
        return float(confidence[n_rows - 1])

    def labels_needed(self, error: float, earlier: Sequence[tuple[int, float]] = ()) -> LabelsNeeded:
        """Estimate how many more labels an error on the unlabelled rows needs, with a range.

        It uses ``expected_error_`` with its range and how errors fell on other tables when rows of
        `suggest` were labelled. One fit cannot show how fast the error falls on this table; earlier fits
        with fewer labels do.

        Parameters
        ----------
        error : float between 0 and 1
        earlier : sequence of (int, float)
            The number of labels and the ``expected_error_`` of earlier fits of the same rows.

        Returns
        -------
        LabelsNeeded
            With ``value`` and the 80 % interval, ``low`` and ``high``, each at most the number of unlabelled rows.
            ``is_known`` is False if its ends are more than ten times apart: it cannot be estimated yet.

        Examples
        --------
        >>> import numpy as np
        >>> from otprop import OTP
        >>> X = np.vstack([np.random.default_rng(0).normal(c, 1, size=(60, 2)) for c in (0, 2)])
        >>> y = np.full(120, -1)
        >>> y[::10] = np.arange(12) // 6
        >>> needed = OTP().fit(X, y).labels_needed(0.02)
        >>> 0 <= needed.low <= needed.value <= needed.high <= 108
        True
        """
        check_is_fitted(self)
        check_number("error", error, above=0, below=1)
        _check_earlier(earlier)
        n_labels = int(np.count_nonzero(self.round_ == 0))
        estimate = self.error_
        return estimate_labels_needed(
            error, estimate.expected, estimate.concentration, n_labels, len(self.round_) - n_labels, earlier
        )

    def _apply_objective(self, fit: ClassLevelFit, labels: Labels) -> np.ndarray:
        """The class numbers of the rows by `objective`; sets the confidence and the expected error of these labels."""
        self.classes_, codes = labels.classes, fit.rounds.codes
        self._costs = self._costs_of(labels, fit.rounds.distributions, fit.confidence, fit.prior)
        if self._costs is not None:
            _warn_if_hardly_labelled(self.objective, labels)
            chosen, confidence = self.decide(fit.rounds.distributions, fit.confidence)
            left = labels.codes == UNLABELED
            codes = np.where(left & (codes != UNLABELED), chosen, codes)
            self.confidence_ = np.where(left, confidence, 1.0)
            if left.any():
                self.error_ = replace(fit.error, expected=float(1.0 - confidence[left].mean()))
                self.expected_error_, self.error_range_ = self.error_.expected, self.error_.interval
        return codes

    def _costs_of(
        self, labels: Labels, distributions: np.ndarray, confidence: np.ndarray, shares: np.ndarray
    ) -> np.ndarray | None:
        """The cost of each label for each true class; "balanced" uses an even sample of the unlabelled rows."""
        if _is_accuracy(self.objective):
            return None
        if not isinstance(self.objective, str):
            return cost_matrix(self.objective, labels.classes)
        n_rows = max(MAX_ENTRIES // len(labels.classes), 1)
        some = labels.unlabeled[:: max(-(-len(labels.unlabeled) // n_rows), 1)]
        return balanced_costs(class_probabilities(distributions[some], confidence[some]), shares)

    def _expected_cost(self) -> float:
        """Expected mean cost of the new labels by `objective`."""
        if _is_accuracy(self.objective) or self._costs is None:
            return self.expected_error_
        if isinstance(self.objective, str):
            if self.error_.evidence is None:  # votes alone
                best = self.decide(self.label_distributions_, self._best_confidence)[0]
                codes = np.where(self._labelled_rows()[0], best, UNLABELED)
                return 1.0 - expected_f1(self.label_distributions_, codes)
            scores = [one.f1 for one in self.class_errors() if not np.isnan(one.f1)]
            return max(float(1.0 - np.mean(scores)), 0.0) if scores else 0.0
        rows = np.flatnonzero(self._labelled_rows()[0] & (self.round_ != 0))
        total = 0.0
        for block in row_blocks(len(rows), rows_per_block(len(self.classes_), BLOCK_ENTRIES)):
            of_rows = self.label_distributions_[rows[block]], self._best_confidence[rows[block]]
            codes = self.decide(*of_rows)[0]
            total += float((class_probabilities(*of_rows) * self._costs[:, codes].T).sum())
        return total / max(len(rows), 1)

    def _judged_labels(self, method: str) -> JudgedLabels:
        """The held-out labels drawn at random."""
        check_is_fitted(self)
        judged: JudgedLabels | None = getattr(self, "_judged", None)
        if judged is None:
            raise RuntimeError(f"{method}() needs a model saved by version 0.3 or later: fit again.")
        return judged

    def _labelled_rows(self) -> tuple[np.ndarray, np.ndarray]:
        labelled = self.round_ >= 0
        if self.abstain_below is not None:
            labelled &= (self.confidence_ >= self.abstain_below) | (self.round_ == 0)
        return labelled, self.confidence_


def _check_earlier(earlier: Any) -> None:
    """Refuse what is not pairs of a number of labels and an expected error."""
    accepted = "must be pairs (number of labels, expected error) of earlier fits, as in [(20, 0.15), (40, 0.11)]"
    if not isinstance(earlier, Sequence) or isinstance(earlier, str):
        raise ParameterError("earlier", f"{accepted}; got {earlier!r}.")
    for pair in earlier:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ParameterError("earlier", f"{accepted}; got the entry {pair!r}.")
        check_number("earlier: the number of labels", pair[0], least=0)
        check_number("earlier: the expected error", pair[1], least=0, most=1)


def _is_accuracy(objective: Any) -> bool:
    return isinstance(objective, str) and objective == "accuracy"


def _warn_if_hardly_labelled(objective: Any, labels: Labels) -> None:
    """Warn of classes that the objective raises and that one label alone shows."""
    counts = np.bincount(labels.codes[labels.labeled], minlength=len(labels.classes))
    named = {value for pair in objective for value in pair} if isinstance(objective, Mapping) else labels.classes
    once = [
        value for value, count in zip(labels.classes.tolist(), counts, strict=True) if count == 1 and value in named
    ]
    if once:
        more = f" and {len(once) - 5} more" if len(once) > 5 else ""
        warn(
            f"objective={objective!r} rests on one label for the class {', '.join(map(repr, once[:5]))}{more}: how "
            "probable it is of a row is hardly known. Label more rows of it."
        )
