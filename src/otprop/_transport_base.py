"""Base of `OTP` and `PaperOTP`: reading the input, progress, cancelling, and the attributes that both set."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from threading import Event
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._errors import warn
from otprop._labels import Labels, class_balanced_weights, take_rows
from otprop._progress import FitCancelledError, ProgressCallback, part_of
from otprop._validation import InputError
from otprop.geometry.pairwise import check_cost_matrix, check_values
from otprop.propagation.class_level import ClassLevelFit
from otprop.propagation.rounds import Round
from otprop.propagation.row_level import RowLevelFit

logger = logging.getLogger("otprop")

_TRANSIENT = ("_on_progress", "_cancel", "_kept_geometry", "_rows", "_typicality")  # not part of a pickle


class TransportPropagator(Propagator):
    """Base of the estimators that label rows in rounds of optimal transport."""

    cost: Any
    tol: float
    callback: Callable[[Round], Any] | None
    verbose: int | bool

    def pseudo_labels(self, X: Any = None) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, labels and weights, given and propagated, for any learner that takes ``sample_weight``.

        The weight of a row is its confidence, or its certainty if the model has no confidence, divided by the number of
        rows of its class, so that no class outweighs the others. Weights are scaled to a mean of 1. Rows that stayed
        unlabelled are skipped.

        Parameters
        ----------
        X : array-like with one row per row of the fit, or None
            The rows in the form that the learner takes, such as the images behind the features of the fit. None: the
            rows of the fit, which copies and saved models do not keep.

        Returns
        -------
        X : the labelled rows of X
        y : ndarray of shape (n_labelled,)
        weight : ndarray of shape (n_labelled,)

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from otprop import OTP
        >>> X, y = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]), [0, -1, -1, 1, -1, -1]
        >>> rows, labels, weight = OTP().fit(X, y).pseudo_labels()
        >>> LogisticRegression(C=100).fit(rows, labels, sample_weight=weight).predict([[0.3], [0.9]])
        array([0, 1])
        """
        check_is_fitted(self)
        if X is None:
            X = getattr(self, "_rows", None)
            if X is None:
                raise RuntimeError("pseudo_labels() needs the rows, which copies and saved models do not keep: pass X.")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(self.round_):
            raise InputError(f"X has {n_rows} rows, but the model was fitted on {len(self.round_)}.")
        labelled, scores = self._labelled_rows()
        rows = np.flatnonzero(labelled)
        labels = self.transduction_[rows].astype(self.classes_.dtype)  # no marker among them
        weights = class_balanced_weights(np.searchsorted(self.classes_, labels), scores[rows])
        return take_rows(X, rows), labels, weights

    def _labelled_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows have a label, and how sure the label of each row is."""
        return self.round_ >= 0, self.certainty_

    def set_progress(self, callback: ProgressCallback | None) -> Self:
        """Set a callback for the progress of `fit`; it is not a parameter and not kept in copies.

        Parameters
        ----------
        callback : callable or None
            Called with the work done, the total work (0 if unknown) and the name of the current step.

        Returns
        -------
        self
        """
        self._on_progress = callback
        return self

    def cancel(self) -> bool:
        """Stop a `fit` that runs in another thread before its next step; that `fit` raises ``FitCancelledError``.

        Returns
        -------
        bool, whether a fit was running
        """
        running: Event | None = getattr(self, "_cancel", None)
        if running is not None:
            running.set()
        return running is not None

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """A context in which `cancel` has an effect."""
        self._cancel = Event()
        try:
            yield
        finally:
            del self._cancel

    def _step(self, done: float, total: float, step: str) -> None:
        """Called before every step of a fit."""
        if self._cancel.is_set():
            raise FitCancelledError(f"the fit was cancelled before the step {step!r}; the estimator is not fitted.")
        on_progress: ProgressCallback | None = getattr(self, "_on_progress", None)
        if on_progress is not None:
            on_progress(done, total, step)

    def _on_round(self, n_rows: int, first: float = 0.0) -> Callable[[Round], bool]:
        """A function to call after every round: log, report progress, run the callback.

        `first` is the share of the work that is done before the rounds.
        """
        level, done, progress = self._log_level, 0, part_of(self._step, first, 1.0)

        def on_round(round_: Round) -> bool:
            nonlocal done
            done += len(round_.rows)
            _log_round(round_, level)
            progress(done, n_rows, f"round {round_.number}")
            return bool(self.callback is not None and self.callback(round_))

        return on_round

    @property
    def _log_level(self) -> int:
        return logging.INFO if self.verbose else logging.DEBUG

    def _read_fit(self, X: Any, y: Any) -> tuple[Any, Labels]:
        """Validate X and y for a fit."""
        X, labels = self._read(X, y, **self._check_array_options())
        if self._cost_is("precomputed"):
            check_cost_matrix(X, len(X))
            _warn_if_asymmetric(X)
        _warn_if_minus_one_is_a_class(labels)
        return X, labels

    def _read_new(self, X: Any) -> Any:
        """Validate rows to predict."""
        check_is_fitted(self)
        X = self._read_rows(X, reset=False, **self._check_array_options())
        if self._cost_is("precomputed"):
            check_cost_matrix(X, self.n_features_in_)
        if self._cost_is("graph"):
            check_values(X, "affinity")
        return X

    def _cost_is(self, *names: str) -> bool:
        return isinstance(self.cost, str) and self.cost in names

    def _check_array_options(self) -> dict[str, Any]:
        """check_array options for X; a matrix between rows is checked elsewhere, with better messages."""
        if self._cost_is("precomputed", "graph"):
            return {"accept_sparse": "csr" if self._cost_is("graph") else False, "ensure_all_finite": False}
        return {"accept_sparse": "csr"}

    def _set_results(self, fit: ClassLevelFit | RowLevelFit, labels: Labels, codes: np.ndarray) -> None:
        """Set the attributes that both kinds of fit have."""
        rounds = fit.rounds
        self.epsilon_, self.rounds_, self.n_iter_ = fit.epsilon, rounds.records, max(1, len(rounds.records))
        self.certainty_, self.round_ = rounds.certainty, rounds.round
        self._predictor: Any = fit.predictor
        self._set_labels(labels, codes, rounds.distributions)
        self._warn_if_not_converged()

    def _warn_if_not_converged(self) -> None:
        missed = [round_ for round_ in self.rounds_ if not round_.converged]
        if missed:
            worst = max(max(round_.source_error, round_.target_error) for round_ in missed)
            warn(
                f"The transport plan did not reach tol={self.tol:g} in {len(missed)} of {len(self.rounds_)} rounds "
                f"(largest error {worst:.1e}). Labels were assigned anyway. Raise epsilon (used: "
                f"{self.epsilon_:.3g}), max_iter or tol.",
                ConvergenceWarning,
            )

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in _TRANSIENT}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._cost_is("precomputed")
        tags.input_tags.pairwise = self._cost_is("precomputed", "graph")
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")


def _log_round(round_: Round, level: int) -> None:
    logger.log(
        level,
        "round %d: %d of %d rows labelled, of certainty %.4f and more, %d iterations to error %.1e in %.3f s",
        round_.number,
        len(round_.rows),
        round_.n_unlabeled,
        round_.threshold,
        round_.iterations,
        round_.source_error,
        round_.seconds,
    )


def _warn_if_asymmetric(matrix: np.ndarray) -> None:
    for start in range(0, len(matrix), 256):  # in blocks, since the matrix may fill the memory
        if not np.allclose(matrix[start : start + 256], matrix[:, start : start + 256].T, rtol=1e-5):
            warn(
                "X is not symmetric: row i, column j is the cost from row i to row j. If only a half of the matrix is "
                "filled, add its transpose."
            )
            return


def _warn_if_minus_one_is_a_class(labels: Labels) -> None:
    """Warn if labels are -1 and 1: a common way to write two classes, but -1 means unlabelled here."""
    marker = labels.marker
    is_minus_one = isinstance(marker, Real) and marker == -1  # NA is neither equal nor unequal to anything
    if labels.classes.tolist() == [1] and len(labels.unlabeled) and is_minus_one:
        warn(
            "y holds -1 and 1 only. -1 marks an unlabelled row here, so every row gets the class 1. If both are "
            "classes, name another marker with the parameter `unlabeled`."
        )
