"""The estimator OTP: parameters, validation and attributes around a class-level or row-level fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from threading import Event
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from otprop import _parameters
from otprop._base import Propagator
from otprop._labels import UNLABELED, Labels, row_weights
from otprop._progress import FitCancelledError, ProgressCallback
from otprop._saving import saved_as
from otprop._validation import ParameterError, check_count, check_number, forget_fit
from otprop._warnings import warn
from otprop.geometry.pairwise import check_cost_matrix, check_values
from otprop.loop.label_issues import find_label_issues, label_trust
from otprop.loop.labels_needed import LabelsNeeded, estimate_labels_needed
from otprop.loop.suggestions import Suggestion, suggest_rows
from otprop.propagation.calibration import Coverage, coverage_table
from otprop.propagation.class_level import ClassLevelFit
from otprop.propagation.class_predictor import ClassLevelPredictor
from otprop.propagation.config import ClassLevelConfig
from otprop.propagation.pseudo_labels import class_balanced_weights, take_rows
from otprop.propagation.rounds import Round
from otprop.propagation.row_level import RowLevelFit
from otprop.propagation.sources import geometry_key

logger = logging.getLogger("otprop")

_TRANSIENT = ("_on_progress", "_cancel", "_kept_geometry", "_rows", "_typicality")  # not part of a pickle


def _has_confidence(model: OTP) -> bool:
    if model.marginals == "balanced":
        raise AttributeError("marginals='balanced' has no confidence; use marginals='class'.")
    return True


@saved_as("otp", replaces={"callback": None, "verbose": 0}, nan=("settings_",))
class OTP(Propagator):
    """Optimal Transport Propagation: label the unlabelled rows of a table.

    The cost of giving a class to a row is a weighted sum over sources of evidence: the diffusion of the labels over
    the neighbour graph, and classifiers trained on the labelled rows. The weights are fitted on held-out labels.
    Optimal transport then assigns the rows to the classes, each class shipping about its share of the mass. Rows whose
    class is certain are labelled and join the evidence of the next round, until every row has a label. No parameter
    needs to be tuned.

    ``OTP.paper`` is Algorithm 1 of El Hamri, Bennani and Falih, "Label Propagation Through Optimal Transport", IJCNN
    2021: the same class with other parameters.

    Parameters
    ----------
    cost : str or callable, default="diffusion"
        The geometry. "diffusion": labels spread over the graph of nearest neighbours. "graph": the same over a graph
        of one's own, X being its sparse matrix of affinities. Or what it costs to carry a label from one row to
        another (Eq. 8): "sqeuclidean", any other metric of scikit-learn's ``pairwise_distances``, a callable of two
        rows, or "precomputed" for an X that is the matrix of costs itself.
    evidence : "auto", None, or list, default="auto"
        Classifiers beside the geometry: "forest" (extra trees), "linear" (logistic regression), "random_forest",
        "boosting" (boosted trees), "gaussian" (normal distributions fitted to labelled and unlabelled rows; this one
        and boosting are not for sparse X), or any scikit-learn classifier with ``predict_proba``, by itself or as a
        pair (name, classifier) whose parameters are then nested ones of `OTP`. It is cloned and trained on the
        labelled rows, as an array without column names, and their labels. "auto", where X has features: "forest", or
        from 30 labels a class on "random_forest", "linear", "boosting" from 15 labels on and "gaussian" up to 30 000
        rows, where classes and columns are not too many. None: no classifier.
    marginals : {"class", "balanced"}, default="class"
        Who ships: "class", each class as a whole; "balanced", each labelled row its own mass, as in the paper. The
        latter needs a cost between rows.
    marginal_strength : "auto" or float in [0, 1], default="auto"
        How far the classes' shares bind: from 0, not at all (a vote), to 1, exactly. "auto": up to 0.5, less with
        fewer labels.
    epsilon : "auto" or float, default="auto"
        With "diffusion" and "graph" the temperature: above 1 the class probabilities become flatter. "auto": 1, since
        the sources are calibrated. With a cost between rows, the entropic regularisation (Eq. 9) in the units of the
        cost; "auto" chooses it on held-out labels, or with ``marginals="balanced"`` takes a tenth of the median cost
        from an unlabelled row to its nearest labelled one.
    alpha : "auto" or float, default="auto"
        Certainty above which a row is labelled in a round. When no row exceeds it, the most certain ones are
        labelled (Eq. 15). "auto": rows whose class has a probability above 0.9, at least 15 % of those left; a
        certainty of 0.9 with "balanced".
    class_prior : None, "uniform", array or dict, default=None
        The classes' shares of all rows, in the order of ``classes_`` or by class. None: inferred from the labels and
        the rows together, since labels need not be a random sample.
    metric : str or callable, default="euclidean"
        Metric of the neighbour graph, with "diffusion": "euclidean", "cosine", "inner", "manhattan", or any other
        metric that scikit-learn's neighbour search takes.
    n_neighbors : "auto" or int, default="auto"
        Neighbours of each row in the graph. "auto": 10 and 20, weighted on held-out labels; 10 from 30 000 rows on.
    diffusion : "auto" or float below 1, default="auto"
        How far labels spread over the graph. "auto": 0.8 and 0.95, weighted in the same way.
    abstain_below : float or None, default=None
        Rows with less confidence than this stay unlabelled: the marker in ``transduction_``. ``expected_error_`` is
        that of all unlabelled rows, also of these; ``coverage()`` has that of the others.
    label_noise : None or "auto", default=None
        "auto": given labels that a first pass doubts (as in ``label_issues_``, with a probability of 0.05 and more)
        count less, by the probability that they are right, and a warning says how many. They stay as they are in
        ``transduction_``. It takes two fits. Not with "balanced".
    max_rounds : "auto", int or None, default="auto"
        The last of these rounds labels all that is left. None: as many as it takes. "auto": 20, or None with
        "balanced".
    min_round_share : float, default=0.0
        At least this share of the rows still unlabelled gets a label in every round, certain or not.
    tol : float, default=1e-6
        L1 error accepted in each marginal of the plan, of a total mass of one.
    max_iter : int, default=20000
        Iterations of the solver per round.
    unlabeled : default="auto"
        What marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    random_state : int, RandomState or None, default=0
        Seed of the forest and of the choice of held-out labels.
    n_jobs : int or None, default=None
        Threads for the neighbours, the diffusion and the forest. None: one, unless in a ``joblib.parallel_config``
        context; -1: all processors. The result does not depend on it.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. A true result stops after that round: rows still
        unlabelled keep the marker in ``transduction_``, their last distribution and certainty, and -1 in ``round_``.
    warm_start : bool, default=False
        Keep what depends on X alone (neighbours, graphs, scales of the columns), so that the next fit of the same X
        with other labels does not compute it again. The result is that of a fresh fit. Not with "balanced".
    verbose : int, default=0
        Above 0, the rounds and what was chosen are logged at level INFO of the logger "otprop", else at DEBUG.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row, or the marker where it abstained or a callback stopped before.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        The class probabilities with which each row was labelled.
    certainty_ : ndarray of shape (n_rows,)
        Eq. 12, from 0 (all classes alike) to 1 (one class); 1 for the given labels.
    confidence_ : ndarray of shape (n_rows,)
        Probability that the label is right, calibrated on held-out labels; 1 for the given ones. Not calibrated where
        no class has two labels. At most the share of their class for rows that no given label reaches over the graph.
        Not with "balanced".
    round_ : ndarray of int of shape (n_rows,)
        The round in which each row was labelled; 0 where the label was given.
    rounds_ : list of Round
        A record per round: rows, threshold, solver iterations, marginal errors, gaps, seconds.
    evidence_ : list of Contribution
        Each source with its weight, and its accuracy and likelihood on held-out labels. Not with "balanced".
    settings_ : list of dict
        The settings of the geometry, each with its weight. Not with "balanced".
    class_prior_ : ndarray of shape (n_classes,)
        The classes' shares of all rows, as used. Not with "balanced".
    marginal_strength_ : float
        As used. Not with "balanced".
    n_hidden_ : int
        Number of held-out labels, for the weights and the confidence. Not with "balanced".
    held_out_rows_ : ndarray of int of shape (n_held_out,)
        The labelled rows whose label was held out. Not with "balanced".
    held_out_proba_ : ndarray of shape (n_held_out, n_classes)
        Their class probabilities without their own label: what cleanlab calls ``pred_probs``. Not with "balanced".
    label_issues_ : list of LabelIssue
        Given labels that the evidence contradicts, the most doubtful first, each with ``row``, ``given``,
        ``suggested`` and the ``probability`` that it is wrong. Only held-out labels are judged. Not with "balanced".
    label_weights_ : ndarray of shape (n_rows,)
        How much each label counts, before ``sample_weight``: 1, or less where ``label_noise`` doubts a given label. Not
        with "balanced".
    expected_error_ : float
        Expected share of wrong labels among the unlabelled rows, from held-out labels that had no part in what they
        judge, from the class probabilities, and from how both erred on other tables. It holds where the labels were
        drawn at random, or the others are named in ``fit(chosen=...)``. Not with "balanced".
    error_range_ : tuple of float
        The 90 % interval of the real share; (0, 1) where no label could be held out. Not with "balanced".
    error_ : ErrorEstimate
        Estimates error and range for any subset of the rows. Not with "balanced".
    reused_ : tuple of str
        What was taken from the fit before, with ``warm_start``. Not with "balanced".
    epsilon_ : float
        The epsilon used.
    n_iter_ : int
        Number of rounds, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    Notes
    -----
    ``predict`` uses the neighbours of new rows among the training rows, and the classifiers. A training row keeps the
    label it was given or got.

    With ``marginals="balanced"`` a new row goes through the rounds as one more unlabelled row without mass, and takes
    its class from the first round whose threshold it passes, or from the one in which it was most certain. Of runs
    with very many rounds only some of the later ones are kept, so that rows labelled in between may differ from
    ``transduction_``.

    Rows labelled in a round join the evidence with about 0.1 times the mean weight of the given ones; with
    "balanced", each with a weight of 1.

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
        cost: str | Callable[[np.ndarray, np.ndarray], float] = "diffusion",
        *,
        evidence: str | Sequence[Any] | None = "auto",
        marginals: str = "class",
        marginal_strength: float | str = "auto",
        epsilon: float | str = "auto",
        alpha: float | str = "auto",
        class_prior: Any = None,
        metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean",
        n_neighbors: int | str = "auto",
        diffusion: float | str = "auto",
        abstain_below: float | None = None,
        label_noise: str | None = None,
        max_rounds: int | str | None = "auto",
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        unlabeled: Any = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        callback: Callable[[Round], Any] | None = None,
        warm_start: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.cost = cost
        self.evidence = evidence
        self.marginals = marginals
        self.marginal_strength = marginal_strength
        self.epsilon = epsilon
        self.alpha = alpha
        self.class_prior = class_prior
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.diffusion = diffusion
        self.abstain_below = abstain_below
        self.label_noise = label_noise
        self.max_rounds = max_rounds
        self.min_round_share = min_round_share
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.warm_start = warm_start
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
        return cls(
            cost="sqeuclidean", evidence=None, marginals="balanced", epsilon=epsilon, alpha=alpha, max_rounds=None
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, chosen: Any = None, **metadata: Any) -> Self:
        """Label every row of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs between all rows and with ``cost="graph"`` their affinities, of shape
            (n_rows, n_rows).
        y : array-like of shape (n_rows,)
            Labels of any one type, with a marker where a row is unlabelled.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the labelled rows; those of the others are not used.
        chosen : array-like of bool of shape (n_rows,) or None
            Rows whose label was picked, such as doubtful rows that were reviewed or suggested, and not drawn at random;
            values of unlabelled rows are not used. Their labels are used like the others to label rows, but they are
            no sample: confidence and expected error are learnt from the other labels alone, and so are class shares
            and the weights of the sources where at least 20 of those can be held out. Not with "balanced".
        **metadata : dict
            Routed to the classifiers in ``evidence`` that request it, with
            ``sklearn.set_config(enable_metadata_routing=True)``.

        Returns
        -------
        self
        """
        forget_fit(self, ("_predictor",))
        self.check_parameters()
        config = _parameters.make_config(self.get_params(deep=False), self._route(sample_weight, metadata))
        X, labels = self._read(X, y, **self._check_array_options())
        if self.cost == "precomputed":
            check_cost_matrix(X, len(X))
            _warn_if_asymmetric(X)
        _warn_if_minus_one_is_a_class(labels)
        weights, picked = row_weights(sample_weight, labels), _chosen_rows(chosen, labels)
        if picked is not None and self.marginals == "balanced":
            raise ParameterError("chosen", "has no meaning with marginals='balanced', which learns no shares.")
        self._cancel = Event()
        try:
            if isinstance(config, ClassLevelConfig):
                self._fit_class_level(ClassLevelFit(config, self._step), X, labels, weights, picked)
            else:
                fit = RowLevelFit(config, self._step).fit(X, labels, weights, self._on_round(len(labels.unlabeled)))
                self._set_results(fit, labels, fit.rounds.codes)
                self._rows = X
        finally:
            del self._cancel
        return self

    def _fit_class_level(
        self, fit: ClassLevelFit, X: Any, labels: Labels, weights: np.ndarray, chosen: np.ndarray | None
    ) -> None:
        key = geometry_key(X, fit.config) if self.warm_start else None
        kept_key, kept = self.__dict__.pop("_kept_geometry", (None, None))
        geometry = kept if key is not None and key == kept_key else None
        trust = np.ones(len(labels.codes))
        try:
            on_round = self._on_round(len(labels.unlabeled))
            used = geometry
            if self.label_noise is not None:
                first = ClassLevelFit(replace(fit.config, max_rounds=1), self._step)
                first.fit(X, labels, weights, lambda round_: False, chosen=chosen, geometry=geometry)
                used = fit.geometry = first.geometry
                trust = _trust_in_labels(first)
            fit.fit(X, labels, weights * trust, on_round, chosen=chosen, geometry=used)
        finally:
            if key is not None and fit.geometry is not None:  # also where the fit was cancelled later
                self._kept_geometry = key, fit.geometry
        self.reused_ = () if geometry is None else geometry.parts
        self.label_weights_ = trust
        self.evidence_, self.settings_ = fit.evidence.contributions, fit.settings
        self.class_prior_, self.marginal_strength_ = fit.prior, fit.strength
        self.confidence_, self.n_hidden_ = fit.confidence, len(fit.evidence.held_out)
        self.error_, self.expected_error_, self.error_range_ = fit.error, fit.error.expected, fit.error.interval
        held_out = fit.evidence.held_out
        self.held_out_rows_, self.held_out_proba_ = held_out.rows, fit.held_out_probabilities
        self.label_issues_ = find_label_issues(
            held_out.rows, fit.held_out_probabilities, held_out.codes, labels.classes
        )
        self._rows, self._typicality = X, _typicality(fit)
        codes = fit.rounds.codes
        if self.abstain_below is not None:
            unsure = (self.confidence_ < self.abstain_below) & (labels.codes == UNLABELED)
            codes = np.where(unsure, UNLABELED, codes)
        self._log_choices()
        if self.cost == "graph" and fit.geometry is not None:
            graph = fit.geometry.graphs[None]
            if not graph.symmetric:
                warn("X is not symmetric: the larger of w_ij and w_ji is used.")
            if not graph.degrees.any():
                warn("X has no affinity above 0: no label reaches another row.")
        if not fit.evidence.iterative.converged:
            warn(
                "The diffusion did not reach its tolerance. Labels were assigned all the same. Lower `diffusion`.",
                ConvergenceWarning,
            )
        if not held_out.drawn.any() and len(labels.unlabeled):
            logger.warning("confidence_ is not calibrated: no label drawn at random could be held out.")
        self._set_results(fit, labels, codes)

    def _set_results(self, fit: ClassLevelFit | RowLevelFit, labels: Labels, codes: np.ndarray) -> None:
        """Set the attributes that both kinds of fit have."""
        rounds = fit.rounds
        self.epsilon_, self.rounds_, self.n_iter_ = fit.epsilon, rounds.records, max(1, len(rounds.records))
        self.certainty_, self.round_ = rounds.certainty, rounds.round
        self._predictor = fit.predictor
        self._set_labels(labels, codes, rounds.distributions)
        self._warn_if_not_converged()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; see the notes of the class for how they come about.

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

    @available_if(_has_confidence)
    def predict_confidence(self, X: Any) -> np.ndarray:
        """Probability that ``predict`` is right, for new rows; not with ``marginals="balanced"``.

        It uses the calibration of ``confidence_`` and holds for rows that come from where the training rows came
        from. ``predict`` labels every row: ``abstain_below`` does not apply to it.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        confidence = self.predict_with_confidence(X)[1]
        assert confidence is not None
        return confidence

    def predict_with_confidence(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Class probabilities and confidence of new rows in one pass.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
        confidence : ndarray of shape (n_rows,), or None with ``marginals="balanced"``
        """
        check_is_fitted(self)
        X = self._read_rows(X, reset=False, **self._check_array_options())
        if self.cost == "precomputed":
            check_cost_matrix(X, self.n_features_in_)
        if self.cost == "graph":
            check_values(X, "affinity")
        return self._predictor.predict(X)

    @available_if(_has_confidence)
    def freeze(self, n_rows: float, n_jobs: int | None = None) -> Self:
        """Fix how new rows are predicted, so that the result of a row does not depend on the rows that come with it.

        Without it, few new rows are compared with all training rows and many with the nearest cells of them, which
        finds nearly the same neighbours. Classifiers of your own in ``evidence`` may still round differently. Not with
        ``marginals="balanced"``.

        Parameters
        ----------
        n_rows : float
            How many new rows are to come in all: what is worth building for a million is not for ten.
        n_jobs : int or None
            Threads for predicting. None or -1: all processors.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        assert isinstance(self._predictor, ClassLevelPredictor)
        self._predictor.freeze(n_rows, n_jobs)
        return self

    @available_if(_has_confidence)
    def coverage(self) -> list[Coverage]:
        """Expected error when only the most confident rows are labelled, for shares of the rows from all to a tenth.

        It speaks of the rows labelled by the fit, not of given labels nor of rows left where a callback stopped. Not
        with ``marginals="balanced"``.

        Returns
        -------
        list of Coverage
            Each with ``share``, ``n_rows``, ``confidence`` (the value of ``abstain_below`` for this share),
            ``expected_error``, and ``low`` and ``high``, the 90 % interval of the real error. For all rows they are
            ``expected_error_`` and ``error_range_``.
        """
        check_is_fitted(self)
        return coverage_table(self.confidence_[self.round_ > 0], self.error_)

    @available_if(_has_confidence)
    def suggest(self, n: int = 20, *, random_share: float = 0.2, candidates: Any = None) -> list[Suggestion]:
        """Rows to label next: uncertain and typical rows of different regions, and some drawn at random.

        Parameters
        ----------
        n : int
            At most so many; fewer where fewer rows are unlabelled.
        random_share : float in [0, 1]
            Share of the suggestions that is drawn at random, from which the expected error can be estimated.
        candidates : array-like of int or None
            The rows that may be suggested, labelled ones left out; None for all. Rows drawn at random among some rows
            tell the error of these alone.

        Returns
        -------
        list of Suggestion, in the order in which to label
        """
        check_is_fitted(self)
        check_count("n", n)
        check_number("random_share", random_share, least=0, most=1)
        if not hasattr(self, "_rows"):
            raise RuntimeError("suggest() needs the rows, which copies and saved models do not keep: fit again.")
        allowed = np.flatnonzero(self.round_ != 0)
        if candidates is not None:
            allowed = allowed[np.isin(allowed, _checked_rows(candidates, len(self.round_)))]
        if len(allowed) == 0:
            whose = "row" if candidates is None else "row of `candidates`"
            raise ValueError(f"every {whose} has a given label: there is no row to suggest.")
        if isinstance(self.cost, str) and self.cost in ("graph", "precomputed"):
            raise ValueError(f"suggest() needs the features of the rows, which cost={self.cost!r} does not have.")
        return suggest_rows(
            self._rows,
            allowed,
            n,
            distributions=self.label_distributions_,
            labeled=np.flatnonzero(self.round_ == 0),
            typicality=self._typicality,
            random_share=random_share,
            seed=len(allowed),
        )

    @available_if(_has_confidence)
    def labels_needed(self, error: float) -> LabelsNeeded:
        """How many more labels to an error of the unlabelled rows: an estimate with its range.

        It goes by ``expected_error_`` with its range and by how errors fell with more labels on other tables, rows
        being labelled that `suggest` names. The range is wide: how fast the error falls on this table, no fit shows.

        Parameters
        ----------
        error : float between 0 and 1

        Returns
        -------
        LabelsNeeded
            With ``value`` and the 90 % interval, ``low`` and ``high``, each at most the number of unlabelled rows.

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
        n_labels = int(np.count_nonzero(self.round_ == 0))
        estimate = self.error_
        return estimate_labels_needed(
            error, estimate.expected, estimate.concentration, n_labels, len(self.round_) - n_labels
        )

    def pseudo_labels(self, X: Any = None) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, labels and weights, given and propagated, for any learner that takes ``sample_weight``.

        The weight of a row is its confidence (with ``marginals="balanced"`` its certainty), divided by how many rows
        its class got, so that no class outweighs the others, and scaled to a mean of 1. Rows that were left unlabelled
        are left out.

        Parameters
        ----------
        X : array-like with a row for each one of the fit, or None
            The rows in the form that the learner takes, such as images of which the fit saw features. None: the rows
            of the fit, which copies and saved models do not keep.

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
            raise ValueError(f"X has {n_rows} rows, but the model was fitted on {len(self.round_)}.")
        scores = self.certainty_ if self.marginals == "balanced" else self.confidence_
        labelled = self.round_ >= 0
        if self.abstain_below is not None:
            labelled &= (self.confidence_ >= self.abstain_below) | (self.round_ == 0)
        rows = np.flatnonzero(labelled)
        labels = self.transduction_[rows].astype(self.classes_.dtype)  # no marker among them
        weights = class_balanced_weights(np.searchsorted(self.classes_, labels), scores[rows])
        return take_rows(X, rows), labels, weights

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator; with `deep`, also the named classifiers in ``evidence`` and theirs.

        Parameters
        ----------
        deep : bool

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, classifier in self._named_classifiers():
                params[name] = classifier
                if hasattr(classifier, "get_params"):
                    nested = classifier.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name=classifier`` and ``name__parameter=value`` reach named classifiers in ``evidence``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        if "evidence" in params:
            self.evidence = params.pop("evidence")
        for name, _ in self._named_classifiers():
            if name in params:
                replaced = (name, params.pop(name))
                self.evidence = [
                    replaced if isinstance(entry, tuple) and entry[0] == name else entry
                    for entry in self.evidence or ()
                ]
        super().set_params(**params)
        return self

    def _named_classifiers(self) -> list[tuple[str, Any]]:
        """The pairs in `evidence`."""
        if isinstance(self.evidence, str) or not isinstance(self.evidence, Sequence):
            return []
        return [entry for entry in self.evidence if isinstance(entry, tuple) and len(entry) == 2]

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata to the classifiers in ``evidence``; see scikit-learn's user guide.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if isinstance(self.evidence, Sequence) and not isinstance(self.evidence, str):
            for source in _parameters.evidence_sources(self.evidence):
                if hasattr(source.classifier, "get_metadata_routing"):
                    mapping = MethodMapping().add(caller="fit", callee="fit")
                    router.add(**{source.name: source.classifier}, method_mapping=mapping)
        return router

    def _route(self, sample_weight: Any, metadata: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Metadata of each classifier in `evidence`, by its name."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **metadata)
            kept = {name: dict(methods.fit) for name, methods in routed.items()}
            return {name: {key: value for key, value in fit.items() if value is not None} for name, fit in kept.items()}
        if metadata:
            raise TypeError(
                f"fit() got {', '.join(metadata)}, which is passed on to classifiers in evidence only with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        return {}

    def set_progress(self, callback: ProgressCallback | None) -> Self:
        """Have `fit` report its progress; not a parameter, and not kept in copies.

        Parameters
        ----------
        callback : callable or None
            Called with the work done, the work in all (0 where it is not known) and the name of the current step.

        Returns
        -------
        self
        """
        self._on_progress = callback
        return self

    def take_geometry(self, other: OTP) -> Self:
        """Have the next `fit` with ``warm_start`` use what another one kept of the same X.

        Parameters
        ----------
        other : OTP, fitted with ``warm_start=True``

        Returns
        -------
        self
        """
        kept = getattr(other, "_kept_geometry", None)
        if kept is not None:
            self._kept_geometry = kept
        return self

    @available_if(_has_confidence)
    def explain(self, X: Any) -> dict[str, np.ndarray]:
        """Class probabilities of rows by each source alone; not with ``marginals="balanced"``.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        dict of str to ndarray of shape (n_rows, n_classes), by the name of the source
        """
        check_is_fitted(self)
        assert isinstance(self._predictor, ClassLevelPredictor)
        return self._predictor.explain(self._read_rows(X, reset=False, **self._check_array_options()))

    def cancel(self) -> bool:
        """Stop a `fit` that runs in another thread before its next step; there it raises ``FitCancelledError``.

        Returns
        -------
        bool, whether a fit was running
        """
        running: Event | None = getattr(self, "_cancel", None)
        if running is not None:
            running.set()
        return running is not None

    def _step(self, done: float, total: float, step: str) -> None:
        """Called before every step of a fit."""
        if self._cancel.is_set():
            raise FitCancelledError(f"the fit was cancelled before the step {step!r}; the estimator is not fitted.")
        on_progress: ProgressCallback | None = getattr(self, "_on_progress", None)
        if on_progress is not None:
            on_progress(done, total, step)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in _TRANSIENT}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.cost != "precomputed"
        tags.input_tags.pairwise = self.cost in ("precomputed", "graph") if isinstance(self.cost, str) else False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used."""
        _parameters.check_parameters(self.get_params(deep=False))

    def _check_array_options(self) -> dict[str, Any]:
        """Options of check_array for X; a matrix between rows is checked by messages of our own."""
        if isinstance(self.cost, str) and self.cost in ("precomputed", "graph"):
            return {"accept_sparse": False if self.cost == "precomputed" else "csr", "ensure_all_finite": False}
        return {"accept_sparse": "csr"}

    def _on_round(self, n_rows: int) -> Callable[[Round], bool]:
        """What is done after every round: log, report progress, call back."""
        level, done = self._log_level, 0

        def on_round(round_: Round) -> bool:
            nonlocal done
            done += len(round_.rows)
            _log_round(round_, level)
            self._step(done, n_rows, f"round {round_.number}")
            return bool(self.callback is not None and self.callback(round_))

        return on_round

    @property
    def _log_level(self) -> int:
        return logging.INFO if self.verbose else logging.DEBUG

    def _log_choices(self) -> None:
        """Log the weights of the sources, the settings of the geometry and the class shares."""
        for source in self.evidence_:
            logger.log(
                self._log_level,
                "%s: weight %.2f, accuracy %.3f on %d held-out labels",
                source.name,
                source.weight,
                source.accuracy,
                self.n_hidden_,
            )
        for setting in self.settings_:
            logger.log(self._log_level, "geometry: %s", ", ".join(f"{name} {value}" for name, value in setting.items()))
        shares = np.array2string(self.class_prior_, precision=3)
        logger.log(self._log_level, "strength %.2f, class shares %s", self.marginal_strength_, shares)

    def _warn_if_not_converged(self) -> None:
        missed = [round_ for round_ in self.rounds_ if not round_.converged]
        if missed:
            worst = max(max(round_.source_error, round_.target_error) for round_ in missed)
            warn(
                f"The transport plan did not reach tol={self.tol:g} in {len(missed)} of {len(self.rounds_)} rounds "
                f"(largest error {worst:.1e}). Labels were assigned all the same. Raise epsilon (used: "
                f"{self.epsilon_:.3g}), max_iter or tol.",
                ConvergenceWarning,
            )


def _trust_in_labels(first: ClassLevelFit) -> np.ndarray:
    """How much each label counts after a first pass: those less that look wrong, with a warning."""
    held_out, trust = first.evidence.held_out, np.ones(len(first.rounds.codes))
    trust[held_out.rows] = label_trust(first.held_out_probabilities, held_out.codes)
    n_doubted = int(np.count_nonzero(trust < 1))
    if n_doubted:
        n_labels = int(held_out.counts.sum())
        warn(
            f"{n_doubted} of {n_labels} given labels are doubtful and count less: see label_issues_ and label_weights_."
        )
    return trust


def _typicality(fit: ClassLevelFit) -> np.ndarray | None:
    """Larger in dense regions: minus the distance to a near neighbour; None without a neighbour graph."""
    graphs = [] if fit.geometry is None else list(fit.geometry.graphs.values())
    return -graphs[-1].scales if graphs and graphs[-1].scales is not None else None


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


def _checked_rows(candidates: Any, n_rows: int) -> np.ndarray:
    """Row numbers from 0 that exist."""
    rows = np.asarray(candidates)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ParameterError("candidates", f"must be a list of row numbers; got {rows.dtype} of shape {rows.shape}.")
    if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
        raise ParameterError(
            "candidates", f"name rows from {rows.min()} to {rows.max()}; X has {n_rows} rows, counted from 0."
        )
    return rows


def _chosen_rows(chosen: Any, labels: Labels) -> np.ndarray | None:
    """Which labels were picked and not drawn at random; None where none was."""
    if chosen is None:
        return None
    picked = np.asarray(chosen)
    if picked.shape != labels.codes.shape:
        raise ParameterError(
            "chosen", f"has shape {picked.shape}, expected {labels.codes.shape}: one truth value a row."
        )
    if picked.dtype != bool:
        if picked.dtype.kind not in "biufO" or not np.isin(picked, (0, 1)).all():
            raise ParameterError("chosen", "must be truth values, one a row: whether its label was picked.")
        picked = picked.astype(bool)
    return picked if picked[labels.labeled].any() else None


def _warn_if_asymmetric(matrix: np.ndarray) -> None:
    for start in range(0, len(matrix), 256):  # in blocks, since the matrix may fill the memory
        if not np.allclose(matrix[start : start + 256], matrix[:, start : start + 256].T, rtol=1e-5):
            warn(
                "X is not symmetric: row i, column j is the cost from row i to row j. If only a half of the matrix is "
                "filled, add its transpose."
            )
            return


def _is_minus_one(marker: Any) -> bool:
    return isinstance(marker, Real) and marker == -1  # NA is neither equal nor unequal to anything


def _warn_if_minus_one_is_a_class(labels: Labels) -> None:
    """Labels -1 and 1 are a usual way to write two classes, but -1 means unlabelled here."""
    if labels.classes.tolist() == [1] and len(labels.unlabeled) and _is_minus_one(labels.marker):
        warn(
            "y holds -1 and 1 only. -1 marks an unlabelled row here, so every row gets the class 1. If both are "
            "classes, name another marker with the parameter `unlabeled`."
        )
