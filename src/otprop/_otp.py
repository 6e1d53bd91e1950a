"""OTP, the estimator: parameters, validation and attributes around the rounds of the propagation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from otprop._base import Propagator
from otprop._checks import check_count, check_number
from otprop._labels import Labels
from otprop._progress import progress
from otprop._propagation import Propagation, Round, Snapshot
from otprop._replay import Given, Replay
from otprop.geometry.cost import RowCost, cost_summary
from otprop.geometry.identical import first_of_each
from otprop.geometry.pairs import Pairs, check_cost, check_cost_matrix, make_pairs

AUTO_EPSILON = 0.1  # times the median cost from an unlabelled row to its nearest labelled one
MAX_AUTO_ROWS = 2000  # how many rows decide on epsilon where none is unlabelled


class OTP(Propagator):
    """Optimal Transport Propagation: label the unlabelled rows of a table.

    Labels are transported from the labelled rows to the others by entropic optimal transport. Rows whose
    class is certain get their label and help with the rest in the next round, until every row has one. This
    is Algorithm 1 of El Hamri, Bennani and Falih, "Label Propagation Through Optimal Transport", IJCNN 2021,
    with every plan solved to its tolerance.

    Parameters
    ----------
    cost : str or callable, default="sqeuclidean"
        What it costs to carry a label from one row to another (Eq. 8): "sqeuclidean", any other metric of
        scikit-learn's ``pairwise_distances``, a callable of two rows, or "precomputed" for an X that is the
        matrix of costs itself.
    epsilon : "auto" or float, default="auto"
        Entropic regularisation (Eq. 9), in the units of the cost. Small values let only the nearest labelled
        rows speak. "auto" takes a tenth of the median cost from an unlabelled row to its nearest labelled one
        (rows that repeat a labelled one aside), or what double precision can just resolve beside the mean cost if
        that is more.
    alpha : float, default=0.9
        Certainty above which a row is labelled in a round. When no row exceeds it, the most certain ones are
        labelled (Eq. 15).
    max_rounds : int or None, default=None
        The last of these rounds labels all that is left. None: as many as it takes.
    min_round_share : float, default=0.0
        At least this share of the rows still unlabelled gets a label in every round, certain or not.
    tol : float, default=1e-6
        L1 error accepted in each marginal of the plan, of a total mass of one.
    max_iter : int, default=20000
        Iterations of the solver per round.
    unlabeled : default="auto"
        What marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. Returning something true stops after that round: rows
        still unlabelled then keep the marker in ``transduction_``, with the distribution and certainty they
        had last and -1 in ``round_``.
    verbose : int, default=0
        Show the rounds: as a progress bar where a terminal is attached, in the log "otprop" elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        The class probabilities with which each row was labelled.
    certainty_ : ndarray of shape (n_rows,)
        Eq. 12, from 0 (all classes alike) to 1 (one class); 1 for the given labels.
    round_ : ndarray of int of shape (n_rows,)
        The round in which each row was labelled; 0 where the label was given.
    rounds_ : list of Round
        A record per round: rows, threshold, solver iterations, marginal errors, gaps, seconds.
    epsilon_ : float
        The epsilon used.
    n_iter_ : int
        Number of rounds, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    Notes
    -----
    ``predict`` asks of a new row what the rounds would have said of it, had it been one more unlabelled row
    without mass: it goes through the rounds with the potentials of each, and takes its class from the first
    whose threshold it passes, or from the one in which it was most certain. The potentials of the last round
    alone would not do: they belong to the few rows that were left by then. Of runs with very many rounds only
    some of the later ones are kept, so that rows labelled in between may differ from ``transduction_``. A row
    identical to one with a given label is predicted to have that label, even if it was an unlabelled row that
    the balance of the masses gave another in ``transduction_``.

    ``sample_weight`` counts labelled rows: a weight of 2 is the same row twice. Rows labelled in a round join
    with weight 1.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop import OTP
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> model = OTP().fit(X, ["left", None, None, "right", None, None])
    >>> model.transduction_
    array(['left', 'left', 'left', 'right', 'right', 'right'], dtype='<U5')
    >>> model.predict([[0.3], [0.9]])
    array(['left', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        cost: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
        *,
        epsilon: float | str = "auto",
        alpha: float = 0.9,
        max_rounds: int | None = None,
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        unlabeled: Any = "auto",
        callback: Callable[[Round], Any] | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.cost = cost
        self.epsilon = epsilon
        self.alpha = alpha
        self.max_rounds = max_rounds
        self.min_round_share = min_round_share
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def paper(cls, epsilon: float | str = "auto", alpha: float = 0.9) -> Self:
        """Algorithm 1 as printed: squared Euclidean cost, uniform marginals, alpha with the rule of Eq. 15.

        Parameters
        ----------
        epsilon : float or "auto"
        alpha : float

        Returns
        -------
        OTP, not yet fitted
        """
        return cls(cost="sqeuclidean", epsilon=epsilon, alpha=alpha, max_rounds=None, min_round_share=0.0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Label every row of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs between all rows, of shape (n_rows, n_rows).
        y : array-like of shape (n_rows,)
            Labels of any one type, with a marker where a row is unlabelled.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the labelled rows; those of the others are not used.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("_replay", None)  # whatever happens now, the old model is no more
        X, labels = self._read(X, y, accept_sparse=False if self.cost == "precomputed" else "csr")
        if self.cost == "precomputed":
            check_cost_matrix(X, len(X))
        _warn_of_binary_labels(labels)
        weights = _row_weights(sample_weight, labels)
        pairs = make_pairs(X, self.cost)
        sources = labels.labeled[weights[labels.labeled] > 0]
        if isinstance(self.epsilon, str):
            row_cost = RowCost(pairs, labels.unlabeled, sources)
            epsilon = self._auto_epsilon(row_cost, X)
            row_cost.narrow(self._single_precision_limit(epsilon))
        else:
            epsilon = _in_units_of(pairs.scale, self.epsilon)
            limit = self._single_precision_limit(epsilon)
            row_cost = RowCost(pairs, labels.unlabeled, sources, float32_below=limit)
        run = Propagation(
            row_cost,
            labels.codes,
            weights,
            len(labels.classes),
            epsilon=epsilon,
            alpha=self.alpha,
            max_rounds=self.max_rounds,
            min_round_share=self.min_round_share,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        reported = epsilon * pairs.scale if isinstance(self.epsilon, str) else float(self.epsilon)
        self.rounds_ = self._run(run, len(labels.unlabeled), reported)
        self.epsilon_ = reported
        self.certainty_, self.round_ = run.certainty, run.round
        self.n_iter_ = max(1, len(self.rounds_))
        self._replay = self._make_replay(X, pairs, run, labels, sources)
        return self._set_labels(labels, run.codes, run.distributions)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; see the notes of the class for how they come about.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs to the training rows, of shape (n_rows, n_training_rows).

        Returns
        -------
        ndarray of shape (n_rows, n_classes), columns in the order of ``classes_``
        """
        check_is_fitted(self)
        sparse = False if self.cost == "precomputed" else "csr"
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        if self.cost == "precomputed":
            check_cost_matrix(X, self.n_features_in_)
        return self._replay.distributions(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.cost != "precomputed"
        tags.input_tags.pairwise = self.cost == "precomputed"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_replay")

    def _run(self, run: Propagation, n_rows: int, epsilon: float) -> list[Round]:
        rounds: list[Round] = []
        with progress(n_rows, self.verbose) as show:
            for round_ in run:
                round_ = replace(round_, epsilon=epsilon)
                rounds.append(round_)
                show(round_)
                if self.callback is not None and self.callback(round_):
                    break
        missed = [round_ for round_ in rounds if not round_.converged]
        if missed:
            worst = max(max(round_.source_error, round_.target_error) for round_ in missed)
            warnings.warn(
                f"The transport plan did not reach tol={self.tol:g} in {len(missed)} of {len(rounds)} rounds (largest "
                f"error {worst:.1e}). Labels were assigned all the same. Raise epsilon (used: {epsilon:.3g}), "
                f"max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return rounds

    def _single_precision_limit(self, epsilon: float) -> float:
        """Costs up to this may be rounded to float32: no logarithm of the plan moves by more than twice `tol`."""
        return 2 * self.tol * 2.0**24 * epsilon

    def _auto_epsilon(self, cost: RowCost, X: Any) -> float:
        """The automatic epsilon, in the units of `cost`."""
        if len(cost.targets):
            near, near_sources, mean = cost_summary(cost)
        else:  # nothing to label: distances between the given rows, each taken once
            rows = cost.sources[first_of_each(X[cost.sources])][:MAX_AUTO_ROWS]
            between = cost.pairs.columns(rows)(rows)
            mean = float(between.mean())
            np.fill_diagonal(between, np.inf)
            near = near_sources = between.min(axis=1)
        apart = near[np.isfinite(near) & (near > 0)]
        wanted = float(np.median(apart)) if len(apart) else mean  # all rows repeat a labelled one: the usual distance
        if wanted == 0:
            return 1.0  # all rows are the same row, and any epsilon gives the same plan
        usual = float(near[np.isfinite(near)].mean()) + float(near_sources[np.isfinite(near_sources)].mean())
        resolved = 2.0**-52 * usual / self.tol  # below it, rounding of the potentials alone would exceed tol
        return max(AUTO_EPSILON * wanted, resolved)

    def _make_replay(self, X: Any, pairs: Pairs, run: Propagation, labels: Labels, sources: np.ndarray) -> Replay:
        snapshots = run.snapshots
        if not snapshots:  # nothing was unlabelled: every given row has its say, by its weight
            f = run.epsilon * np.log(run.weights[sources])
            snapshots = [Snapshot(sources, labels.codes[sources], f, threshold=0.0)]
        given = Given(sources, labels.codes[sources], run.weights[sources])
        return Replay(X, pairs, snapshots, run.epsilon, given, len(labels.classes), self.cost == "precomputed")

    def _check_parameters(self) -> None:
        check_cost(self.cost)
        check_number("epsilon", self.epsilon, above=0, words=["auto"])
        check_number("alpha", self.alpha, least=0, most=1)
        check_number("min_round_share", self.min_round_share, least=0, most=1)
        check_number("tol", self.tol, above=0, most=1)
        check_count("max_iter", self.max_iter)
        if self.max_rounds is not None:
            check_count("max_rounds", self.max_rounds)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be None or a function of one round; got {self.callback!r}.")
        if not isinstance(self.verbose, (bool, int, np.bool_, np.integer)):
            raise TypeError(f"verbose must be a whole number or a boolean; got {self.verbose!r}.")


def _in_units_of(scale: float, epsilon: float) -> float:
    """`epsilon` over `scale`, kept within what a float can hold."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.clip(np.float64(epsilon) / scale, 1e-300, 1e300))


def _row_weights(sample_weight: Any, labels: Labels) -> np.ndarray:
    """A weight for every row: as given for the labelled ones, 1 for the others."""
    weights = np.ones(len(labels.codes))
    if sample_weight is None:
        return weights
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sample_weight must be numbers, one a row; got {sample_weight!r}.") from error
    if given.ndim == 0:
        given = np.full(len(weights), float(given))
    if given.shape != weights.shape:
        raise ValueError(f"sample_weight has shape {given.shape}, expected ({len(weights)},): one weight a row.")
    given = given[labels.labeled]
    if not given.any():
        raise ValueError("sample_weight is zero for every labelled row: at least one needs a weight above zero.")
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(
            "sample_weight must be finite and not negative; "
            f"got values from {given.min()} to {given.max()} on the labelled rows."
        )
    weights[labels.labeled] = given
    return weights


def _warn_of_binary_labels(labels: Labels) -> None:
    """Labels -1 and 1 are a usual way to write two classes, but -1 means unlabelled here."""
    if labels.classes.tolist() == [1] and len(labels.unlabeled) and labels.marker == -1:
        warnings.warn(
            "y holds -1 and 1 only. -1 marks an unlabelled row here, so every row gets the class 1. If both are "
            "classes, name another marker with the parameter `unlabeled`.",
            UserWarning,
            stacklevel=3,
        )
