"""The estimator OTP: parameters, validation and attributes around a class-level fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from otprop import _parameters
from otprop._deciding import DecidingPropagator
from otprop._errors import warn
from otprop._labels import UNLABELED, Labels, check_groups, chosen_rows, find_unlabeled, row_weights
from otprop._paper_otp import PaperOTP
from otprop._parameters import WithNamedClassifiers
from otprop._progress import SOURCES_DONE
from otprop._saving import saved_as
from otprop._validation import InputError, ParameterError, check_count, check_number, forget_fit
from otprop._votes import Voter, Votes, classes_of_votes, judge_voters, read_votes
from otprop.evidence.shift import Shift
from otprop.geometry.pairwise import check_cost_matrix
from otprop.loop.label_issues import LabelIssue, find_label_issues, label_trust
from otprop.loop.suggestions import Suggestion, suggest_rows
from otprop.propagation.class_errors import JudgedLabels
from otprop.propagation.class_level import ClassLevelFit
from otprop.propagation.class_predictor import ClassLevelPredictor
from otprop.propagation.config import ClassLevelConfig
from otprop.propagation.error import ErrorEstimate
from otprop.propagation.geometry import Geometry, build_geometry, geometry_key
from otprop.propagation.rounds import Round, certainty
from otprop.propagation.votes_alone import VotesAloneFit

NOT_CONVERGED = "The diffusion of the labels did not converge, so class probabilities are less accurate."
logger = logging.getLogger("otprop")


@saved_as("otp", replaces={"callback": None, "verbose": 0}, nan=("settings_",))
class OTP(WithNamedClassifiers, DecidingPropagator):
    """Optimal Transport Propagation: label the unlabelled rows of a table.

    The cost of giving a class to a row is a weighted sum over sources of evidence: the diffusion of the labels over
    the neighbour graph, and classifiers trained on the labelled rows. The weights are fitted on held-out labels.
    Optimal transport then assigns the rows to the classes; each class ships about its share of the mass. Rows whose
    class is certain are labelled and join the evidence of the next round, until every row has a label. No parameter
    needs to be tuned.

    :class:`PaperOTP` is the algorithm of the paper as printed.

    Parameters
    ----------
    cost : str or callable, default="diffusion"
        The geometry. "diffusion": labels spread over the graph of nearest neighbours. "graph": labels spread over your
        own graph; X is its sparse matrix of affinities. Any other value is the cost of moving a label from one row to
        another (Eq. 8): "sqeuclidean", any other metric of scikit-learn's ``pairwise_distances``, a callable of two
        rows, or "precomputed" if X is the matrix of costs.
    evidence : "auto", None, or list, default="auto"
        Classifiers used in addition to the geometry: "forest" (extra trees), "linear" (logistic regression),
        "random_forest", "boosting" (boosted trees), "gaussian" (normal distributions fitted to labelled and unlabelled
        rows), or any scikit-learn classifier with ``predict_proba``. "boosting" and "gaussian" do not take sparse X.
        A classifier may be a pair (name, classifier); its parameters are then nested parameters of `OTP`. It is cloned
        and trained on the labelled rows, as an array without column names, and their labels. "auto", if X has
        features: "forest" ("random_forest" from 30 labels per class on), "linear", "boosting" above 150 labels, and
        "gaussian" up to 30 000 rows, the last two with few enough classes and columns. None: no classifier.
    marginal_strength : "auto" or float in [0, 1], default="auto"
        How strictly the class shares hold: from 0, not at all (a vote), to 1, exactly. "auto": up to 0.5, less with
        fewer labels.
    epsilon : "auto" or float, default="auto"
        With "diffusion" and "graph" the temperature: above 1 the class probabilities become flatter. "auto": 1, since
        the sources are calibrated. With a cost between rows, the entropic regularisation (Eq. 9) in the units of the
        cost; "auto" chooses it on held-out labels.
    alpha : "auto" or float, default="auto"
        Certainty above which a row is labelled in a round. When no row exceeds it, the most certain ones are
        labelled (Eq. 15). "auto": rows whose class has a probability above 0.9, at least 15 % of those left
        (30 % in a table of more than 15 000 rows).
    class_prior : None, "uniform", array or dict, default=None
        The classes' shares of all rows, in the order of ``classes_`` or by class; they are divided by their sum. None:
        inferred from the labels and the rows together, since the labels may not be a random sample.
    metric : str or callable, default="euclidean"
        Metric of the neighbour graph, with "diffusion": "euclidean", "cosine", "inner", "manhattan", or any other
        metric that scikit-learn's neighbour search takes.
    n_neighbors : "auto" or int, default="auto"
        Neighbours of each row in the graph. "auto": 10 and 20, weighted on held-out labels; 10 above 15 000 rows. If
        classes have fewer than about 15 rows, set 3 to 5.
    diffusion : "auto" or float below 1, default="auto"
        How far labels spread over the graph. "auto": 0.8 and 0.95, weighted in the same way.
    abstain_below : float or None, default=None
        Rows with less confidence than this stay unlabelled and have the marker in ``transduction_``.
        ``expected_error_`` still includes them; ``coverage()`` has the expected error of the other rows.
    label_noise : None or "auto", default=None
        "auto": given labels that a first pass doubts (as in ``label_issues_``, with a probability of 0.2 and more)
        count less, by the probability that they are right, and a warning says how many. They stay as they are in
        ``transduction_``. It takes two fits.
    objective : "accuracy", "balanced" or dict, default="accuracy"
        Which errors count. "accuracy": all alike. "balanced": those of rare classes more, so that they are found, at
        the price of more errors in all; the labels have the largest expected macro-F1 (mean F1 of the classes) that
        costs by class share can reach. Or costs by pair, as in ``{("yes", "no"): 10}``: a row of the class "yes" that
        is labelled "no" costs 10; pairs that are not named cost 1. Each row gets the label of least expected cost by
        its calibrated class probabilities, in ``transduction_`` and ``predict``; ``label_distributions_`` do not
        depend on it.
    max_rounds : "auto", int or None, default="auto"
        The last of these rounds labels all remaining rows. None: no limit. "auto": 20.
    min_round_share : float, default=0.0
        At least this share of the rows still unlabelled gets a label in every round, certain or not.
    tol : float, default=1e-6
        Tolerance for the L1 error of each marginal of the plan, for a total mass of one.
    max_iter : int, default=20000
        Iterations of the solver per round.
    unlabeled : default="auto"
        The value that marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    random_state : int, RandomState or None, default=0
        Seed of the forest and of the choice of held-out labels.
    n_jobs : int or None, default=None
        Threads for the neighbours, the diffusion and the forest. None: one, unless in a ``joblib.parallel_config``
        context; -1: all processors. The result does not depend on it.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. A true result stops after that round: rows still
        unlabelled keep the marker in ``transduction_``, their last distribution and certainty, and -1 in ``round_``.
    warm_start : bool, default=False
        Keep what depends on X alone (neighbours, graphs, scales of the columns) for the next fit of the same X with
        other labels. The result is the same as without it. See also ``prepare``.
    verbose : int, default=0
        Above 0, the rounds and automatic choices are logged at level INFO of the logger "otprop", else at DEBUG.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row, or the marker if the model abstained or a callback stopped the fit.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        The class probabilities with which each row was labelled; in single precision if it has
        more than 2**26 entries.
    certainty_ : ndarray of shape (n_rows,)
        Eq. 12, from 0 (all classes equally probable) to 1 (one class); 1 for the given labels.
    confidence_ : ndarray of shape (n_rows,)
        Probability that the label is right, calibrated on held-out labels; 1 for the given labels. Not calibrated if
        no class has two labels. For rows that no given label reaches over the graph, at most the share of their class.
    round_ : ndarray of int of shape (n_rows,)
        The round in which each row was labelled; 0 if the label was given.
    rounds_ : list of Round
        A record per round: rows, threshold, solver iterations, marginal errors, gaps, seconds.
    evidence_ : list of Contribution
        Each source with its weight, and its accuracy and likelihood on held-out labels.
    settings_ : list of dict
        The settings of the geometry, each with its weight.
    class_prior_ : ndarray of shape (n_classes,)
        The classes' shares of all rows, as used.
    marginal_strength_ : float
        The strength used.
    n_held_out_ : int
        Number of held-out labels; they determine the weights and the confidence.
    held_out_rows_ : ndarray of int of shape (n_held_out,)
        The labelled rows whose label was held out.
    held_out_proba_ : ndarray of shape (n_held_out, n_classes)
        Class probabilities of these rows without their own label (``pred_probs`` in cleanlab).
    label_issues_ : list of LabelIssue
        Given labels that the evidence contradicts, the most doubtful first, each with ``row``, ``given``,
        ``suggested`` and the ``probability`` that it is wrong. Only held-out labels are judged.
    label_weights_ : ndarray of shape (n_rows,)
        How much each label counts, before ``sample_weight``: 1, or less if ``label_noise="auto"`` doubts the label.
    expected_error_ : float
        Expected share of wrong labels among the unlabelled rows, from held-out labels that had no part in what they
        judge, from the class probabilities, and from how both erred on other tables. It holds where the labels were
        drawn at random, or the others are named in ``fit(chosen=...)``.
    expected_cost_ : float
        What ``objective`` makes of the new labels: ``expected_error_`` for "accuracy", one minus the expected
        macro-F1 for "balanced", the expected mean cost of a label for costs.
    error_range_ : tuple of float
        The 90 % interval of the real share; (0, 1) if no label could be held out.
    error_ : ErrorEstimate
        Estimates error and range for any subset of the rows.
    shift_ : Shift or None
        How labelled and unlabelled rows differ. ``shift_.found`` is true if they differ by more than chance. Labels are
        then held out as far from the others as the rows are, and ``error_range_`` is wide. None: too few labels.
    novelty_ : ndarray of shape (n_rows,)
        How different a row is from all labelled classes, 0 to 1: near 1 if less label mass reaches it than reaches
        labelled rows whose own label is held out. 0 for the labelled rows.
    novel_share_ : float
        Estimated share of the unlabelled rows that belong to no labelled class: 0 if the evidence is weak, and a
        quarter of the estimate if it is neither weak nor clear. The expected error counts them as wrong.
    novel_range_ : tuple of float
        The 90 % interval of that share.
    voters_ : list of Voter
        Each voter of ``fit(votes=...)`` with its ``accuracy`` on the labelled rows, the 90 % interval ``low`` to
        ``high``, and the same for each class in ``by_class``; empty without votes.
    reused_ : tuple of str
        The parts reused from ``geometry``, or with ``warm_start`` from the previous fit.
    epsilon_ : float
        The epsilon used.
    n_iter_ : int
        Number of rounds, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    Notes
    -----
    ``predict`` uses the neighbours of new rows among the training rows, and the classifiers. A training row keeps the
    label it was given or got; of equal rows with different given labels, each gets the most frequent of these. Equal
    rows without a label may get different ones in the fit, since their neighbours differ; `predict` has one for all.

    Rows labelled in a round join the evidence with about 0.1 times the mean weight of the given labels.

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

    _predictor: ClassLevelPredictor

    def __init__(
        self,
        cost: str | Callable[[np.ndarray, np.ndarray], float] = "diffusion",
        *,
        evidence: str | Sequence[Any] | None = "auto",
        marginal_strength: float | str = "auto",
        epsilon: float | str = "auto",
        alpha: float | str = "auto",
        class_prior: Any = None,
        metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean",
        n_neighbors: int | str = "auto",
        diffusion: float | str = "auto",
        abstain_below: float | None = None,
        label_noise: str | None = None,
        objective: str | Mapping[tuple[Any, Any], float] = "accuracy",
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
        self.marginal_strength = marginal_strength
        self.epsilon = epsilon
        self.alpha = alpha
        self.class_prior = class_prior
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.diffusion = diffusion
        self.abstain_below = abstain_below
        self.label_noise = label_noise
        self.objective = objective
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
    def paper(cls, epsilon: float | str = "auto", alpha: float = 0.9) -> PaperOTP:
        """Deprecated name of :class:`PaperOTP`.

        Parameters
        ----------
        epsilon : float or "auto"
        alpha : float

        Returns
        -------
        PaperOTP, not yet fitted
        """
        warn("OTP.paper is deprecated and goes in version 0.4: use PaperOTP.", FutureWarning)
        return PaperOTP(epsilon, alpha)

    def prepare(self, X: Any, *, graph: Any = None) -> Geometry:
        """Compute what depends on X alone (neighbours, graphs), for ``fit(X, y, geometry=...)`` with any labels.

        Parameters
        ----------
        X : as in ``fit``
        graph : sparse or dense matrix of shape (n_rows, n_rows), or None
            Affinities of 0 or more between the rows, such as the ``connectivities`` of scanpy. Labels spread over this
            graph instead of one that is made of X; the other sources use X. Only with ``cost="diffusion"``. New rows
            are linked to their `n_neighbors` nearest rows. None: the graph is made of X.

        Returns
        -------
        Geometry
            For this X and the parameters ``cost``, ``metric`` and ``n_neighbors``. Another OTP can use it too.
        """
        self.check_parameters()
        config = _parameters.class_level_config(self.get_params(deep=False), {})
        X = clone(self)._read_rows(X, ensure_min_samples=2, **self._check_array_options())
        if self._cost_is("precomputed"):
            check_cost_matrix(X, len(X))
        if graph is not None:
            self._check_graph(graph, X.shape[0])
        with self._cancellable():
            geometry = build_geometry(X, config, self._step, graph)
        geometry.key = geometry_key(X, config)
        return geometry

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        chosen: Any = None,
        groups: Any = None,
        votes: Any = None,
        geometry: Geometry | None = None,
        **metadata: Any,
    ) -> Self:
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
            Rows whose label was picked (reviewed or suggested) and not drawn at random. Values of unlabelled rows are
            ignored. These labels are propagated like the others, but they are not a random sample: confidence and
            expected error are learnt from the other labels only. So are the class shares and the weights of the
            sources, if at least 20 of the other labels can be held out.
        groups : array-like of shape (n_rows,) or None
            The group of each row, such as the patient or the site, where whole groups were labelled. Labels of a group
            are held out together, so that the error is that of rows of other groups. Groups of unlabelled rows are
            not used.
        votes : array-like or data frame of shape (n_rows, n_voters), mapping of names to votes, or None
            What a language model, annotators or rules say about the rows: labels of the classes of y, None or NaN where
            a voter is silent. A mapping has the labels of each voter, one per row, or its probabilities: a data frame
            with a column for each class, or an array of shape (n_rows, n_classes) in the order of ``classes_``. How far
            each voter is believed is learnt from the labelled rows; see ``voters_``. ``predict`` does not need votes.
            Where y has no label at all, the votes and the features decide; ``error_range_`` is then (0, 1), since
            nothing checks them.
        geometry : Geometry or None
            The result of ``prepare`` for the same X. The fit gives the same result without it, unless ``prepare`` was
            given a graph.
        **metadata : dict
            Routed to the classifiers in ``evidence`` that request it, with
            ``sklearn.set_config(enable_metadata_routing=True)``.

        Returns
        -------
        self
        """
        forget_fit(self, ("_predictor",))
        self.check_parameters()
        config = _parameters.class_level_config(self.get_params(deep=False), self._route(sample_weight, metadata))
        if votes is not None and find_unlabeled(y, self.unlabeled)[1].all():
            return self._fit_votes_alone(X, y, votes, config, geometry)
        X, labels = self._read_fit(X, y)
        weights = row_weights(sample_weight, labels)
        about_labels: dict[str, Any] = {"chosen": chosen_rows(chosen, labels), "groups": check_groups(groups, labels)}
        about_labels["votes"] = None if votes is None else read_votes(votes, labels.classes, X.shape[0], labels.marker)
        with self._cancellable():
            used = self._geometry_of(X, config, geometry)
            self._fit_class_level(ClassLevelFit(config, self._step), X, labels, weights, about_labels, used)
        return self

    def _check_graph(self, graph: Any, n_rows: int) -> None:
        if not self._cost_is("diffusion"):
            raise ParameterError("graph", f"needs cost='diffusion'; got cost={self.cost!r}.")
        shape = np.shape(graph)
        if shape != (n_rows, n_rows):
            raise ParameterError(
                "graph", f"must have the shape {(n_rows, n_rows)}, as X has {n_rows} rows; got {shape}."
            )

    def _fit_votes_alone(self, X: Any, y: Any, votes: Any, config: ClassLevelConfig, geometry: Geometry | None) -> Self:
        """Label every row where none has a label."""
        values, _ = find_unlabeled(y, self.unlabeled)
        marker = values[0] if len(values) else None
        X = self._read_rows(X, ensure_min_samples=2, **self._check_array_options())
        if len(values) != X.shape[0]:
            raise InputError(f"X and y have inconsistent numbers of samples: {X.shape[0]} rows and {len(values)}.")
        if self.class_prior is not None:
            raise ParameterError("class_prior", "needs labels, and y has none; leave it at None.")
        known = classes_of_votes(votes, X.shape[0], marker)
        read = read_votes(votes, known, X.shape[0], marker)
        with self._cancellable():
            fit = VotesAloneFit(config, self._step).fit(X, read, known, self._geometry_of(X, config, geometry))
        labels = Labels(np.full(len(values), UNLABELED), known, marker)
        self._set_fit(fit.last, X, labels, np.ones(len(values)))
        best = fit.distributions, fit.distributions.max(axis=1)
        self._judged, self._best_confidence = JudgedLabels.none(len(known)), best[1]  # no label judges the votes
        self._costs = self._costs_of(labels, *best, fit.distributions.mean(axis=0))
        codes, self.confidence_ = self.decide(*best)
        self.error_ = ErrorEstimate(float(1.0 - self.confidence_.mean()), 0.0, len(values))
        self.expected_error_, self.error_range_ = self.error_.expected, self.error_.interval
        self.held_out_rows_, self.held_out_proba_ = np.empty(0, dtype=np.intp), np.empty((0, len(known)))
        self.n_held_out_, self.novelty_ = 0, np.zeros(len(values))
        self.label_issues_: list[LabelIssue] = []
        self.reused_: tuple[str, ...] = ()
        self.shift_: Shift | None = None
        self.novel_share_, self.novel_range_ = 0.0, (0.0, 1.0)
        self.voters_ = judge_voters(read, labels.codes, known)
        if self.abstain_below is not None:
            codes = np.where(self.confidence_ < self.abstain_below, UNLABELED, codes)
        self._set_results(fit.last, labels, codes)
        self._set_labels(labels, codes, fit.distributions)
        self.certainty_, self.round_ = certainty(fit.distributions), np.ones(len(values), dtype=np.intp)
        self.expected_cost_ = self._expected_cost()
        warn(
            "y has no label: votes alone decide, and the error cannot be checked. Label 20 random rows to "
            "measure it: suggest(20, random_share=1.0) lists them."
        )
        return self

    def _geometry_of(self, X: Any, config: ClassLevelConfig, geometry: Geometry | None) -> Geometry | None:
        """The geometry that was passed, or that an earlier fit of the same X kept; None if it has to be built."""
        kept: Geometry | None = self.__dict__.pop("_kept_geometry", None)
        if geometry is None:
            return kept if kept is not None and self.warm_start and kept.key == geometry_key(X, config) else None
        if not isinstance(geometry, Geometry):
            raise ParameterError("geometry", f"must be what prepare(X) returns, or None; got {geometry!r}.")
        if geometry.key != geometry_key(X, config):
            raise ParameterError(
                "geometry", "was prepared for another X, cost, metric or n_neighbors; call prepare(X) again."
            )
        return geometry

    def _fit_class_level(
        self,
        fit: ClassLevelFit,
        X: Any,
        labels: Labels,
        weights: np.ndarray,
        about_labels: dict[str, Any],
        geometry: Geometry | None,
    ) -> None:
        trust = np.ones(len(labels.codes))
        try:
            on_round = self._on_round(len(labels.unlabeled), SOURCES_DONE)
            used = geometry
            if self.label_noise is not None:
                first = ClassLevelFit(replace(fit.config, max_rounds=1), self._step)
                first.fit(X, labels, weights, lambda round_: False, **about_labels, geometry=geometry)
                used = fit.geometry = first.geometry
                trust = _trust_in_labels(first)
            fit.fit(X, labels, weights * trust, on_round, **about_labels, geometry=used)
        finally:
            made = fit.geometry
            if self.warm_start and made is not None and not made.has_own_graph:  # also if the fit was cancelled later
                made.key = made.key or geometry_key(X, fit.config)
                self._kept_geometry = made
        self.reused_ = () if geometry is None else geometry.parts
        self._set_fit(fit, X, labels, trust)
        codes = self._apply_objective(fit, labels)
        if self.abstain_below is not None:
            unsure = (self.confidence_ < self.abstain_below) & (labels.codes == UNLABELED)
            codes = np.where(unsure, UNLABELED, codes)
        self.voters_ = _judged_voters(labels, about_labels["votes"], about_labels["chosen"])
        self._log_choices()
        graph = None if fit.geometry is None else fit.geometry.graphs.get(None)
        if graph is not None:
            name = "X" if self.cost == "graph" else "The graph"
            if not graph.symmetric:
                warn(f"{name} is not symmetric: the larger of w_ij and w_ji is used.")
            if not graph.degrees.any():
                warn(f"{name} has no affinity above 0: no label reaches another row.")
        if not fit.evidence.iterative.converged:
            warn(f"{NOT_CONVERGED} Set a lower `diffusion`, such as 0.8.", ConvergenceWarning)
        if not fit.evidence.held_out.drawn.any() and len(labels.unlabeled):
            logger.warning("confidence_ is not calibrated: no label drawn at random could be held out.")
        if len(self.classes_) == 1 and len(labels.unlabeled):
            logger.warning("y has one class: every row gets it, and the expected error cannot be estimated.")
        self._set_results(fit, labels, codes)
        self.expected_cost_ = self._expected_cost()

    def _set_fit(self, fit: ClassLevelFit, X: Any, labels: Labels, trust: np.ndarray) -> None:
        """Set the attributes that tell what a fit found."""
        self.label_weights_ = trust
        self.evidence_, self.settings_ = fit.evidence.contributions, fit.settings
        self.class_prior_, self.marginal_strength_ = fit.prior, fit.strength
        self.confidence_, self.n_held_out_ = fit.confidence, len(fit.evidence.held_out)
        self.error_, self.expected_error_, self.error_range_ = fit.error, fit.error.expected, fit.error.interval
        self.shift_, self.novelty_ = fit.shift, fit.row_novelty
        self.novel_share_, self.novel_range_ = fit.novelty.share, (fit.novelty.low, fit.novelty.high)
        held_out = fit.evidence.held_out
        self.held_out_rows_, self.held_out_proba_ = held_out.rows, fit.held_out_probabilities
        self.label_issues_ = find_label_issues(
            held_out.rows, fit.held_out_probabilities, held_out.codes, labels.classes
        )
        self._rows, self._typicality = X, _typicality(fit)
        self._best_confidence, self._judged = fit.confidence, fit.judged

    def suggest(self, n: int = 20, *, random_share: float = 0.2, candidates: Any = None) -> list[Suggestion]:
        """Rows to label next: uncertain and typical rows of different regions, and some drawn at random.

        Parameters
        ----------
        n : int
            Number of suggestions; fewer if fewer rows are unlabelled.
        random_share : float in [0, 1]
            Share of the suggestions that is drawn at random; the expected error is estimated from these.
        candidates : array-like of int or None
            The rows that may be suggested; labelled rows are skipped. None: all rows. The expected error estimated from
            random suggestions is then that of these rows only.

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
            raise InputError(f"every {whose} has a given label: there is no row to suggest.")
        if isinstance(self.cost, str) and self.cost in ("graph", "precomputed"):
            raise InputError(f"suggest() needs the features of the rows, which cost={self.cost!r} does not have.")
        return suggest_rows(
            self._rows,
            allowed,
            n,
            distributions=self.label_distributions_,
            labeled=np.flatnonzero(self.round_ == 0),
            typicality=self._typicality,
            novelty=self.novelty_ if self.novel_share_ > 0 else None,
            random_share=random_share,
            seed=(len(allowed), int(self.random_state) if isinstance(self.random_state, Integral) else 0),
        )

    def explain(self, X: Any, rows: Any = None) -> dict[str, np.ndarray]:
        """Class probabilities of rows by each source alone.

        Parameters
        ----------
        X : as in ``predict_proba``
        rows : array-like of int of shape (n_rows,) or None
            The numbers of these rows in ``fit``, counted from 0. After ``fit(votes=...)`` the votes on them are then
            one of the sources, "votes"; without it, X are taken for new rows, which have no votes. A model read from
            a file does not have the votes any more.

        Returns
        -------
        dict of str to ndarray of shape (n_rows, n_classes), by the name of the source
        """
        X = self._read_new(X)
        return self._predictor.explain(X, None if rows is None else self._rows_of_fit(rows, X.shape[0]))

    def _rows_of_fit(self, rows: Any, n_rows: int) -> np.ndarray:
        """Row numbers that the fit has, one for each of `n_rows` rows."""
        numbers, n_fitted = np.asarray(rows), len(self.round_)
        if numbers.dtype.kind not in "iu" or numbers.shape != (n_rows,):
            raise ParameterError(
                "rows", f"must be one row number for each of the {n_rows} rows of X; got shape {numbers.shape}."
            )
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_fitted:
            raise ParameterError("rows", f"must be from 0 to {n_fitted - 1}, since fit had {n_fitted} rows.")
        return numbers

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used."""
        _parameters.check_class_level(self.get_params(deep=False))

    def _log_choices(self) -> None:
        """Log the weights of the sources, the settings of the geometry and the class shares."""
        for source in self.evidence_:
            logger.log(
                self._log_level,
                "%s: weight %.2f, accuracy %.3f on %d held-out labels",
                source.name,
                source.weight,
                source.accuracy,
                self.n_held_out_,
            )
        for setting in self.settings_:
            logger.log(self._log_level, "geometry: %s", ", ".join(f"{name} {value}" for name, value in setting.items()))
        shares = np.array2string(self.class_prior_, precision=3)
        logger.log(self._log_level, "strength %.2f, class shares %s", self.marginal_strength_, shares)


def _trust_in_labels(first: ClassLevelFit) -> np.ndarray:
    """How much each label counts after a first fit: less if it looks wrong, with a warning."""
    held_out, trust = first.evidence.held_out, np.ones(len(first.rounds.codes))
    trust[held_out.rows] = label_trust(first.held_out_probabilities, held_out.codes)
    n_doubted = int(np.count_nonzero(trust < 1))
    if n_doubted:
        n_labels = int(held_out.counts.sum())
        warn(
            f"{n_doubted} of {n_labels} given labels are doubtful and count less: see label_issues_ and label_weights_."
        )
    return trust


def _judged_voters(labels: Labels, votes: Votes | None, chosen: np.ndarray | None) -> list[Voter]:
    """The voters, judged by the labels drawn at random, or by all where none was; none without votes."""
    if votes is None:
        return []
    drawn = labels.codes if chosen is None else np.where(chosen, UNLABELED, labels.codes)
    return judge_voters(votes, drawn if (drawn >= 0).any() else labels.codes, labels.classes)


def _typicality(fit: ClassLevelFit) -> np.ndarray | None:
    """Larger in dense regions: minus the distance to a near neighbour; None without a neighbour graph."""
    graphs = [] if fit.geometry is None else list(fit.geometry.graphs.values())
    return -graphs[-1].scales if graphs and graphs[-1].scales is not None else None


def _checked_rows(candidates: Any, n_rows: int) -> np.ndarray:
    """Row numbers, checked: from 0, all existing."""
    rows = np.asarray(candidates)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ParameterError("candidates", f"must be a list of row numbers; got {rows.dtype} of shape {rows.shape}.")
    if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
        raise ParameterError(
            "candidates", f"name rows from {rows.min()} to {rows.max()}; X has {n_rows} rows, counted from 0."
        )
    return rows
