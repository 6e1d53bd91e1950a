"""The estimator PaperOTP: Algorithm 1 of the paper as printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from otprop import _parameters
from otprop._labels import row_weights
from otprop._saving import saved_as
from otprop._transport_base import TransportPropagator
from otprop._validation import forget_fit
from otprop.propagation.rounds import Round
from otprop.propagation.row_level import RowLevelFit


@saved_as("paper_otp", replaces={"callback": None, "verbose": 0})
class PaperOTP(TransportPropagator):
    """Algorithm 1 of El Hamri, Bennani and Falih, "Label Propagation Through Optimal Transport", IJCNN 2021.

    Every labelled row ships the same mass to the unlabelled rows, over the cost between rows (Eq. 8), with entropic
    regularisation (Eq. 9). Rows whose class is certain (Eq. 12) join the labelled rows of the next round, until every
    row has a label. Every plan is solved to its tolerance. :class:`OTP` is more accurate and needs no tuning.

    Parameters
    ----------
    epsilon : "auto" or float, default="auto"
        The entropic regularisation (Eq. 9), in the units of the cost. "auto": a tenth of the median cost from an
        unlabelled row to its nearest labelled one.
    alpha : float, default=0.9
        Certainty above which a row is labelled in a round. When no row exceeds it, the most certain ones are
        labelled (Eq. 15).
    cost : str or callable, default="sqeuclidean"
        The cost of moving a label from one row to another: "sqeuclidean", any other metric of scikit-learn's
        ``pairwise_distances``, a callable of two rows, or "precomputed" if X is the matrix of costs.
    max_rounds : int or None, default=None
        The last of these rounds labels all remaining rows. None: no limit.
    min_round_share : float, default=0.0
        At least this share of the rows still unlabelled gets a label in every round, certain or not.
    tol : float, default=1e-6
        Tolerance for the L1 error of each marginal of the plan, for a total mass of one.
    max_iter : int, default=20000
        Iterations of the solver per round.
    unlabeled : default="auto"
        The value that marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. A true result stops after that round: rows still
        unlabelled keep the marker in ``transduction_``, their last distribution and certainty, and -1 in ``round_``.
    verbose : int, default=0
        Above 0, the rounds are logged at level INFO of the logger "otprop", else at DEBUG.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row, or the marker if a callback stopped the fit.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        The class probabilities with which each row was labelled.
    certainty_ : ndarray of shape (n_rows,)
        Eq. 12, from 0 (all classes equally probable) to 1 (one class); 1 for the given labels.
    round_ : ndarray of int of shape (n_rows,)
        The round in which each row was labelled; 0 if the label was given.
    rounds_ : list of Round
        A record per round: rows, threshold, solver iterations, marginal errors, gaps, seconds.
    epsilon_ : float
        The epsilon used.
    n_iter_ : int
        Number of rounds, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    See Also
    --------
    OTP : the default of this package

    Notes
    -----
    In ``predict`` a new row goes through the rounds as an additional unlabelled row without mass. It takes its class
    from the first round whose threshold it passes, or from the round in which it was most certain. If there are very
    many rounds, only some of the later ones are stored, so rows labelled in between may differ from ``transduction_``.

    Examples
    --------
    >>> from otprop import PaperOTP
    >>> model = PaperOTP(epsilon=0.05).fit([[0.0], [0.2], [1.0], [1.2]], ["left", None, "right", None])
    >>> model.transduction_
    array(['left', 'left', 'right', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        epsilon: float | str = "auto",
        alpha: float = 0.9,
        *,
        cost: str | Callable[[np.ndarray, np.ndarray], float] = "sqeuclidean",
        max_rounds: int | None = None,
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        unlabeled: Any = "auto",
        callback: Callable[[Round], Any] | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.cost = cost
        self.max_rounds = max_rounds
        self.min_round_share = min_round_share
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Label every row of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs between all rows, of shape (n_rows, n_rows).
        y : array-like of shape (n_rows,)
            Labels of any one type, with a marker where a row is unlabelled.
        sample_weight : array-like of shape (n_rows,) or None
            Mass of the labelled rows, up to a common factor; weights of the other rows are ignored.

        Returns
        -------
        self
        """
        forget_fit(self, ("_predictor",))
        self.check_parameters()
        config = _parameters.row_level_config(self.get_params(deep=False))
        X, labels = self._read_fit(X, y)
        weights = row_weights(sample_weight, labels)
        with self._cancellable():
            fit = RowLevelFit(config, self._step).fit(X, labels, weights, self._on_round(len(labels.unlabeled)))
            self._set_results(fit, labels, fit.rounds.codes)
        self._rows = X
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; see the notes of the class for how they are computed.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs to the training rows, of shape (n_rows, n_training_rows).

        Returns
        -------
        ndarray of shape (n_rows, n_classes), columns in the order of ``classes_``
        """
        X = self._read_new(X)
        found: np.ndarray = self._predictor.predict(X)
        return found

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used."""
        _parameters.check_row_level(self.get_params(deep=False))
